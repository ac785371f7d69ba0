#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/float16.h"
#include "kernels/kernels.h"

namespace openelm::kernels::ref {

/// Element `i` of an array of stored numbers, widened; `Type` is a WeightType or a KvType.
template <auto Type>
float load_stored(const void* data, std::size_t i) {
  using Kind = decltype(Type);
  const std::byte* at = static_cast<const std::byte*>(data) + i * size_of(Type);
  if constexpr (Type == Kind::f32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  } else if constexpr (size_of(Type) == 1) {
    return static_cast<float>(static_cast<std::int8_t>(*at));
  } else {
    std::uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return Type == Kind::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
}

}  // namespace openelm::kernels::ref

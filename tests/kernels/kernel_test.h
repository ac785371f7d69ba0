#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/float16.h"
#include "kernels/guarded_array.h"
#include "kernels/tables.h"

#ifdef OPENELM_EMULATED_AVX512
namespace openelm::kernels {
extern const KernelTable emulated_avx512_table;
}
#endif

namespace openelm::test {

/// A kernel table that this CPU can run.
struct NamedTable {
  std::string name;
  const kernels::KernelTable* table;
};

inline void PrintTo(const NamedTable& table, std::ostream* out) { *out << table.name; }

/// Every table but the scalar one, and the AVX-512 kernels over emulated instructions.
inline std::vector<NamedTable> vector_tables() {
  std::vector<NamedTable> tables;
  for (const kernels::Variant& v : kernels::variants()) {
    // A variant whose table is called otherwise is another name for the same kernels.
    const bool runs = v.table != nullptr && v.supported && v.table->name == std::string(v.name);
    if (runs && v.table != &kernels::scalar_table) {
      tables.push_back({v.name, v.table});
    }
#ifdef OPENELM_EMULATED_AVX512
    if (v.name == std::string("avx2") && v.supported) {
      tables.push_back({"emulated_avx512", &kernels::emulated_avx512_table});
    }
#endif
  }
  return tables;
}

inline std::vector<NamedTable> all_tables() {
  std::vector<NamedTable> tables = vector_tables();
  tables.push_back({"scalar", &kernels::scalar_table});
  return tables;
}

inline std::string table_name(const testing::TestParamInfo<NamedTable>& info) {
  return info.param.name;
}

/// The same floats: equal bits, or both NaN (which NaN an operation on two gives is the CPU's
/// choice).
inline testing::AssertionResult same_floats(std::span<const float> expected,
                                            std::span<const float> got) {
  if (expected.size() != got.size()) return testing::AssertionFailure() << "sizes differ";
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
    if (std::bit_cast<std::uint32_t>(expected[i]) != std::bit_cast<std::uint32_t>(got[i])) {
      return testing::AssertionFailure()
             << "at " << i << ": expected " << expected[i] << ", got " << got[i];
    }
  }
  return testing::AssertionSuccess();
}

/// Ordinary numbers, or ones among which infinities, NaN, subnormals, huge and signed zeros appear.
enum class Numbers { ordinary, special };

class NumberSource {
 public:
  NumberSource(std::uint32_t seed, Numbers kind) : engine_(seed), kind_(kind) {}

  float next() {
    if (kind_ == Numbers::special && engine_() % 16 == 0) {
      constexpr float kInf = std::numeric_limits<float>::infinity();
      constexpr float kSpecial[] = {kInf,      -kInf,      std::numeric_limits<float>::quiet_NaN(),
                                    0x1p-140F, -0x1p-149F, 0.0F,
                                    -0.0F,     3e38F,      -3e38F,
                                    0x1p-24F,  65519.0F,   65520.0F};
      return kSpecial[engine_() % std::size(kSpecial)];
    }
    const auto bits = static_cast<std::int32_t>(engine_());
    return static_cast<float>(bits) * 0x1p-31F;
  }

  void fill(std::span<float> numbers) {
    for (float& number : numbers) number = next();
  }

 private:
  std::mt19937 engine_;
  Numbers kind_;
};

/// A signed byte for a number of NumberSource: all of their range is used.
inline std::int8_t as_byte(float value) {
  return std::isfinite(value) ? static_cast<std::int8_t>(std::fmod(value, 1.0F) * 127.0F)
                              : std::int8_t{-127};
}

/// Writes `value` as element `i` of an array of stored numbers of a WeightType or KvType.
template <typename Type>
void put_stored(Type type, std::span<std::byte> data, std::size_t i, float value) {
  std::byte* at = data.data() + i * size_of(type);
  if (type == Type::f32) {
    std::memcpy(at, &value, 4);
  } else if (size_of(type) == 1) {
    *at = static_cast<std::byte>(as_byte(value));
  } else {
    const std::uint16_t bits = type == Type::f16 ? f32_to_f16(value) : f32_to_bf16(value);
    std::memcpy(at, &bits, 2);
  }
}

/// `value` after a round trip through the stored type.
template <typename Type>
float as_stored(Type type, float value) {
  if (size_of(type) == 1) return static_cast<float>(as_byte(value));
  if (type == Type::f16) return f16_to_f32(f32_to_f16(value));
  if (type == Type::bf16) return bf16_to_f32(f32_to_bf16(value));
  return value;
}

}  // namespace openelm::test

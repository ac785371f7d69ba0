#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <openelm/config.h>

namespace openelm {

/// A tensor as a safetensors header describes it, with its bytes inside the file.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  ///< as spelled: "BF16", "F32", or a type that holds no weights
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;  ///< at any alignment
};

/// The weight type of a dtype's spelling, if weights may have it.
std::optional<WeightType> weight_type_of(std::string_view dtype);

/// A weight type as a dtype is spelled: "BF16".
const char* dtype_of(WeightType type) noexcept;

/// Reads the header of a safetensors file held in memory. Every byte of the file belongs to the
/// header or to exactly one tensor; a file with overlaps, holes or bytes left over is refused, as
/// the format's reference library does. Data of a weight type, or of the words (U32) that hold
/// quantised weights, is as long as its shape says; other types are kept by name only. `where`
/// begins the messages. Throws Error.
std::vector<SafetensorsEntry> parse_safetensors(std::span<const std::byte> file,
                                                const std::string& where);

}  // namespace openelm

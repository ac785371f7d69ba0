#include "checkpoint/safetensors.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include <openelm/error.h>

#include "checkpoint/json_text.h"
#include "checkpoint/message_text.h"

namespace openelm {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
// The reference library's own limit; an OpenELM header has about 40 kB.
constexpr std::uint64_t kLargestHeader = 100'000'000;
constexpr std::uint64_t kLargestOffset = std::numeric_limits<std::int64_t>::max();

std::uint64_t little_endian_u64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    value = (value << 8) | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

/// Bytes of one number of the types whose data is read.
std::optional<std::uint64_t> element_size(std::string_view dtype) {
  if (dtype == "U32") return 4;
  const auto type = weight_type_of(dtype);
  return type ? std::optional<std::uint64_t>(size_of(*type)) : std::nullopt;
}

/// One pass over one file: the fields that all messages and checks need.
class Parser {
 public:
  Parser(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}

  std::vector<SafetensorsEntry> parse() {
    const std::string_view header = header_text();
    data_ = file_.subspan(kLengthBytes + header.size());
    const json parsed = parse_json_object(header, where_ + ": header");
    std::vector<Placed> tensors;
    for (const auto& [name, fields] : parsed.items()) {
      if (name == "__metadata__") {
        if (!fields.is_object()) fail("__metadata__ is not a JSON object");
      } else {
        tensors.push_back(read_tensor(name, fields));
      }
    }
    check_coverage(tensors);
    std::vector<SafetensorsEntry> entries;
    for (Placed& tensor : tensors) {
      tensor.entry.data = data_.subspan(static_cast<std::size_t>(tensor.begin),
                                        static_cast<std::size_t>(tensor.end - tensor.begin));
      entries.push_back(std::move(tensor.entry));
    }
    return entries;
  }

 private:
  /// A tensor whose place in the data is not yet known to lie inside the file.
  struct Placed {
    SafetensorsEntry entry;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  [[noreturn]] void fail(const std::string& what) const { throw Error(where_ + ": " + what); }

  [[noreturn]] void fail(std::string_view tensor, const std::string& what) const {
    fail("tensor " + in_quotes(tensor) + ": " + what);
  }

  std::string size_text() const { return "file is " + std::to_string(file_.size()) + " bytes"; }

  std::string_view header_text() const {
    const std::string_view text(reinterpret_cast<const char*>(file_.data()), file_.size());
    if (const auto impostor = recognize_impostor(text.substr(0, 512))) fail(*impostor);
    if (file_.size() < kLengthBytes) {
      fail(size_text() + ", too short for a safetensors file: download it again");
    }
    const std::uint64_t length = little_endian_u64(file_);
    if (length > file_.size() - kLengthBytes) {
      fail(size_text() + ", but says that its header has " + std::to_string(length) +
           ": truncated or not a safetensors file, download it again");
    }
    if (length > kLargestHeader) {
      fail("header of " + std::to_string(length) + " bytes, at most " +
           std::to_string(kLargestHeader) + " are allowed");
    }
    const std::string_view header = text.substr(kLengthBytes, static_cast<std::size_t>(length));
    if (!header.starts_with('{')) fail("header is not JSON: not a safetensors file, or damaged");
    return header;
  }

  Placed read_tensor(const std::string& name, const json& fields) const {
    if (!fields.is_object()) fail(name, "description is not a JSON object");
    Placed tensor;
    tensor.entry = {name, read_dtype(name, fields), read_shape(name, fields), {}};
    std::tie(tensor.begin, tensor.end) = read_offsets(name, fields);
    const std::uint64_t count = element_count(tensor.entry);
    const std::uint64_t bytes = tensor.end - tensor.begin;
    const auto size = element_size(tensor.entry.dtype);
    if (size && bytes != count * *size) {
      fail(name, tensor.entry.dtype + " of shape " + shape_text(tensor.entry.shape) + " needs " +
                     std::to_string(count * *size) + " bytes, data_offsets give " +
                     std::to_string(bytes));
    }
    return tensor;
  }

  std::string read_dtype(const std::string& name, const json& fields) const {
    const auto field = fields.find("dtype");
    if (field == fields.end() || !field->is_string()) fail(name, "\"dtype\" must be a string");
    return field->get<std::string>();
  }

  std::vector<std::int64_t> read_shape(const std::string& name, const json& fields) const {
    const auto field = fields.find("shape");
    if (field == fields.end() || !field->is_array()) fail(name, "\"shape\" must be a list");
    std::vector<std::int64_t> shape;
    for (const json& extent : *field) {
      if (!extent.is_number_unsigned() ||
          extent.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
        fail(name, "\"shape\" must hold whole numbers below 2^63, none negative");
      }
      shape.push_back(extent.get<std::int64_t>());
    }
    return shape;
  }

  /// Elements of the shape: few enough that their bytes, too, can be counted in 64 bits.
  std::uint64_t element_count(const SafetensorsEntry& entry) const {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 16;
    std::uint64_t count = 1;
    for (const std::int64_t extent : entry.shape) {
      const auto factor = static_cast<std::uint64_t>(extent);
      if (factor != 0 && count > kMost / factor) {
        fail(entry.name, "shape " + shape_text(entry.shape) + " overflows 64 bits");
      }
      count *= factor;
    }
    return count;
  }

  std::pair<std::uint64_t, std::uint64_t> read_offsets(const std::string& name,
                                                       const json& fields) const {
    const auto field = fields.find("data_offsets");
    if (field == fields.end() || !field->is_array() || field->size() != 2 ||
        !(*field)[0].is_number_unsigned() || !(*field)[1].is_number_unsigned()) {
      fail(name, "\"data_offsets\" must be two whole numbers of at least 0");
    }
    const auto begin = (*field)[0].get<std::uint64_t>();
    const auto end = (*field)[1].get<std::uint64_t>();
    if (std::max(begin, end) > kLargestOffset) fail(name, "data_offsets lie past any file's end");
    if (begin > end) {
      fail(name, "data_offsets [" + std::to_string(begin) + ", " + std::to_string(end) +
                     "]: the end lies before the beginning");
    }
    return {begin, end};
  }

  void check_coverage(std::vector<Placed>& tensors) const {
    std::ranges::sort(tensors, {}, [](const Placed& t) { return std::pair(t.begin, t.end); });
    std::uint64_t covered = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Placed& tensor = tensors[i];
      if (tensor.begin < covered) {
        fail("tensors " + in_quotes(tensors[i - 1].entry.name) + " and " +
             in_quotes(tensor.entry.name) + " overlap");
      }
      if (tensor.begin > covered) {
        fail("bytes " + std::to_string(covered) + " to " + std::to_string(tensor.begin) +
             " of the data, before tensor " + in_quotes(tensor.entry.name) +
             ", belong to no tensor");
      }
      covered = tensor.end;
    }
    if (covered > data_.size()) {
      const std::uint64_t needed = file_.size() - data_.size() + covered;
      fail(size_text() + ", but its header needs " + std::to_string(needed) +
           ": truncated, download it again");
    }
    if (covered < data_.size()) {
      fail(std::to_string(data_.size() - covered) +
           " bytes after the last tensor belong to none: damaged, download it again");
    }
  }

  std::span<const std::byte> file_;
  std::span<const std::byte> data_;
  const std::string& where_;
};

}  // namespace

std::optional<WeightType> weight_type_of(std::string_view dtype) {
  for (const WeightType type : {WeightType::f32, WeightType::f16, WeightType::bf16}) {
    if (dtype == dtype_of(type)) return type;
  }
  return std::nullopt;
}

const char* dtype_of(WeightType type) noexcept {
  switch (type) {
    case WeightType::f32:
      return "F32";
    case WeightType::f16:
      return "F16";
    case WeightType::bf16:
      return "BF16";
  }
  return "";
}

std::vector<SafetensorsEntry> parse_safetensors(std::span<const std::byte> file,
                                                const std::string& where) {
  return Parser(file, where).parse();
}

}  // namespace openelm

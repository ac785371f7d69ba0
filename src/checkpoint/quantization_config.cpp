#include "checkpoint/quantization_config.h"

#include <algorithm>
#include <span>

#include <openelm/error.h>
#include <openelm/quantization.h>

#include "checkpoint/json_text.h"
#include "checkpoint/message_text.h"

namespace openelm {
namespace {

using nlohmann::json;

std::string list_text(std::span<const std::int32_t> values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == values.size() ? " and " : ", ") + std::to_string(values[i]);
  }
  return text;
}

/// One of the entries that hold "bits" and "group_size". `where` names it in messages.
class Entry {
 public:
  Entry(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    check_word("mode", "affine");
  }

  /// `fallback` stands in for what the entry leaves out.
  AffineGroups groups(const std::optional<AffineGroups>& fallback) const {
    const auto or_else = [&](std::int32_t AffineGroups::*field) {
      return fallback ? std::optional((*fallback).*field) : std::nullopt;
    };
    return {
        .bits = number("bits", kAffineBits, or_else(&AffineGroups::bits)),
        .group_size = number("group_size", kAffineGroupSizes, or_else(&AffineGroups::group_size))};
  }

 private:
  [[noreturn]] void fail(const char* field, const std::string& what) const {
    throw Error(where_ + ": " + in_quotes(field) + " " + what);
  }

  void check_word(const char* field, const char* supported) const {
    const auto value = object_.find(field);
    if (value == object_.end() || value->is_null() || *value == supported) return;
    fail(field, "is " + printable(value->dump(), 60) + ", supported is " + in_quotes(supported));
  }

  std::int32_t number(const char* field, std::span<const std::int32_t> supported,
                      std::optional<std::int32_t> fallback) const {
    const auto value = object_.find(field);
    if (value == object_.end() || value->is_null()) {
      if (fallback) return *fallback;
      fail(field, "is missing, supported are " + list_text(supported));
    }
    const auto found = std::ranges::find_if(
        supported, [&](std::int32_t n) { return value->is_number_integer() && *value == n; });
    if (found == supported.end()) {
      fail(field, "is " + printable(value->dump(), 60) + ", supported are " + list_text(supported));
    }
    return *found;
  }

  const json& object_;
  std::string where_;
};

/// The entry that counts, as mlx-lm decides, and its name.
const json* find_entry(const json& config, const char*& name) {
  for (const char* field : {"quantization", "quantization_config"}) {
    const auto found = config.find(field);
    if (found == config.end() || found->is_null()) continue;
    name = field;
    return &*found;
  }
  return nullptr;
}

json to_json(const AffineGroups& groups) {
  return {{"bits", groups.bits}, {"group_size", groups.group_size}};
}

}  // namespace

QuantizationConfig QuantizationConfig::read(const json& config, const std::filesystem::path& file) {
  QuantizationConfig result;
  const char* name = nullptr;
  const json* const entry = find_entry(config, name);
  if (entry == nullptr) return result;
  const std::string where = file.string() + ": " + in_quotes(name);
  if (!entry->is_object()) throw Error(where + " must be an object with bits and group_size");
  if (const auto method = entry->find("quant_method"); method != entry->end()) {
    throw Error(where + ": \"quant_method\" is " + printable(method->dump(), 60) +
                ", supported is MLX's affine format, which has none");
  }
  result.all_ = Entry(*entry, where).groups(std::nullopt);
  for (const auto& [module, value] : entry->items()) {
    if (value.is_object()) {
      result.overrides_[module] =
          Entry(value, where + ": " + in_quotes(module)).groups(result.all_);
    } else if (value == false) {
      result.overrides_[module] = std::nullopt;
    }
  }
  return result;
}

std::optional<AffineGroups> QuantizationConfig::of(std::string_view module) const {
  const auto found = overrides_.find(module);
  return found == overrides_.end() ? all_ : found->second;
}

void QuantizationConfig::set(const std::string& module, const std::optional<AffineGroups>& groups) {
  if (groups == all_) {
    overrides_.erase(module);
  } else {
    overrides_[module] = groups;
  }
}

std::string QuantizationConfig::add_to(const std::filesystem::path& file) const {
  json config = read_json_file(file);
  json entry = to_json(*all_);
  entry["mode"] = "affine";
  for (const auto& [module, groups] : overrides_) {
    entry[module] = groups ? to_json(*groups) : json(false);
  }
  config["quantization"] = entry;
  config["quantization_config"] = entry;
  return python_json_text(config);
}

}  // namespace openelm

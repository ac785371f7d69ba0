#include "checkpoint/json_fields.h"

#include <cstdio>

#include <openelm/error.h>

#include "checkpoint/json_text.h"
#include "checkpoint/message_text.h"

namespace openelm {
namespace {

using nlohmann::json;

/// The value as the message shows it.
std::string found(const json& value) {
  if (is_nonfinite_marker(value)) return "NaN or Infinity";
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list of " + std::to_string(value.size());
  return printable(value.dump(), 60);
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string element(const char* field, std::size_t i) {
  return std::string(field) + "[" + std::to_string(i) + "]";
}

}  // namespace

void JsonFields::fail(const std::string& field, const std::string& what) const {
  throw Error(file_ + ": " + in_quotes(field) + " " + what);
}

const json* JsonFields::find(const char* field) const {
  const auto it = object_.find(field);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

const json& JsonFields::require(const char* field) const {
  const json* const value = find(field);
  if (value == nullptr) fail(field, "is missing");
  return *value;
}

std::int32_t JsonFields::check_whole(const std::string& label, const json& value,
                                     Range range) const {
  const std::string allowed = "must be a whole number from " + std::to_string(range.least) +
                              " to " + std::to_string(range.most) + ", found ";
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  if (!fits) fail(label, allowed + found(value));
  const auto number = value.get<std::int64_t>();
  if (number < range.least || number > range.most) fail(label, allowed + found(value));
  return static_cast<std::int32_t>(number);
}

double JsonFields::check_number(const std::string& label, const json& value, double least,
                                double most) const {
  const bool fits =
      value.is_number() && value.get<double>() >= least && value.get<double>() <= most;
  if (!fits) {
    fail(label, "must be a number from " + number_text(least) + " to " + number_text(most) +
                    ", found " + found(value));
  }
  return value.get<double>();
}

std::int32_t JsonFields::whole(const char* field, Range range) const {
  return check_whole(field, require(field), range);
}

std::int32_t JsonFields::whole_or(const char* field, Range range, std::int32_t fallback) const {
  const json* const value = find(field);
  return value == nullptr ? fallback : check_whole(field, *value, range);
}

std::int32_t JsonFields::first_whole_or(const char* field, Range range,
                                        std::int32_t fallback) const {
  const json* const value = find(field);
  if (value == nullptr || !value->is_array()) return whole_or(field, range, fallback);
  if (value->empty()) fail(field, "is an empty list");
  return check_whole(element(field, 0), (*value)[0], range);
}

std::vector<std::int32_t> JsonFields::wholes(const char* field, Range range,
                                             std::size_t count) const {
  const json& value = require(field);
  if (!value.is_array()) return std::vector(count, check_whole(field, value, range));
  if (value.size() != count) {
    fail(field, "must hold one number for each of the " + std::to_string(count) +
                    " layers, found " + std::to_string(value.size()));
  }
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(check_whole(element(field, i), value[i], range));
  }
  return out;
}

bool JsonFields::is_list(const char* field) const {
  const json* const value = find(field);
  return value != nullptr && value->is_array();
}

std::vector<double> JsonFields::numbers(const char* field, double least, double most) const {
  const json& value = require(field);
  if (!value.is_array()) return {check_number(field, value, least, most)};
  std::vector<double> out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    out.push_back(check_number(element(field, i), value[i], least, most));
  }
  return out;
}

double JsonFields::number_or(const char* field, double least, double most, double fallback) const {
  const json* const value = find(field);
  return value == nullptr ? fallback : check_number(field, *value, least, most);
}

bool JsonFields::flag_or(const char* field, bool fallback) const {
  const json* const value = find(field);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(field, "must be true or false, found " + found(*value));
  return value->get<bool>();
}

std::string JsonFields::text_or(const char* field, const std::string& fallback) const {
  const json* const value = find(field);
  if (value == nullptr) return fallback;
  if (!value->is_string() || is_nonfinite_marker(*value)) {
    fail(field, "must be a string, found " + found(*value));
  }
  return value->get<std::string>();
}

}  // namespace openelm

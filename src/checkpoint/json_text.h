#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace openelm {

/// A JSON value that Python writes but JSON lacks (NaN, Infinity, -Infinity). `read_json_file`
/// keeps it as a string of this kind, so that it is harmless where the field is not read.
bool is_nonfinite_marker(const nlohmann::json& value);

/// Parses the text of one JSON object, strictly: a repeated key, nesting past 64 levels, a NUL byte
/// or anything after the object is an error. Throws Error "<where>: ..." with line and column.
nlohmann::json parse_json_object(std::string_view text, const std::string& where);

/// Reads a JSON file written by Python tools: a byte-order mark and non-finite numbers are taken,
/// the rest is as strict as `parse_json_object`. Throws Error.
nlohmann::json read_json_file(const std::filesystem::path& path);

/// The same, for text in memory.
nlohmann::json parse_python_json(std::string_view text, const std::string& where);

/// The text of a value that `read_json_file` gave, as Python's json module writes it: indented,
/// with NaN and Infinity in their places again.
std::string python_json_text(const nlohmann::json& value);

/// What a file is that was saved in place of the expected one ("a web page ..."), if it is plain to
/// see from its first bytes.
std::optional<std::string> recognize_impostor(std::string_view start);

}  // namespace openelm

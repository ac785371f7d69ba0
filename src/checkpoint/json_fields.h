#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace openelm {

/// The fields of a configuration file, read with their type and range checked. Every failure is an
/// Error that names the file, the field, what it may be and what it is. A null counts as absent.
class JsonFields {
 public:
  /// `object` must outlive the reader.
  JsonFields(const std::filesystem::path& file, const nlohmann::json& object)
      : file_(file.string()), object_(object) {}

  struct Range {
    std::int64_t least;
    std::int64_t most;
  };

  bool has(const char* field) const { return find(field) != nullptr; }

  std::int32_t whole(const char* field, Range range) const;
  std::int32_t whole_or(const char* field, Range range, std::int32_t fallback) const;

  /// One number, or a list of which the first counts.
  std::int32_t first_whole_or(const char* field, Range range, std::int32_t fallback) const;

  /// One number for each of `count` entries, or a single one that all share.
  std::vector<std::int32_t> wholes(const char* field, Range range, std::size_t count) const;

  bool is_list(const char* field) const;

  /// A finite number, or a list of them.
  std::vector<double> numbers(const char* field, double least, double most) const;
  double number_or(const char* field, double least, double most, double fallback) const;

  bool flag_or(const char* field, bool fallback) const;
  std::string text_or(const char* field, const std::string& fallback) const;

  /// Throws Error "<file>: "<field>" <what>".
  [[noreturn]] void fail(const std::string& field, const std::string& what) const;

 private:
  const nlohmann::json* find(const char* field) const;
  const nlohmann::json& require(const char* field) const;
  std::int32_t check_whole(const std::string& label, const nlohmann::json& value,
                           Range range) const;
  double check_number(const std::string& label, const nlohmann::json& value, double least,
                      double most) const;

  std::string file_;
  const nlohmann::json& object_;
};

}  // namespace openelm

#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace openelm {

/// How the weights of a matrix are grouped and how many bits each has.
struct AffineGroups {
  std::int32_t bits = 0;        ///< 4 or 8
  std::int32_t group_size = 0;  ///< 32, 64 or 128

  friend bool operator==(const AffineGroups&, const AffineGroups&) = default;
};

/// What a config.json says of quantised weights. As MLX writes it: "quantization" holds the bits
/// and the group size of all matrices and, under the path of a module
/// ("transformer.layers.0.ffn.proj_1", a tensor's name without ".weight"), what differs there:
/// other numbers, or false for a matrix left as it is. mlx-lm writes the same a second time as
/// "quantization_config".
class QuantizationConfig {
 public:
  /// Nothing is quantised.
  QuantizationConfig() = default;

  /// All matrices are quantised as `all` says.
  explicit QuantizationConfig(const AffineGroups& all) : all_(all) {}

  /// Reads it; without such an entry nothing is quantised. Throws Error for what is not MLX's
  /// affine format with 4 or 8 bits in groups of 32, 64 or 128.
  static QuantizationConfig read(const nlohmann::json& config, const std::filesystem::path& file);

  /// Notes how one module is quantised, or with nothing that it is not.
  void set(const std::string& module, const std::optional<AffineGroups>& groups);

  /// The text of configuration `file` with this entered, twice, as mlx-lm does. Throws Error.
  std::string add_to(const std::filesystem::path& file) const;

  /// Whether there is an entry at all.
  bool present() const noexcept { return all_.has_value(); }

  /// The groups of a module's matrix; nothing if it is not quantised.
  std::optional<AffineGroups> of(std::string_view module) const;

 private:
  std::optional<AffineGroups> all_;
  std::map<std::string, std::optional<AffineGroups>, std::less<>> overrides_;
};

}  // namespace openelm

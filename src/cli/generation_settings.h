#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <openelm/generation.h>

namespace openelm::cli {

/// An option of a generation, as text: a chat can change it while it runs.
struct Setting {
  std::string name;  ///< as the option is called: "top-k"
  std::string value;
};

/// All of them with their values, in the order of the options.
std::vector<Setting> settings_of(const GenerationOptions& options);

/// Changes one; its name may be written with '_' too. Throws UsageError, and changes nothing, for a
/// name that is not known and a value out of range.
void change_setting(GenerationOptions& options, std::string_view name, std::string_view value,
                    std::int32_t vocab_size);

}  // namespace openelm::cli

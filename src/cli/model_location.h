#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <openelm/config.h>
#include <openelm/tokenizer.h>

#include "cli/options.h"

namespace openelm::cli {

inline constexpr std::string_view kBundledModel = "openelm-tiny";
inline constexpr std::string_view kBundledChatModel = "openelm-tiny-instruct";

/// The model folder: -m, else $OPENELM_MODEL, else the bundled model of that name, looked for
/// beside the installed program, then upwards from the build tree. Throws Error when there is none,
/// or when what was named is not a folder.
std::filesystem::path locate_model(const ModelOptions& options, std::string_view bundled);

/// Where the tokenizer should be: --tokenizer, else tokenizer.model in the model's folder.
std::filesystem::path tokenizer_path(const ModelOptions& options,
                                     const std::filesystem::path& model);

/// Loads it. A missing file is an Error that tells how to get one.
std::shared_ptr<const Tokenizer> load_tokenizer(const ModelOptions& options,
                                                const std::filesystem::path& model);

/// Throws Error with both numbers unless tokenizer and model have the same vocabulary size.
void require_same_vocabulary(const Tokenizer& tokenizer, const std::filesystem::path& file,
                             const ModelConfig& config);

}  // namespace openelm::cli

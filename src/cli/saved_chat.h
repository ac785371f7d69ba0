#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/conversation.h"
#include "cli/generation_settings.h"

namespace openelm::cli {

/// A conversation as a file keeps it.
struct SavedChat {
  std::string model;        ///< its name
  std::string fingerprint;  ///< see model_fingerprint
  std::string chat_template;
  std::string system;
  std::vector<Setting> settings;
  std::vector<Turn> turns;
  std::vector<TokenId> ids;  ///< all that the model sees
};

/// One JSON object that people can read: a field a line, ids in one line. An answer that ends
/// inside a character has U+FFFD there.
std::string to_json_text(const SavedChat& chat);

/// Throws Error that names the file and the field when it is no saved chat.
SavedChat read_saved_chat(const std::filesystem::path& file);

}  // namespace openelm::cli

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/options.h"

namespace openelm::cli {

/// What the command line of `chat` says.
struct ChatOptions {
  LogOptions log;
  ModelOptions model;
  ComputeOptions compute;
  SamplingFlags sampling;
  std::string system;
  std::optional<std::string> chat_template;  ///< a name or a file
  std::optional<std::int32_t> max_tokens;
  bool ignore_eos = false;
  bool no_stream = false;
  bool no_history = false;
  bool show_prompt = false;
  bool json = false;
  bool stats = false;
};

}  // namespace openelm::cli

#pragma once

#include <filesystem>
#include <memory>

#include <openelm/engine.h>
#include <openelm/session.h>
#include <openelm/tokenizer.h>

#include "cli/options.h"

namespace openelm::cli {

struct LoadedEngine {
  std::shared_ptr<const Engine> engine;
  double seconds = 0;
};

/// Loads the weights, with progress on a terminal. Throws Error, and UsageError for an instruction
/// set this CPU does not have, or a group size of weights that are not to be quantised.
LoadedEngine load_engine(const std::filesystem::path& folder, const ComputeOptions& compute,
                         bool quiet);

/// A session as the options ask for. Without --kv-type: the type that suits the model.
Session open_session(const std::shared_ptr<const Engine>& engine, const ComputeOptions& compute);

}  // namespace openelm::cli

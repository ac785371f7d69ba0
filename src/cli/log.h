#pragma once

#include "cli/options.h"

namespace openelm::cli {

/// Directs spdlog to stderr: "openelm: warning: text". Called once before the command line is read,
/// and again with what it said.
void set_up_log(const LogOptions& options);

}  // namespace openelm::cli

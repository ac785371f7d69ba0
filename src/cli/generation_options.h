#pragma once

#include <string>

#include <openelm/generation.h>

namespace CLI {
class App;
}

namespace openelm::cli {

/// -n, --stop, --ignore-eos and --logprobs.
void add_generation_options(CLI::App& app, GenerationOptions& generation,
                            const std::string& logprobs_help);

}  // namespace openelm::cli

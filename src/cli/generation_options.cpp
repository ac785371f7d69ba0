#include "cli/generation_options.h"

#include <limits>

#include <CLI/CLI.hpp>

#include <openelm/error.h>

#include "base/utf8.h"
#include "cli/options.h"

namespace openelm::cli {

void add_generation_options(CLI::App& app, GenerationOptions& generation,
                            const std::string& logprobs_help) {
  constexpr std::int32_t int_max = std::numeric_limits<std::int32_t>::max();
  add_integer(app, "-n,--max-tokens", generation.max_tokens, {-1, int_max},
              "Most tokens to generate; -1, the default: until EOS, a stop string, or the "
              "context's end");
  add_value(app, "--stop", "TEXT", "End before this text; repeatable",
            [&generation](auto flag, auto text) {
              if (text.empty())
                throw UsageError(std::string(flag) + ": a stop string is not empty");
              require_utf8(text, flag);
              generation.stop.emplace_back(text);
            })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->trigger_on_parse();
  app.add_flag("--ignore-eos", generation.ignore_eos, "Never choose EOS");
  add_integer(app, "--logprobs", generation.logprobs, {0, int_max}, logprobs_help);
}

}  // namespace openelm::cli

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openelm/config.h>
#include <openelm/sampling.h>

#include "cli/parse_number.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace openelm::cli {

/// What every command has: how much is said on stderr.
struct LogOptions {
  bool quiet = false;
  std::string level = "info";
  std::string color = "auto";
};

/// Which files.
struct ModelOptions {
  std::optional<std::string> model;
  std::optional<std::string> tokenizer;
};

/// How they are computed with.
struct ComputeOptions {
  int threads = 0;  ///< 0: as many as the process may use
  bool pin = false;
  std::string isa = "auto";
  std::string compute = "exact";
  std::int32_t context = 0;       ///< 0: the model's own
  std::optional<KvType> kv_type;  ///< absent: the command's default
  std::int32_t quantize = 0;      ///< bits of the weights; 0: as they are
  std::int32_t group_size = 0;    ///< of quantised weights; 0: the default
};

/// How the next token is chosen. `seed` is drawn at random unless given.
struct SamplingFlags {
  SamplingOptions options;
  std::optional<std::uint64_t> seed;

  /// The options with the seed that is to be used.
  SamplingOptions resolve() const;
};

void add_log_options(CLI::App& app, LogOptions& options);
void add_model_option(CLI::App& app, ModelOptions& options);
void add_tokenizer_option(CLI::App& app, ModelOptions& options);
void add_threads_option(CLI::App& app, int& threads);
void add_thread_list_option(CLI::App& app, std::vector<int>& threads);
void add_kernel_options(CLI::App& app, ComputeOptions& options);
void add_context_option(CLI::App& app, ComputeOptions& options);
/// All of the above: for commands that run a model on text.
void add_model_and_compute_options(CLI::App& app, ModelOptions& model, ComputeOptions& compute);
void add_sampling_options(CLI::App& app, SamplingFlags& options);

/// Options whose text is parsed by `parse(flag, text)`; given twice, the last one counts.
using ParseValue = std::function<void(std::string_view flag, std::string_view text)>;
CLI::Option* add_value(CLI::App& app, const std::string& names, const std::string& type,
                       const std::string& help, ParseValue parse);
CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& target,
                        std::vector<std::string> allowed, const std::string& help);
CLI::Option* add_integer(CLI::App& app, const std::string& names, std::int32_t& target,
                         std::pair<std::int32_t, std::int32_t> range, const std::string& help);
CLI::Option* add_real(CLI::App& app, const std::string& names, float& target, RealRange range,
                      const std::string& help);
/// One of a few numbers.
CLI::Option* add_number_choice(CLI::App& app, const std::string& names, std::int32_t& target,
                               std::vector<std::int32_t> allowed, const std::string& help);

}  // namespace openelm::cli

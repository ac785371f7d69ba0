#include "cli/options.h"

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include <CLI/CLI.hpp>

#include <openelm/error.h>
#include <openelm/quantization.h>

namespace openelm::cli {
namespace {

constexpr std::int32_t kIntMax = std::numeric_limits<std::int32_t>::max();
constexpr double kFloatMax = std::numeric_limits<float>::max();
constexpr RealRange kAnyReal{-kFloatMax, kFloatMax};
constexpr std::int32_t kMaxThreads = 1024;

/// "-n,--max-tokens" -> "--max-tokens": the name that messages use.
std::string long_name(const std::string& names) {
  const std::size_t dashes = names.find("--");
  return dashes == std::string::npos ? names : names.substr(dashes);
}

void choose(std::string_view flag, std::string_view text, const std::vector<std::string>& allowed,
            std::string& target) {
  if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
    std::string list;
    for (const std::string& word : allowed) list += (list.empty() ? "" : ", ") + word;
    throw UsageError(std::string(flag) + ": '" + std::string(text) + "' is not one of " + list);
  }
  target = text;
}

KvType parse_kv_type(std::string_view flag, std::string_view text) {
  if (text == "f32") return KvType::f32;
  if (text == "f16") return KvType::f16;
  if (text == "bf16") return KvType::bf16;
  if (text == "q8") return KvType::q8;
  throw UsageError(std::string(flag) + ": '" + std::string(text) +
                   "' is not one of f32, f16, bf16, q8");
}

}  // namespace

SamplingOptions SamplingFlags::resolve() const {
  SamplingOptions resolved = options;
  // 32 random bits are plenty, and short enough to be typed again.
  resolved.seed = seed ? *seed : std::random_device{}();
  return resolved;
}

CLI::Option* add_value(CLI::App& app, const std::string& names, const std::string& type,
                       const std::string& help, ParseValue parse) {
  auto handle = [parse = std::move(parse), flag = long_name(names)](const std::string& text) {
    parse(flag, text);
  };
  return app.add_option_function<std::string>(names, handle, help)
      ->type_name(type)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& target,
                        std::vector<std::string> allowed, const std::string& help) {
  std::string type;
  for (const std::string& word : allowed) type += (type.empty() ? "" : "|") + word;
  return add_value(app, names, type, help,
                   [allowed = std::move(allowed), &target](auto flag, auto text) {
                     choose(flag, text, allowed, target);
                   });
}

CLI::Option* add_integer(CLI::App& app, const std::string& names, std::int32_t& target,
                         std::pair<std::int32_t, std::int32_t> range, const std::string& help) {
  return add_value(app, names, "N", help, [&target, range](auto flag, auto text) {
    target = static_cast<std::int32_t>(parse_integer(flag, text, range.first, range.second));
  });
}

CLI::Option* add_number_choice(CLI::App& app, const std::string& names, std::int32_t& target,
                               std::vector<std::int32_t> allowed, const std::string& help) {
  std::vector<std::string> words;
  std::string type;
  for (const std::int32_t number : allowed) {
    words.push_back(std::to_string(number));
    type += (type.empty() ? "" : "|") + words.back();
  }
  return add_value(app, names, type, help,
                   [allowed = std::move(allowed), words, &target](auto flag, auto text) {
                     std::string word;
                     choose(flag, text, words, word);
                     const auto at = std::find(words.begin(), words.end(), word) - words.begin();
                     target = allowed[static_cast<std::size_t>(at)];
                   });
}

CLI::Option* add_real(CLI::App& app, const std::string& names, float& target, RealRange range,
                      const std::string& help) {
  return add_value(app, names, "X", help, [&target, range](auto flag, auto text) {
    target = static_cast<float>(parse_real(flag, text, range));
  });
}

void add_log_options(CLI::App& app, LogOptions& options) {
  app.add_flag("-q,--quiet", options.quiet, "Say nothing on stderr but errors")->group("Messages");
  add_choice(app, "--log-level", options.level, {"debug", "info", "warning", "error"},
             "Least level of messages on stderr (default info)")
      ->group("Messages");
  add_choice(app, "--color", options.color, {"auto", "always", "never"},
             "Colours on stderr; auto: on a terminal, unless NO_COLOR is set")
      ->group("Messages");
}

void add_model_option(CLI::App& app, ModelOptions& options) {
  add_value(app, "-m,--model", "PATH",
            "Model folder; default: $OPENELM_MODEL, else the bundled model",
            [&options](auto, auto text) { options.model = text; })
      ->group("Model");
}

void add_tokenizer_option(CLI::App& app, ModelOptions& options) {
  add_value(app, "--tokenizer", "PATH", "A tokenizer.model that lies elsewhere",
            [&options](auto, auto text) { options.tokenizer = text; })
      ->group("Model");
}

void add_threads_option(CLI::App& app, int& threads) {
  add_integer(app, "-t,--threads", threads, {1, kMaxThreads},
              "Threads; default: the CPUs this process may use")
      ->group("Computing");
}

void add_thread_list_option(CLI::App& app, std::vector<int>& threads) {
  add_value(app, "-t,--threads", "N,N",
            "Numbers of threads to try; default: the CPUs this process may use",
            [&threads](auto flag, auto text) {
              threads = parse_list(flag, text, 1, kMaxThreads);
              if (threads.empty()) throw UsageError(std::string(flag) + ": no number given");
            })
      ->group("Computing");
}

void add_kernel_options(CLI::App& app, ComputeOptions& options) {
  add_choice(app, "--isa", options.isa,
             {"auto", "scalar", "avx2", "avxvnni", "avx512", "avx512bf16", "neon", "neon_dotprod",
              "neon_i8mm"},
             "Instruction set; auto: $OPENELM_ISA, else the best of this CPU")
      ->group("Computing");
  app.add_flag("--pin", options.pin, "Keep each thread on a CPU of its own")->group("Computing");
  add_value(app, "--kv-type", "f32|f16|bf16|q8", "How keys and values are stored",
            [&options](auto flag, auto text) { options.kv_type = parse_kv_type(flag, text); })
      ->group("Computing");
  add_choice(app, "--compute", options.compute, {"exact", "fast"},
             "fast: bf16 weights by the CPU's bf16 dot product, where that is faster")
      ->group("Computing");
  add_number_choice(app, "--quantize", options.quantize, {8, 4},
                    "Quantise the weights to so many bits while loading; embedding and head to 8")
      ->group("Computing");
  add_number_choice(app, "--group-size", options.group_size,
                    {kAffineGroupSizes.begin(), kAffineGroupSizes.end()},
                    "With --quantize: weights that share a scale (default 64)")
      ->group("Computing");
}

void add_context_option(CLI::App& app, ComputeOptions& options) {
  add_integer(app, "--context", options.context, {1, kIntMax},
              "Positions to make room for; default: the model's own")
      ->group("Computing");
}

void add_model_and_compute_options(CLI::App& app, ModelOptions& model, ComputeOptions& compute) {
  add_model_option(app, model);
  add_tokenizer_option(app, model);
  add_threads_option(app, compute.threads);
  add_kernel_options(app, compute);
  add_context_option(app, compute);
}

void add_sampling_options(CLI::App& app, SamplingFlags& flags) {
  SamplingOptions& o = flags.options;
  const std::string group = "Sampling";
  add_real(app, "--temperature", o.temperature, {0, kFloatMax}, "0: greedy (default 0.8)")
      ->group(group);
  add_integer(app, "--top-k", o.top_k, {0, kIntMax}, "Keep the K best; 0: off (default 40)")
      ->group(group);
  add_real(app, "--top-p", o.top_p, {0, 1},
           "Keep the best of this total probability, one at least; 1: off (default 0.95)")
      ->group(group);
  add_real(app, "--min-p", o.min_p, {0, 1},
           "Keep those at least this probable relative to the best; 0: off (default 0)")
      ->group(group);
  add_real(app, "--repetition-penalty", o.repetition_penalty, {0, kFloatMax, true},
           "Makes tokens of the window less likely; 1: off (default 1)")
      ->group(group);
  add_integer(app, "--repetition-window", o.repetition_window, {-1, kIntMax},
              "Last tokens the penalties look at, prompt included; -1: all (default 64)")
      ->group(group);
  add_real(app, "--frequency-penalty", o.frequency_penalty, kAnyReal,
           "Subtracted for every occurrence in the window (default 0)")
      ->group(group);
  add_real(app, "--presence-penalty", o.presence_penalty, kAnyReal,
           "Subtracted once for what occurs in the window (default 0)")
      ->group(group);
  add_value(app, "--logit-bias", "ID=B", "Added to a token's logit; -inf forbids it; repeatable",
            [&o](auto flag, auto text) { o.logit_bias.push_back(parse_bias(flag, text)); })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->trigger_on_parse()
      ->group(group);
  add_value(app, "--seed", "N", "Of the random draws; default: random, printed by --stats",
            [&flags](auto flag, auto text) { flags.seed = parse_unsigned(flag, text); })
      ->group(group);
}

}  // namespace openelm::cli

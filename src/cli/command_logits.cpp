#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <numeric>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <openelm/error.h>

#include "base/sha256.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/input_text.h"
#include "cli/interrupt.h"
#include "cli/loading.h"
#include "cli/log.h"
#include "cli/model_location.h"
#include "cli/options.h"
#include "cli/output.h"

namespace openelm::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t kIntMax = std::numeric_limits<std::int32_t>::max();

struct LogitsOptions {
  LogOptions log;
  ModelOptions model;
  ComputeOptions compute;
  InputOptions input;
  std::string at = "last";
  std::int32_t top = 10;
  bool all = false;
  std::int32_t chunk = SessionOptions{}.chunk;
};

/// "last", "all", or a list of positions; ascending, each once.
std::vector<std::int32_t> wanted_positions(const std::string& at, std::int32_t n) {
  if (at == "last") return {n - 1};
  std::vector<std::int32_t> wanted;
  if (at == "all") {
    wanted.resize(static_cast<std::size_t>(n));
    std::iota(wanted.begin(), wanted.end(), 0);
    return wanted;
  }
  wanted = parse_list("--at", at, 0, n - 1);
  if (wanted.empty()) throw UsageError("--at: no positions: last, all, or a list such as 0,5,17");
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

/// Best first, ties by lower id.
Json top_json(std::span<const float> logits, std::int32_t top) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto n = std::min<std::ptrdiff_t>(top, std::ssize(ids));
  const auto better = [&logits](TokenId a, TokenId b) {
    const float x = logits[static_cast<std::size_t>(a)];
    const float y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  std::partial_sort(ids.begin(), ids.begin() + n, ids.end(), better);
  Json list = Json::array();
  for (auto id = ids.begin(); id != ids.begin() + n; ++id) {
    list.push_back({{"id", *id}, {"logit", logits[static_cast<std::size_t>(*id)]}});
  }
  return list;
}

/// Hashes float32 values as little-endian bytes on every machine.
void hash_logits(std::span<const float> logits, Sha256& hash) {
  for (const float logit : logits) {
    const auto bits = std::bit_cast<std::uint32_t>(logit);
    const std::array<std::byte, 4> bytes{
        static_cast<std::byte>(bits & 0xFFU), static_cast<std::byte>(bits >> 8 & 0xFFU),
        static_cast<std::byte>(bits >> 16 & 0xFFU), static_cast<std::byte>(bits >> 24)};
    hash.update(bytes);
  }
}

/// Positions are printed as they come, since all logits of a long text are a lot of JSON. Nothing
/// is printed when the first of them cannot be computed.
void print_logits(Session& session, const std::vector<TokenId>& ids,
                  const std::vector<std::int32_t>& wanted, const LogitsOptions& options) {
  Output output;
  Sha256 hash;
  bool first = true;
  session.evaluate(ids, wanted, [&](std::size_t position, std::span<const float> logits) {
    hash_logits(logits, hash);
    Json entry{{"position", position}};
    if (options.all) {
      entry["logits"] = logits;
    } else {
      entry["top"] = top_json(logits, options.top);
    }
    output.write((first ? "{\"ids\":" + Json(ids).dump() + ",\"positions\":[" : ",") +
                 entry.dump());
    first = false;
  });
  output.line("],\"sha256\":\"" + hash.hex_digest() + "\"}");
}

int run_logits(const LogitsOptions& options) {
  set_up_log(options.log);
  require_input(options.input, "evaluate");
  const auto folder = locate_model(options.model, kBundledModel);
  std::optional<std::string> text;
  std::shared_ptr<const Tokenizer> tokenizer;
  if (!options.input.ids) {
    text = read_text(options.input);
    tokenizer = load_tokenizer(options.model, folder);
  }
  const LoadedEngine loaded = load_engine(folder, options.compute, options.log.quiet);
  const ModelConfig& config = loaded.engine->config();
  if (tokenizer) {
    require_same_vocabulary(*tokenizer, tokenizer_path(options.model, folder), config);
  }
  const Prompt prompt = make_prompt(options.input, std::move(text), tokenizer.get(), config);

  SessionOptions session_options;
  session_options.context = options.compute.context;
  session_options.kv_type = options.compute.kv_type.value_or(KvType::f32);
  session_options.chunk = options.chunk;
  Session session(loaded.engine, session_options);
  require_fits(prompt, session.context());
  warn_about(prompt);
  const InterruptScope interrupt(1);
  session.set_cancel(&interrupt.requested());
  const auto wanted = wanted_positions(options.at, static_cast<std::int32_t>(prompt.ids.size()));
  print_logits(session, prompt.ids, wanted, options);
  return kExitDone;
}

}  // namespace

Command add_logits(CLI::App& program) {
  auto options = std::make_shared<LogitsOptions>();
  CLI::App* app = program.add_subcommand("logits", "Print the logits after a prompt, as JSON");
  add_prompt_options(*app, options->input);
  add_value(*app, "--at", "last|all|LIST", "Positions, counted from 0 (default last)",
            [o = options.get()](auto, auto text) { o->at = text; });
  CLI::Option* top = add_integer(*app, "--top", options->top, {1, kIntMax},
                                 "The N best of each position (default 10)");
  app->add_flag("--all", options->all, "All logits of each position")->excludes(top);
  add_integer(*app, "--chunk", options->chunk, {1, kIntMax},
              "Evaluate N tokens at a time; the logits do not depend on it (default 512)");
  add_model_and_compute_options(*app, options->model, options->compute);
  add_log_options(*app, options->log);
  app->footer(
      "Keys and values are kept as f32 unless --kv-type says otherwise. sha256 is over the float32 "
      "logits (little-endian) of the positions asked for, in ascending order.\n\n"
      "Example:\n  openelm logits --ids \"1 450 7483\" --at last --top 5");
  return {app, [options] { return run_logits(*options); }};
}

}  // namespace openelm::cli

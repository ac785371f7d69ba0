#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <unordered_map>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <openelm/batch.h>
#include <openelm/error.h>

#include "base/atomic_file.h"
#include "base/sha256.h"
#include "cli/batch_input.h"
#include "cli/batch_output.h"
#include "cli/batch_record.h"
#include "cli/batch_report.h"
#include "cli/batch_resume.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/generation_options.h"
#include "cli/generation_settings.h"
#include "cli/input_text.h"
#include "cli/interrupt.h"
#include "cli/loading.h"
#include "cli/log.h"
#include "cli/model_location.h"
#include "cli/options.h"
#include "runtime/checked_context.h"
#include "runtime/model_fingerprint.h"

namespace openelm::cli {
namespace {

/// Records read ahead of those that are being generated.
constexpr std::size_t kReadAhead = 256;

struct BatchCommandOptions {
  LogOptions log;
  ModelOptions model;
  ComputeOptions compute;
  SamplingFlags sampling;
  GenerationOptions generation;
  std::string in = "-";
  std::string out = "-";
  std::string format = "jsonl";
  std::optional<std::string> summary;
  Shard shard;
  std::int32_t parallel = 0;
  std::uint64_t kv_bytes = 0;
  bool no_bos = false;
  bool carry = false;
  bool unordered = false;
  bool strict = false;
  bool resume = false;
  bool force = false;
};

Shard parse_shard(std::string_view flag, std::string_view text) {
  constexpr std::int64_t kMost = 1'000'000;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    throw UsageError(std::string(flag) + ": '" + std::string(text) + "' is not I/N, such as 2/8");
  }
  const std::int64_t of = parse_integer(flag, text.substr(slash + 1), 1, kMost);
  const std::int64_t number = parse_integer(flag, text.substr(0, slash), 1, of);
  return {static_cast<std::uint64_t>(number - 1), static_cast<std::uint64_t>(of)};
}

/// All that the text of a record depends on, besides the record and the run's seed.
nlohmann::ordered_json settings_of_run(const BatchCommandOptions& options,
                                       const GenerationOptions& generation,
                                       const std::filesystem::path& folder, const Engine& engine,
                                       std::int32_t context, KvType kv_type) {
  Sha256 tokenizer;
  const std::string bytes = read_bytes(tokenizer_path(options.model, folder).string());
  tokenizer.update(std::as_bytes(std::span(bytes)));
  nlohmann::ordered_json settings = {
      {"model", model_fingerprint(folder)},
      {"tokenizer", tokenizer.hex_digest()},
      {"weights", to_string(engine.weight_format())},
      {"quantize", options.compute.quantize},
      {"group_size", options.compute.group_size},
      {"compute", options.compute.compute},
      {"context", context},
      {"kv_type", to_string(kv_type)},
      {"format", options.format},
      {"no_bos", options.no_bos},
      {"carry", options.carry},
      {"shard", fmt::format("{}/{}", options.shard.first + 1, options.shard.of)},
      {"stop", generation.stop},
      {"logprobs", generation.logprobs}};
  for (const Setting& setting : settings_of(generation)) {
    // The seed is kept apart, since a run that goes on takes it over.
    if (setting.name != "seed") settings[setting.name] = setting.value;
  }
  return settings;
}

/// Makes the output ready to be added to: empty and with a header of this run, or as an earlier run
/// left it, whose finished records are returned and whose seed is taken over.
FinishedRecords prepare_output(const BatchCommandOptions& options, LineFile& file,
                               RunHeader& header) {
  if (options.resume && file.size() > 0) {
    continue_run(options.out, options.sampling.seed, header);
    FinishedRecords finished(options.out);
    file.truncate(finished.whole_bytes());
    return finished;
  }
  if (file.size() > 0 && !options.force) {
    throw Error(options.out + ": exists already; --resume goes on with it, --force replaces it");
  }
  file.truncate(0);
  write_run_header(options.out, header);
  return {};
}

/// One run: records on their way from the input through the model to the output.
class BatchRun {
 public:
  BatchRun(BatchInput& input, BatchOutput& output, const Tokenizer& tokenizer, bool strict,
           const std::atomic<bool>& interrupt)
      : input_(input),
        output_(output),
        tokenizer_(tokenizer),
        strict_(strict),
        interrupt_(interrupt) {}

  BatchHooks::Supply next(BatchRequest& request, bool wait) {
    while (!stopped() && output_.has_room()) {
      BatchRecord record;
      const BatchInput::Supply supply = input_.next(record, wait, interrupt_);
      if (supply == BatchInput::Supply::none_yet) return BatchHooks::Supply::none_yet;
      if (supply == BatchInput::Supply::end) {
        at_end_ = true;
        return BatchHooks::Supply::end;
      }
      const std::uint64_t place = records_++;
      if (record.error) {
        fail(record, place, *record.error);
        continue;
      }
      request = record.request;
      running_.emplace(request.number, Running{std::move(record), place});
      return BatchHooks::Supply::request;
    }
    return stopped() ? BatchHooks::Supply::end : BatchHooks::Supply::none_yet;
  }

  bool answer(const BatchAnswer& answer) {
    const auto running = running_.extract(answer.number);
    const auto& [record, place] = running.mapped();
    if (answer.error) {
      fail(record, place, *answer.error);
    } else {
      output_.put(place, batch_output_line(record, answer.result, tokenizer_), false);
    }
    // What comes before the failed record is still finished.
    return !(strict_ && output_.failures_written() > 0);
  }

  std::uint64_t records() const noexcept { return records_ - running_.size(); }
  std::uint64_t failed() const noexcept { return failed_; }
  bool at_end() const noexcept { return at_end_; }

 private:
  struct Running {
    BatchRecord record;
    std::uint64_t place;
  };

  bool stopped() const noexcept { return strict_ && failed_ > 0; }

  void fail(const BatchRecord& record, std::uint64_t place, const std::string& message) {
    ++failed_;
    spdlog::warn("record {} (line {}): {}", record.index, record.line, message);
    output_.put(place, batch_error_line(record, message), true);
  }

  BatchInput& input_;
  BatchOutput& output_;
  const Tokenizer& tokenizer_;
  bool strict_;
  const std::atomic<bool>& interrupt_;
  std::unordered_map<std::uint64_t, Running> running_;  // by index
  std::uint64_t records_ = 0;                           // taken from the input
  std::uint64_t failed_ = 0;
  bool at_end_ = false;
};

void require_sensible_files(const BatchCommandOptions& options) {
  if (options.in == "-" && ::isatty(STDIN_FILENO) == 1) {
    throw UsageError("no records: give -i FILE, or pipe them to standard input");
  }
  std::error_code error;
  if (options.in != "-" && options.out != "-" &&
      std::filesystem::equivalent(options.in, options.out, error)) {
    throw UsageError("-i and -o name the same file");
  }
  if (options.resume && options.force) throw UsageError("--resume and --force exclude each other");
}

int run_batch(const BatchCommandOptions& options) {
  using Clock = std::chrono::steady_clock;
  set_up_log(options.log);
  require_sensible_files(options);
  const auto folder = locate_model(options.model, kBundledModel);
  const auto tokenizer = load_tokenizer(options.model, folder);
  const LoadedEngine loaded = load_engine(folder, options.compute, options.log.quiet);
  const ModelConfig& config = loaded.engine->config();
  require_same_vocabulary(*tokenizer, tokenizer_path(options.model, folder), config);
  const std::int32_t context = checked_context(config, options.compute.context);
  const KvType kv_type = options.compute.kv_type.value_or(default_kv_type(config));

  GenerationOptions generation = options.generation;
  generation.sampling = options.sampling.resolve();
  generation.sampling.validate(config.vocab_size);
  LineFile file(options.out);
  FinishedRecords finished;
  if (file.is_regular()) {
    RunHeader header{
        .settings = settings_of_run(options, generation, folder, *loaded.engine, context, kv_type),
        .seed = generation.sampling.seed};
    finished = prepare_output(options, file, header);
    generation.sampling.seed = header.seed;
  } else if (options.resume) {
    throw UsageError("--resume needs -o FILE, a regular file");
  }

  const InterruptScope interrupt(1);
  const BatchRecordParser parser({.json = options.format == "jsonl",
                                  .no_bos = options.no_bos,
                                  .carry = options.carry,
                                  .generation = generation},
                                 *tokenizer, config, context);
  const Clock::time_point start = Clock::now();
  BatchSummary summary{
      .resumed = finished.count(), .seed = generation.sampling.seed, .statistics = {}};
  {
    BatchInput input(options.in, options.shard, parser, finished, kReadAhead);
    BatchOutput output(file, options.unordered);
    BatchRun run(input, output, *tokenizer, options.strict, interrupt.requested());
    BatchProgress progress(options.log.quiet, input);
    const BatchHooks hooks{
        .next = [&](BatchRequest& request, bool wait) { return run.next(request, wait); },
        .answer = [&](const BatchAnswer& answer) { return run.answer(answer); },
        .progress =
            [&](const BatchStatistics& s) { progress.show(finished.count() + run.records(), s); }};
    summary.statistics = generate_batch(loaded.engine, tokenizer.get(),
                                        {.context = context,
                                         .kv_type = kv_type,
                                         .parallel = options.parallel,
                                         .kv_bytes = options.kv_bytes},
                                        hooks, &interrupt.requested());
    summary.records = run.records();
    summary.failed = finished.failed() + run.failed();
    summary.complete = run.at_end() && !summary.statistics.ended_early;
  }
  file.close();
  summary.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!options.log.quiet) std::cerr << summary_text(summary);
  if (options.summary) {
    write_file_atomically(*options.summary, summary_json(summary).dump(2) + "\n");
  }
  if (interrupt.requested()) return kExitInterrupted;
  return summary.failed > 0 ? kExitRecordsFailed : kExitDone;
}

}  // namespace

Command add_batch(CLI::App& program) {
  auto options = std::make_shared<BatchCommandOptions>();
  BatchCommandOptions* const o = options.get();
  CLI::App* app = program.add_subcommand("batch", "Generate for many prompts together");
  add_value(*app, "-i,--input", "FILE", "The records; -, the default: standard input",
            [o](auto, auto text) { o->in = text; });
  add_value(*app, "-o,--output", "FILE",
            "Where the answers go, a line each; -, the default: standard output",
            [o](auto, auto text) { o->out = text; });
  add_choice(*app, "--format", o->format, {"jsonl", "text"},
             "Of the input: a JSON object a line (default), or a prompt a line");
  add_generation_options(*app, o->generation, "Log-probabilities of each token and of the N best");
  app->add_flag("--no-bos", o->no_bos, "Do not put BOS in front of the prompts");
  app->add_flag("--carry", o->carry, "Give unknown fields of a record out again, as \"input\"");
  app->add_flag("--unordered", o->unordered, "Write answers as they come, not in input order");
  app->add_flag("--resume", o->resume,
                "Go on with an output that was begun; begins one if none was");
  app->add_flag("--force", o->force, "Replace an output that exists");
  app->add_flag("--strict", o->strict, "Stop at the first record that fails");
  add_value(*app, "--shard", "I/N", "Do only every N-th record, from the I-th on",
            [o](auto flag, auto text) { o->shard = parse_shard(flag, text); });
  add_value(*app, "--summary", "FILE", "Write counts and speeds there, as JSON",
            [o](auto, auto text) { o->summary = text; });
  add_integer(*app, "--parallel", o->parallel, {1, kMaxParallel},
              "Sequences generated together; default: by threads and memory")
      ->group("Computing");
  add_value(*app, "--kv-memory", "SIZE",
            "Most memory for keys and values, such as 2G; default: a quarter of what is free",
            [o](auto flag, auto text) { o->kv_bytes = parse_bytes(flag, text); })
      ->group("Computing");
  add_model_and_compute_options(*app, o->model, o->compute);
  add_sampling_options(*app, o->sampling);
  add_log_options(*app, o->log);
  app->footer(
      "A record is {\"id\": any, \"prompt\": text} and may say max_tokens, temperature, top_k,\n"
      "top_p, min_p, repetition_penalty, repetition_window, frequency_penalty, presence_penalty,\n"
      "seed, stop, ignore_eos and logprobs for itself. Exit code 3: done, but records failed.\n\n"
      "Example:\n  openelm batch -i prompts.jsonl -o answers.jsonl -n 64 --resume");
  return {app, [options] { return run_batch(*options); }};
}

}  // namespace openelm::cli

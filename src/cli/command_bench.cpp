#include <limits>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <openelm/batch.h>
#include <openelm/error.h>
#include <openelm/version.h>

#include "base/utf8.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/loading.h"
#include "cli/log.h"
#include "cli/model_location.h"
#include "cli/options.h"
#include "cli/output.h"
#include "runtime/benchmark.h"

namespace openelm::cli {
namespace {

constexpr std::int32_t kIntMax = std::numeric_limits<std::int32_t>::max();
constexpr double kGiga = 1e9;

struct BenchOptions {
  LogOptions log;
  ModelOptions model;
  ComputeOptions compute;  // its `threads` is set for each run
  std::vector<std::int32_t> threads{0};
  std::int32_t n_prompt = 512;
  std::int32_t n_gen = 128;
  std::int32_t depth = 0;
  std::int32_t batch = 1;
  std::int32_t repetitions = 5;
  std::string output = "md";
};

/// A measured case, with what it was measured on.
struct Row {
  BenchmarkCase benchmark;
  BenchmarkResult result;
  std::string model;
  int threads;
  std::string isa;
  std::string format;
  ReadBandwidth probe;

  double gigabytes_per_second() const { return result.bytes_per_second() / kGiga; }
  double probe_gigabytes_per_second() const { return probe.bytes_per_second / kGiga; }
  /// A prompt is bound by arithmetic: there the share of the bandwidth says nothing.
  std::optional<double> share_of_probe() const {
    if (benchmark.n_gen == 0) return std::nullopt;
    return result.bytes_per_second() / probe.bytes_per_second;
  }
};

std::vector<BenchmarkCase> cases(const BenchOptions& options) {
  std::vector<BenchmarkCase> list;
  const auto add = [&](std::int32_t n_prompt, std::int32_t n_gen) {
    if (n_prompt + n_gen > 0) {
      list.push_back(
          {.n_prompt = n_prompt, .n_gen = n_gen, .depth = options.depth, .batch = options.batch});
    }
  };
  add(options.n_prompt, 0);
  add(0, options.n_gen);
  if (list.empty()) throw UsageError("nothing to measure: both -p and -n are 0");
  return list;
}

nlohmann::ordered_json to_json(const Row& row) {
  const std::optional<double> share = row.share_of_probe();
  return {{"test", row.benchmark.name()},
          {"n_prompt", row.benchmark.n_prompt},
          {"n_gen", row.benchmark.n_gen},
          {"depth", row.benchmark.depth},
          {"batch", row.benchmark.batch},
          {"threads", row.threads},
          {"isa", row.isa},
          {"format", row.format},
          {"tokens_per_second",
           {{"median", row.result.median()},
            {"min", row.result.min()},
            {"max", row.result.max()},
            {"samples", row.result.tokens_per_second}}},
          {"gb_per_second", row.gigabytes_per_second()},
          {"probe_gb_per_second", row.probe_gigabytes_per_second()},
          {"probe_bytes", row.probe.bytes},
          {"share_of_probe", share ? nlohmann::ordered_json(*share) : nullptr},
          {"model", replace_invalid_utf8(row.model)},
          {"version", kVersion}};
}

void print_json(const std::vector<Row>& rows, Output& output) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows) list.push_back(to_json(row));
  output.line(list.dump(1));
}

/// RFC 4180: a field with a comma, a quote or a line end is quoted.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

void print_csv(const std::vector<Row>& rows, Output& output) {
  output.line(
      "model,test,batch,threads,isa,format,tokens_per_second,min,max,gb_per_second,probe_gb_per_"
      "second,"
      "probe_bytes,share_of_probe,version");
  for (const Row& row : rows) {
    const std::optional<double> share = row.share_of_probe();
    output.line(fmt::format("{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{},{},{}",
                            csv_field(row.model), row.benchmark.name(), row.benchmark.batch,
                            row.threads, row.isa, row.format, row.result.median(), row.result.min(),
                            row.result.max(), row.gigabytes_per_second(),
                            row.probe_gigabytes_per_second(), row.probe.bytes,
                            share ? fmt::format("{:.3f}", *share) : "", kVersion));
  }
}

void print_markdown(const std::vector<Row>& rows, Output& output) {
  output.line(
      "| model | test | batch | threads | isa | format | tokens/s | min .. max | GB/s | of the "
      "probe's |");
  output.line("|---|---|--:|--:|---|---|--:|--:|--:|--:|");
  for (const Row& row : rows) {
    const std::optional<double> share = row.share_of_probe();
    const std::string of_probe =
        share ? fmt::format("{:.0f} % of {:.1f} over {}", 100 * *share,
                            row.probe_gigabytes_per_second(), format_bytes(row.probe.bytes))
              : "-";
    output.line(
        fmt::format("| {} | {} | {} | {} | {} | {} | {:.2f} | {:.2f} .. {:.2f} | {:.2f} | {} |",
                    row.model, row.benchmark.name(), row.benchmark.batch, row.threads, row.isa,
                    row.format, row.result.median(), row.result.min(), row.result.max(),
                    row.gigabytes_per_second(), of_probe));
  }
}

int run_bench(const BenchOptions& options) {
  set_up_log(options.log);
  const std::vector<BenchmarkCase> wanted = cases(options);
  const auto folder = locate_model(options.model, kBundledModel);
  const InterruptScope interrupt(1);
  std::vector<Row> rows;
  for (const std::int32_t threads : options.threads) {
    ComputeOptions compute = options.compute;
    compute.threads = threads;
    const auto engine = load_engine(folder, compute, options.log.quiet).engine;
    const KvType kv_type = compute.kv_type.value_or(default_kv_type(engine->config()));
    const ReadBandwidth probe = measure_read_bandwidth(
        *engine, bytes_per_step(*engine, options.depth, options.batch, kv_type));
    for (const BenchmarkCase& benchmark : wanted) {
      spdlog::debug("{} with {} threads", benchmark.name(), engine->threads());
      rows.push_back(
          {benchmark,
           run_benchmark(engine, benchmark, options.repetitions, kv_type, &interrupt.requested()),
           engine->config().name, engine->threads(), engine->isa(),
           to_string(engine->weight_format()), probe});
    }
  }
  Output output;
  if (options.output == "json") {
    print_json(rows, output);
  } else if (options.output == "csv") {
    print_csv(rows, output);
  } else {
    print_markdown(rows, output);
  }
  return kExitDone;
}

}  // namespace

Command add_bench(CLI::App& program) {
  auto options = std::make_shared<BenchOptions>();
  BenchOptions* o = options.get();
  CLI::App* app = program.add_subcommand("bench", "Measure the speed of prompts and generation");
  add_integer(*app, "-p,--prompt-tokens", o->n_prompt, {0, kIntMax},
              "Tokens of the prompt; 0: leave it out (default 512)");
  add_integer(*app, "-n,--max-tokens", o->n_gen, {0, kIntMax},
              "Tokens generated; 0: leave it out (default 128)");
  add_integer(*app, "--depth", o->depth, {0, kIntMax}, "Tokens that stand before (default 0)");
  add_integer(*app, "--batch", o->batch, {1, kMaxParallel},
              "Sequences at a time, each with the prompt and the tokens of its own (default 1)");
  add_integer(*app, "-r,--repetitions", o->repetitions, {1, kIntMax},
              "Measured runs after one to warm up (default 5)");
  add_choice(*app, "--output", o->output, {"md", "csv", "json"}, "Form of the table (default md)");
  add_model_option(*app, o->model);
  add_thread_list_option(*app, o->threads);
  add_kernel_options(*app, o->compute);
  add_log_options(*app, o->log);
  app->footer(
      "Tokens are random; prompts are evaluated 512 tokens at a time. GB/s counts the weights once "
      "a pass and, for generation, the keys and values read. Beside it stands a probe: how fast "
      "the same threads read a set as large as what one step reads, from the caches as far as it "
      "fits "
      "into them (at most 512 MiB or four times the last-level cache).\n\n"
      "Example:\n  openelm bench -p 512 -n 128 -t 1,2 --output json");
  return {app, [options] { return run_bench(*options); }};
}

}  // namespace openelm::cli

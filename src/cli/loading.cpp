#include "cli/loading.h"

#include <chrono>
#include <optional>
#include <string>

#include <spdlog/spdlog.h>

#include <openelm/error.h>

#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/progress.h"

namespace openelm::cli {
namespace {

std::optional<QuantizeOptions> quantize_options(const ComputeOptions& compute) {
  if (compute.quantize == 0) {
    if (compute.group_size != 0) throw UsageError("--group-size is of use with --quantize only");
    return std::nullopt;
  }
  QuantizeOptions options;
  options.bits = compute.quantize;
  if (compute.group_size != 0) options.group_size = compute.group_size;
  return options;
}

}  // namespace

LoadedEngine load_engine(const std::filesystem::path& folder, const ComputeOptions& compute,
                         bool quiet) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const std::string name = folder.string();
  const MappedFileGuard guard(name.c_str());
  Progress progress("Loading " + folder.filename().string(), quiet);

  EngineOptions options;
  options.threads = compute.threads;
  options.pin = compute.pin;
  options.isa = compute.isa;
  options.compute = compute.compute == "fast" ? Compute::fast : Compute::exact;
  options.progress = [&progress](auto done, auto total) { progress.show(done, total); };
  options.quantize = quantize_options(compute);
  options.note = [](const std::string& line) { spdlog::warn("{}", line); };
  LoadedEngine loaded;
  loaded.engine = Engine::load(folder, options);
  loaded.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  spdlog::debug("loaded {}: {} parameters, {} of {} weights, {} kernels, {} threads, {:.2f} s",
                name, format_count(loaded.engine->config().parameter_count()),
                format_bytes(loaded.engine->weight_bytes()),
                to_string(loaded.engine->weight_format()), loaded.engine->isa(),
                loaded.engine->threads(), loaded.seconds);
  return loaded;
}

Session open_session(const std::shared_ptr<const Engine>& engine, const ComputeOptions& compute) {
  SessionOptions options;
  options.context = compute.context;
  options.kv_type = compute.kv_type.value_or(default_kv_type(engine->config()));
  return Session(engine, options);
}

}  // namespace openelm::cli

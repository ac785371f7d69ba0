#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <openelm/engine.h>
#include <openelm/error.h>

#include "checkpoint/tensor_source.h"
#include "model/quantize_plan.h"
#include "parallel/cpu_topology.h"
#include "runtime/engine_impl.h"

namespace openelm {
namespace {

constexpr int kMaxThreads = 1024;
constexpr std::int64_t kFloat16MaxParameters = 2'000'000'000;

void pin_threads(ThreadPool& pool) {
  const std::vector<int> cpus = cpus_to_pin(pool.size());
  std::atomic<bool> pinned{true};
  pool.run([&](const Worker& worker) noexcept {
    if (!pin_this_thread(cpus[static_cast<std::size_t>(worker.index())])) pinned = false;
  });
  if (!pinned) throw UsageError("pin: this system does not let threads be kept on a CPU");
}

}  // namespace

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

std::shared_ptr<const Engine> Engine::load(const std::filesystem::path& folder,
                                           const EngineOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    throw UsageError("threads: expected 0 to " + std::to_string(kMaxThreads) + ", got " +
                     std::to_string(options.threads));
  }
  const kernels::KernelTable& kernels = kernels::select(options.isa.c_str(), options.compute);
  const Checkpoint checkpoint = open_checkpoint(folder);
  const int threads = options.threads > 0 ? options.threads : default_thread_count();
  const ModelConfig& config = checkpoint.config;
  std::unique_ptr<Impl> impl(new Impl{
      .kernels = kernels,
      .pool = ThreadPool(threads),
      .model = {.config = config,
                .weights = {},
                .rope = RopeTable(config.head_dim, config.rope_base, config.max_context)}});
  if (options.pin) pin_threads(impl->pool);  // before they touch the weights they will read
  impl->model.weights = load_weights(checkpoint, impl->pool, options.progress, options.quantize);
  if (options.quantize && options.note) {
    const auto kept = describe_kept(*options.quantize, checkpoint.tensors);
    if (kept) options.note(folder.string() + ": " + *kept);
  }
  return std::shared_ptr<const Engine>(new Engine(std::move(impl)));
}

const ModelConfig& Engine::config() const noexcept { return impl_->model.config; }

WeightFormat Engine::weight_format() const noexcept {
  return impl_->model.weights.layers.empty() ? impl_->model.weights.embedding.format
                                             : impl_->model.weights.layers.back().up.format;
}

std::uint64_t Engine::weight_bytes() const noexcept { return impl_->model.weights.bytes(); }
const char* Engine::isa() const noexcept { return impl_->kernels.name; }
int Engine::threads() const noexcept { return impl_->pool.size(); }

KvType default_kv_type(const ModelConfig& config) noexcept {
  return config.parameter_count() > kFloat16MaxParameters ? KvType::bf16 : KvType::f16;
}

}  // namespace openelm

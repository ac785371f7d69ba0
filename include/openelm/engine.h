#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <openelm/config.h>
#include <openelm/quantization.h>

namespace openelm {

struct EngineOptions {
  /// Worker threads; 0: the CPUs this process may really use (affinity and cgroup quota).
  int threads = 0;
  /// Keeps each thread, the one that loads included, on a CPU of its own. Steadier where nothing
  /// else runs, slower where something does. UsageError where the system cannot.
  bool pin = false;
  /// "auto", or a variant of the kernels that this CPU must support: "scalar", "avx2", "avxvnni",
  /// "avx512", "avx512bf16", "neon", "neon_dotprod", "neon_i8mm". "auto" also honours the
  /// environment variable OPENELM_ISA.
  std::string isa = "auto";
  /// Whether bf16 weights may be multiplied in a way that is faster and less exact.
  Compute compute = Compute::exact;
  /// Called while weights are packed, from the loading thread: bytes done, bytes in all.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
  /// Quantise the weights while they are packed; only for models whose weights are plain.
  std::optional<QuantizeOptions> quantize = {};
  /// Called from the loading thread with a line of text that a user may want to know: which
  /// matrices could not be quantised.
  std::function<void(const std::string& line)> note = {};
};

/// A loaded model: configuration, packed weights, threads. Immutable; share it between sessions.
/// Passes of different sessions take turns on the engine's threads.
class Engine {
 public:
  /// Loads a Hugging Face or MLX folder. Throws Error when a file is missing or malformed, when
  /// shapes and configuration disagree, when weights are to be quantised that cannot be, or when
  /// memory does not suffice.
  static std::shared_ptr<const Engine> load(const std::filesystem::path& folder,
                                            const EngineOptions& options = {});

  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const ModelConfig& config() const noexcept;
  /// How most of the weights are stored.
  WeightFormat weight_format() const noexcept;
  /// Bytes of packed weights held in memory.
  std::uint64_t weight_bytes() const noexcept;
  /// The kernels in use: "avx2", ...
  const char* isa() const noexcept;
  int threads() const noexcept;

  struct Impl;
  const Impl& impl() const noexcept { return *impl_; }

 private:
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// float16 where its range suffices; bfloat16 for models of over two billion parameters, whose
/// values Apple reports to overflow float16.
KvType default_kv_type(const ModelConfig& config) noexcept;

}  // namespace openelm

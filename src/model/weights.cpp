#include "model/weights.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "model/quantize_plan.h"
#include "model/row_major.h"
#include "quant/pack.h"
#include "quant/quantize.h"
#include "quant/quantized_format.h"

namespace openelm {
namespace {

constexpr std::size_t kAlign = 64;

std::int32_t round_up_rows(std::int32_t n) { return (n + kTileRows - 1) / kTileRows * kTileRows; }

/// A matrix to pack and where its view goes. With `gate_rows` > 0 the source's first gate_rows rows
/// are gates and the same number of up rows follow; their tiles alternate.
struct MatrixPlan {
  PackedMatrix* target;
  const TensorView* tensor;
  std::int32_t gate_rows;
};

/// A norm's weights and where their pointer goes.
struct NormPlan {
  const float** target;
  const TensorView* tensor;
};

/// Looks every tensor of the configuration up, checks its shape, and lists what to pack in the
/// order of execution.
class Planner {
 public:
  Planner(const Checkpoint& checkpoint, const std::optional<QuantizeOptions>& quantize,
          Weights& weights)
      : config_(checkpoint.config),
        tensors_(checkpoint.tensors),
        quantize_(quantize),
        weights_(weights) {
    const std::int32_t dim = config_.model_dim;
    matrix(weights_.embedding, "token_embeddings.weight", config_.vocab_size, dim);
    weights_.layers.resize(config_.layers.size());
    for (std::size_t l = 0; l < config_.layers.size(); ++l) layer(l);
    norm(weights_.final_norm, "norm.weight", dim);
    if (!config_.tied_head) matrix(weights_.head, "lm_head.weight", config_.vocab_size, dim);
  }

  const std::vector<MatrixPlan>& matrices() const noexcept { return matrices_; }
  const std::vector<NormPlan>& norms() const noexcept { return norms_; }

 private:
  void layer(std::size_t l) {
    const LayerConfig& sizes = config_.layers[l];
    const std::int32_t dim = config_.model_dim;
    const std::int32_t head_dim = config_.head_dim;
    const std::string prefix = "layers." + std::to_string(l) + ".";
    LayerWeights& w = weights_.layers[l];
    norm(w.attn_norm, prefix + "attn_norm.weight", dim);
    matrix(w.qkv, prefix + "attn.qkv_proj.weight", config_.qkv_rows(l), dim);
    if (config_.qk_norm) {
      norm(w.q_norm, prefix + "attn.q_norm.weight", head_dim);
      norm(w.k_norm, prefix + "attn.k_norm.weight", head_dim);
    }
    matrix(w.out, prefix + "attn.out_proj.weight", dim, sizes.n_heads * head_dim);
    norm(w.ffn_norm, prefix + "ffn_norm.weight", dim);
    const std::int32_t gate_rows = config_.glu ? sizes.ffn_dim : 0;
    matrix(w.up, prefix + "ffn.proj_1.weight", sizes.ffn_dim + gate_rows, dim, gate_rows);
    matrix(w.down, prefix + "ffn.proj_2.weight", dim, sizes.ffn_dim);
  }

  void matrix(PackedMatrix& target, const std::string& name, std::int32_t n, std::int32_t k,
              std::int32_t gate_rows = 0) {
    const std::array<std::int64_t, 2> shape{n, k};
    const TensorView& tensor = tensors_.require(name, shape);
    target.format = quantize_ ? planned_format(*quantize_, name, tensor) : tensor.format;
    target.n = gate_rows > 0 ? 2 * round_up_rows(gate_rows) : n;
    target.k = k;
    target.k_padded = padded_k(k);
    target.x_block = activation_block(target, name);
    matrices_.push_back({&target, &tensor, gate_rows});
  }

  /// Where 8-bit weights meet activations with outliers (the products of SwiGLU) or decide the
  /// logits, the rounding of the activations would be the greater part of the error.
  static std::int32_t activation_block(const PackedMatrix& matrix, const std::string& name) {
    const bool sensitive = name.ends_with("ffn.proj_2.weight") || !name.starts_with("layers.");
    return sensitive && matrix.format.bits == 8 ? 16 : 32;
  }

  void norm(const float*& target, const std::string& name, std::int32_t n) {
    const std::array<std::int64_t, 1> shape{n};
    norms_.push_back({&target, &tensors_.require(name, shape)});
  }

  const ModelConfig& config_;
  const TensorSource& tensors_;
  const std::optional<QuantizeOptions>& quantize_;
  Weights& weights_;
  std::vector<MatrixPlan> matrices_;
  std::vector<NormPlan> norms_;
};

std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

std::size_t matrix_bytes(const Planner& plan) {
  std::size_t total = 0;
  for (const MatrixPlan& m : plan.matrices()) total += aligned(m.target->bytes());
  return total;
}

std::size_t norm_floats(const Planner& plan) {
  std::size_t total = 0;
  for (const NormPlan& n : plan.norms()) {
    total += aligned(static_cast<std::size_t>(n.tensor->shape[0]) * sizeof(float)) / sizeof(float);
  }
  return total;
}

/// One worker's memory and result while matrices are quantised on the way into tiles.
struct QuantizeScratch {
  AffineBuffers buffers;              // of the 16 rows of a tile
  std::optional<std::int64_t> fault;  // a row that cannot be quantised
};

/// Rows [first, end) of a plain matrix, 16 at most, as one affine tile.
void quantize_tile(const RowMajor& source, const PackedMatrix& target, Range rows,
                   QuantizeScratch& scratch, std::byte* tile) noexcept {
  if (const auto fault = quantize_rows(source, rows, target.format, scratch.buffers.rows())) {
    if (!scratch.fault) scratch.fault = fault;
    return;
  }
  const auto n_rows = static_cast<std::int32_t>(rows.size());
  const RowMajor quantized{.format = target.format,
                           .data = scratch.buffers.data.data(),
                           .scales = scratch.buffers.scales.data(),
                           .biases = scratch.buffers.biases.data(),
                           .n_rows = n_rows,
                           .k = source.k};
  pack_tile(quantized, 0, n_rows, tile);
}

/// Packs this worker's share of a matrix: the same tiles it will multiply with later.
void pack_share(const MatrixPlan& plan, std::byte* tiles, const Worker& worker,
                QuantizeScratch& scratch) noexcept {
  const PackedMatrix& target = *plan.target;
  const TensorView& tensor = *plan.tensor;
  const RowMajor source = row_major(tensor);
  const bool quantizes = target.format != tensor.format;
  const bool paired = plan.gate_rows > 0;
  const std::int32_t unit = paired ? 2 : 1;
  const Range share = worker.share(target.n_tiles() / unit);
  for (std::int64_t t = share.begin * unit; t < share.end * unit; ++t) {
    const bool is_up = paired && t % 2 == 1;
    const std::int32_t base = is_up ? plan.gate_rows : 0;
    const auto first = base + static_cast<std::int32_t>(t / unit) * kTileRows;
    const std::int32_t end = paired ? base + plan.gate_rows : source.n_rows;
    std::byte* const tile = tiles + static_cast<std::size_t>(t) * target.tile_bytes();
    if (quantizes) {
      const Range rows{first, std::clamp(end, first, first + kTileRows)};
      quantize_tile(source, target, rows, scratch, tile);
    } else {
      pack_tile(source, first, end, tile);
    }
  }
}

/// Packs a matrix with all threads. Throws Error when a row cannot be quantised.
void pack_matrix(const MatrixPlan& plan, std::byte* tiles, ThreadPool& pool,
                 std::vector<QuantizeScratch>& scratch) {
  if (plan.target->format != plan.tensor->format) {
    const std::size_t n_weights = static_cast<std::size_t>(plan.target->k) * kTileRows;
    for (QuantizeScratch& s : scratch) s.buffers.resize(plan.target->format, n_weights);
  }
  pool.run([&](const Worker& worker) noexcept {
    pack_share(plan, tiles, worker, scratch[static_cast<std::size_t>(worker.index())]);
  });
  for (const QuantizeScratch& s : scratch) {
    if (s.fault) fail_unquantizable(*plan.tensor, *s.fault);
  }
}

}  // namespace

Weights load_weights(const Checkpoint& checkpoint, ThreadPool& pool, const LoadProgress& progress,
                     const std::optional<QuantizeOptions>& quantize) {
  if (quantize) {
    check_quantize_options(*quantize);
    require_plain(checkpoint.tensors);
  }
  Weights weights;
  const Planner plan(checkpoint, quantize, weights);
  weights.matrix_storage = AlignedBuffer(matrix_bytes(plan), "the weights", Pages::huge);
  weights.norm_storage = AlignedArray<float>(norm_floats(plan), "the norms");

  float* norm = weights.norm_storage.data();
  for (const NormPlan& n : plan.norms()) {
    const std::int64_t size = n.tensor->shape[0];
    widen(n.tensor->format.type, n.tensor->data.data(), size, norm);
    *n.target = norm;
    norm += aligned(static_cast<std::size_t>(size) * sizeof(float)) / sizeof(float);
  }

  std::vector<QuantizeScratch> scratch(static_cast<std::size_t>(pool.size()));
  std::byte* tiles = weights.matrix_storage.data();
  for (const MatrixPlan& m : plan.matrices()) {
    pack_matrix(m, tiles, pool, scratch);
    checkpoint.tensors.release(*m.tensor);
    m.target->tiles = tiles;
    tiles += aligned(m.target->bytes());
    if (progress) {
      progress(static_cast<std::uint64_t>(tiles - weights.matrix_storage.data()),
               weights.matrix_storage.size());
    }
  }
  if (checkpoint.config.tied_head) weights.head = weights.embedding;
  return weights;
}

}  // namespace openelm

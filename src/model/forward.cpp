#include "model/forward.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "model/attention.h"
#include "model/matmul.h"
#include "quant/pack.h"

namespace openelm {
namespace {

using kernels::Epilogue;

/// One worker's way through the pass. Every method is called by all workers together.
class Pass {
 public:
  Pass(const ExecContext& ctx, const Model& model, const KvCache& cache, const Activations& acts,
       const Batch& batch, const std::vector<QueryTile>& tiles, const Worker& worker) noexcept
      : ctx_(ctx),
        model_(model),
        cache_(cache),
        acts_(acts),
        batch_(batch),
        tiles_(tiles),
        worker_(worker),
        scratch_(acts.worker(worker.index())) {}

  void embed() const noexcept {
    const Range rows = worker_.share(batch_.rows());
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      unpack_row(model_.weights.embedding, batch_.tokens[static_cast<std::size_t>(r)],
                 acts_.x.row(r));
    }
    worker_.barrier();
  }

  /// x += W_out · attention(norm(x))
  void attention_block(std::size_t layer) const noexcept {
    const LayerWeights& w = model_.weights.layers[layer];
    multiply(Epilogue::store, w.qkv, acts_.x, w.attn_norm, acts_.qkv);
    worker_.barrier();
    const AttentionLayer attention{
        ctx_,   model_.config, model_.config.layers[layer], w, model_.rope, cache_, acts_, batch_,
        tiles_, layer};
    attend(attention, worker_);
    worker_.barrier();
    multiply(Epilogue::add, w.out, acts_.attn, nullptr, acts_.x);
    worker_.barrier();
  }

  /// x += W_down · (silu(W_gate · norm(x)) * (W_up · norm(x)))
  void ffn_block(std::size_t layer) const noexcept {
    const LayerWeights& w = model_.weights.layers[layer];
    const Epilogue activation = model_.config.glu ? Epilogue::swiglu : Epilogue::silu;
    multiply(activation, w.up, acts_.x, w.ffn_norm, acts_.ffn);
    worker_.barrier();
    multiply(Epilogue::add, w.down, acts_.ffn, nullptr, acts_.x);
    worker_.barrier();
  }

  /// Logits of the wanted rows: W_head · norm(x).
  void head() const noexcept {
    const auto n_wanted = static_cast<std::int32_t>(batch_.wanted.size());
    if (n_wanted == 0) return;
    const PackedMatrix& w = model_.weights.head;
    const MatmulInput x = prepare(n_wanted, w, model_.weights.final_norm, [&](std::int64_t i) {
      return acts_.x.row(batch_.wanted[static_cast<std::size_t>(i)]);
    });
    const Rows logits{batch_.logits, batch_.logits_stride};
    if (batch_.scan.call == nullptr) {
      matmul(ctx_, worker_, scratch_, Epilogue::store, w, x, n_wanted, logits);
      return;
    }
    for (std::int32_t first = 0; first < n_wanted; first += LogitScan::kRows) {
      const std::int32_t n = std::min(LogitScan::kRows, n_wanted - first);
      const MatmulInput part{{x.plain.row(first), x.plain.stride},
                             {x.quantised.row(first), x.quantised.stride}};
      matmul(ctx_, worker_, scratch_, Epilogue::store, w, part, n, logits);
      worker_.barrier();
      const Range rows = worker_.share(n);
      for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        batch_.scan.call(batch_.scan.context, static_cast<std::size_t>(first + r), logits.row(r));
      }
      worker_.barrier();
    }
  }

 private:
  /// Y = epilogue(norm(X) Wᵀ); without norm weights, of X itself.
  void multiply(Epilogue epilogue, const PackedMatrix& w, Rows x, const float* norm,
                Rows y) const noexcept {
    const bool as_it_is = norm == nullptr && !w.format.affine() && !takes_bf16(w);
    const MatmulInput input =
        as_it_is ? MatmulInput{.plain = x}
                 : prepare(batch_.rows(), w, norm, [&](std::int64_t r) { return x.row(r); });
    matmul(ctx_, worker_, scratch_, epilogue, w, input, batch_.rows(), y);
  }

  bool takes_bf16(const PackedMatrix& w) const noexcept {
    return ctx_.kernels.bf16_activations && w.format == WeightFormat{WeightType::bf16};
  }

  /// Rows `row(0 .. n-1)` normalised (if there are weights for it) and in the form that W reads. A
  /// single row is cheaper prepared by every worker than waited for.
  template <typename RowOf>
  MatmulInput prepare(std::int32_t n, const PackedMatrix& w, const float* norm,
                      const RowOf& row) const noexcept {
    const kernels::KernelTable& k = ctx_.kernels;
    const bool alone = n == 1;
    const MatmulInput out = alone ? MatmulInput{{scratch_.row, 0}, {scratch_.quantised, 0}}
                                  : MatmulInput{acts_.normed, acts_.quantised};
    const Range rows = alone ? Range{0, 1} : worker_.share(n);
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      const float* x = row(r);
      if (norm != nullptr) {
        k.rms_norm(x, norm, model_.config.model_dim, model_.config.norm_eps, out.plain.row(r));
        x = out.plain.row(r);
      }
      if (w.format.affine()) {
        k.quantise(x, w.k, w.format.group_size, w.x_block, out.quantised.row(r));
      } else if (takes_bf16(w)) {
        k.narrow[static_cast<std::size_t>(KvType::bf16)](x, w.k_padded, out.quantised.row(r));
      }
    }
    if (!alone) worker_.barrier();
    return out;
  }

  const ExecContext& ctx_;
  const Model& model_;
  const KvCache& cache_;
  const Activations& acts_;
  const Batch& batch_;
  const std::vector<QueryTile>& tiles_;
  const Worker& worker_;
  const WorkerScratch& scratch_;
};

std::int32_t largest_group(const ModelConfig& config) {
  std::int32_t group = 1;
  for (const LayerConfig& layer : config.layers) {
    group = std::max(group, layer.n_heads / layer.n_kv_heads);
  }
  return group;
}

}  // namespace

bool forward(const ExecContext& ctx, const Model& model, const KvCache& cache,
             const Activations& acts, const Batch& batch) {
  const std::vector<QueryTile> tiles = make_query_tiles(batch, largest_group(model.config));
  std::atomic<bool> cancelled{false};
  ctx.pool.run([&](const Worker& worker) noexcept {
    const Pass pass(ctx, model, cache, acts, batch, tiles, worker);
    pass.embed();
    for (std::size_t layer = 0; layer < model.config.layers.size(); ++layer) {
      // Only worker 0 looks, and a barrier follows, so that all workers leave at the same place.
      if (worker.index() == 0 && batch.cancel != nullptr && batch.cancel->load()) {
        cancelled.store(true);
      }
      pass.attention_block(layer);
      if (cancelled.load(std::memory_order_relaxed)) return;
      pass.ffn_block(layer);
    }
    pass.head();
  });
  return !cancelled.load();
}

}  // namespace openelm

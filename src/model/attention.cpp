#include "model/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace openelm {
namespace {

constexpr std::int32_t kRows = Activations::kQueryRows;
constexpr std::int32_t kKeys = Activations::kChunkKeys;
constexpr std::int32_t kPage = KvCache::kPageSize;

/// The query heads that share one KV head, in blocks of at most kRows.
struct HeadBlocks {
  explicit HeadBlocks(const LayerConfig& sizes)
      : group(sizes.n_heads / sizes.n_kv_heads),
        heads_per_block(std::min(group, kRows)),
        blocks_per_group((group + heads_per_block - 1) / heads_per_block) {}

  std::int32_t group;
  std::int32_t heads_per_block;
  std::int32_t blocks_per_group;
};

/// One query tile with one block of heads over one KV head.
struct Item {
  const QueryTile* tile;
  std::int32_t kv_head;
  std::int32_t first_head;  // of the block, among all query heads
  std::int32_t n_heads;

  std::int32_t rows() const noexcept { return tile->n_tokens * n_heads; }
  std::int32_t position(std::int32_t row) const noexcept {
    return tile->first_position + row / n_heads;
  }
  std::int32_t n_chunks() const noexcept { return tile->last_position() / kKeys + 1; }
};

/// Attention of up to kRows query rows over one chunk of keys: softmax maximum and sum per row, and
/// the sum of values weighted by exp(score - max). A row that may see no key of the chunk has sum
/// 0.
struct ChunkResult {
  float* max;         // [rows]
  float* sum;         // [rows]
  std::int64_t step;  // between the maxima of two rows, and between their sums
  float* out;         // [rows, head_dim]
  std::int64_t out_stride;
};

class Attention {
 public:
  Attention(const AttentionLayer& a, const Worker& worker) noexcept
      : a_(a),
        worker_(worker),
        scratch_(a.acts.worker(worker.index())),
        blocks_(a.sizes),
        // Decode steps: a tile's only new key is the last one it reads, and one item reads it.
        items_store_(blocks_.blocks_per_group == 1 && a.tiles.size() == a.batch.tokens.size() &&
                     one_row_a_sequence(a.tiles)) {}

  void run() const noexcept {
    if (!items_store_) {
      const Range rows =
          worker_.share(static_cast<std::int64_t>(a_.batch.rows()) * a_.sizes.n_kv_heads);
      for (std::int64_t i = rows.begin; i < rows.end; ++i) {
        store(i / a_.sizes.n_kv_heads, static_cast<std::int32_t>(i % a_.sizes.n_kv_heads));
      }
      worker_.barrier();
    }
    const std::int64_t items =
        static_cast<std::int64_t>(a_.tiles.size()) * a_.sizes.n_kv_heads * blocks_.blocks_per_group;
    std::int32_t chunks = 0;
    for (const QueryTile& tile : a_.tiles) {
      chunks = std::max(chunks, tile.last_position() / kKeys + 1);
    }
    // Few items: share single chunks out, so that all workers have something to do.
    if (chunks > 1 && items < 4 * worker_.count()) {
      for (std::int64_t i = worker_.index(); i < items * chunks; i += worker_.count()) {
        attend_chunk(item(i / chunks), static_cast<std::int32_t>(i % chunks), partial(i));
      }
      worker_.barrier();
      for (std::int64_t i = worker_.index(); i < items; i += worker_.count()) {
        merge_partials(item(i), i * chunks);
      }
      return;
    }
    for (std::int64_t i = worker_.index(); i < items; i += worker_.count()) attend_all(item(i));
  }

 private:
  Item item(std::int64_t index) const noexcept {
    const auto block = static_cast<std::int32_t>(index % blocks_.blocks_per_group);
    const std::int64_t rest = index / blocks_.blocks_per_group;
    const auto kv_head = static_cast<std::int32_t>(rest % a_.sizes.n_kv_heads);
    const std::int32_t begin = block * blocks_.heads_per_block;
    return {&a_.tiles[static_cast<std::size_t>(rest / a_.sizes.n_kv_heads)], kv_head,
            kv_head * blocks_.group + begin,
            std::min(blocks_.heads_per_block, blocks_.group - begin)};
  }

  ChunkResult partial(std::int64_t index) const noexcept {
    float* const p = a_.acts.partial(index);
    const std::int64_t stride = a_.acts.partial_stride();
    return {p, p + 1, stride, p + 16, stride};
  }

  static bool one_row_a_sequence(const std::vector<QueryTile>& tiles) noexcept {
    return std::adjacent_find(tiles.begin(), tiles.end(), [](const auto& a, const auto& b) {
             return a.sequence == b.sequence;
           }) == tiles.end();
  }

  /// to = a query's or key's head, normalised (if there are weights for it) and rotated.
  void rotate(const float* head, const float* norm, std::int32_t position,
              float* to) const noexcept {
    const kernels::KernelTable& k = a_.ctx.kernels;
    const std::int32_t head_dim = a_.config.head_dim;
    if (norm != nullptr) {
      k.rms_norm(head, norm, head_dim, a_.config.norm_eps, to);
    } else {
      std::memcpy(to, head, static_cast<std::size_t>(head_dim) * sizeof(float));
    }
    k.rope(to, a_.rope.cos(position), a_.rope.sin(position), head_dim / 2);
  }

  /// Puts the key and value of one row and KV head into the cache.
  void store(std::int64_t row, std::int32_t kv_head) const noexcept {
    const std::int32_t head_dim = a_.config.head_dim;
    const std::int32_t position = a_.batch.positions[static_cast<std::size_t>(row)];
    const float* const key = a_.acts.qkv.row(row) + (a_.sizes.n_heads + kv_head) * head_dim;
    const float* const value = key + a_.sizes.n_kv_heads * head_dim;
    const auto narrow = a_.ctx.kernels.narrow[static_cast<std::size_t>(a_.cache.type())];
    std::byte* const narrowed_k = scratch_.narrow;
    std::byte* const narrowed_v =
        narrowed_k + static_cast<std::size_t>(head_dim) * size_of(a_.cache.type());

    rotate(key, a_.weights.k_norm, position, scratch_.q);
    const float key_scale = narrow(scratch_.q, head_dim, narrowed_k);
    const float value_scale = narrow(value, head_dim, narrowed_v);
    a_.cache.store(a_.layer, kv_head, a_.batch.sequences[static_cast<std::size_t>(row)], position,
                   {narrowed_k, key_scale}, {narrowed_v, value_scale});
  }

  /// The item's queries, token by token, ready for scores: rotated and times 1/sqrt(head_dim), in
  /// the worker's scratch.
  void gather_queries(const Item& item) const noexcept {
    const std::int32_t head_dim = a_.config.head_dim;
    float* to = scratch_.q;
    for (std::int32_t r = 0; r < item.rows(); ++r, to += head_dim) {
      const float* const heads = a_.acts.qkv.row(item.tile->first_row + r / item.n_heads);
      rotate(heads + (item.first_head + r % item.n_heads) * head_dim, a_.weights.q_norm,
             item.position(r), to);
    }
    a_.ctx.kernels.scale(scratch_.q, 1.0F / std::sqrt(static_cast<float>(head_dim)),
                         item.rows() * head_dim);
  }

  /// Calls run(first page, number of pages, keys before them) for each stretch of pages that lie
  /// one after the other in memory, over the first `n_keys` keys of the chunk.
  template <typename Run>
  void for_each_run(const Item& item, std::int32_t chunk, std::int32_t n_keys,
                    Run run) const noexcept {
    const auto pages = a_.cache.pages(item.tile->sequence)
                           .subspan(static_cast<std::size_t>(chunk * (kKeys / kPage)));
    const std::int32_t n_pages = (n_keys + kPage - 1) / kPage;
    for (std::int32_t begin = 0; begin < n_pages;) {
      const std::int32_t first = pages[static_cast<std::size_t>(begin)];
      std::int32_t n = 1;
      while (begin + n < n_pages && pages[static_cast<std::size_t>(begin + n)] == first + n) ++n;
      run(first, n, begin * kPage);
      begin += n;
    }
  }

  void attend_chunk(const Item& item, std::int32_t chunk,
                    const ChunkResult& result) const noexcept {
    if (chunk >= item.n_chunks()) return;
    if (items_store_ && chunk == item.n_chunks() - 1) store(item.tile->first_row, item.kv_head);
    gather_queries(item);
    attend_gathered(item, chunk, result);
  }

  void attend_gathered(const Item& item, std::int32_t chunk,
                       const ChunkResult& result) const noexcept {
    const kernels::KernelTable& k = a_.ctx.kernels;
    const auto type = static_cast<std::size_t>(a_.cache.type());
    const std::int32_t head_dim = a_.config.head_dim;
    const std::int32_t first_key = chunk * kKeys;
    const std::int32_t n_keys = std::min(kKeys, item.tile->last_position() + 1 - first_key);

    for_each_run(item, chunk, n_keys, [&](std::int32_t page, std::int32_t n, std::int32_t before) {
      k.scores[type]({.q = scratch_.q,
                      .q_stride = head_dim,
                      .rows = item.rows(),
                      .k = a_.cache.keys(a_.layer, item.kv_head, page),
                      .n_tiles = n,
                      .head_dim = head_dim,
                      .s = scratch_.scores + before,
                      .s_stride = Activations::kScoresStride});
      if (a_.cache.type() == KvType::q8) {
        multiply_scores(item, a_.cache.key_scales(a_.layer, item.kv_head, page), before, n * kPage);
      }
    });
    for (std::int32_t r = 0; r < item.rows(); ++r) {
      float* const s = scratch_.scores + r * Activations::kScoresStride;
      const std::int32_t valid = std::clamp(item.position(r) + 1 - first_key, 0, n_keys);
      float* const sum = result.sum + r * result.step;
      if (valid > 0) {
        result.max[r * result.step] = k.softmax_row(s, n_keys, valid, sum);
      } else {
        std::fill_n(s, n_keys, 0.0F);
        *sum = 0.0F;
      }
    }
    for_each_run(item, chunk, n_keys, [&](std::int32_t page, std::int32_t n, std::int32_t before) {
      if (a_.cache.type() == KvType::q8) {
        multiply_scores(item, a_.cache.value_scales(a_.layer, item.kv_head, page), before,
                        std::min(n * kPage, n_keys - before));
      }
      k.values[type]({.p = scratch_.scores + before,
                      .p_stride = Activations::kScoresStride,
                      .rows = item.rows(),
                      .v = a_.cache.values(a_.layer, item.kv_head, page),
                      .n = std::min(n * kPage, n_keys - before),
                      .head_dim = head_dim,
                      .o = result.out,
                      .o_stride = result.out_stride,
                      .accumulate = before > 0});
    });
  }

  /// Multiplies scores or weights of keys [begin, begin + n) by the scales of what they stand for.
  void multiply_scores(const Item& item, const float* scales, std::int32_t begin,
                       std::int32_t n) const noexcept {
    for (std::int32_t r = 0; r < item.rows(); ++r) {
      a_.ctx.kernels.multiply(scratch_.scores + r * Activations::kScoresStride + begin, scales, n);
    }
  }

  /// All chunks of an item in order, folded into one running result.
  void attend_all(const Item& item) const noexcept {
    float max[kRows];
    float sum[kRows];
    float chunk_max[kRows];
    float chunk_sum[kRows];
    const std::int64_t stride = kernels::v_stride(a_.config.head_dim);
    const ChunkResult running{max, sum, 1, scratch_.out, stride};
    const ChunkResult next{chunk_max, chunk_sum, 1, scratch_.chunk_out, stride};
    if (items_store_) store(item.tile->first_row, item.kv_head);
    gather_queries(item);
    attend_gathered(item, 0, running);
    for (std::int32_t chunk = 1; chunk < item.n_chunks(); ++chunk) {
      attend_gathered(item, chunk, next);
      for (std::int32_t r = 0; r < item.rows(); ++r) merge_row(running, next, r);
    }
    finish(item, running);
  }

  /// The same fold over chunks that were computed apart, from partial `first` on.
  void merge_partials(const Item& item, std::int64_t first) const noexcept {
    const ChunkResult running = partial(first);
    for (std::int32_t chunk = 1; chunk < item.n_chunks(); ++chunk) {
      for (std::int32_t r = 0; r < item.rows(); ++r) merge_row(running, partial(first + chunk), r);
    }
    finish(item, running);
  }

  void merge_row(const ChunkResult& running, const ChunkResult& next,
                 std::int32_t r) const noexcept {
    const float sum = next.sum[r * next.step];
    if (sum == 0.0F) return;  // the row sees no key of the chunk
    a_.ctx.kernels.softmax_merge(&running.max[r * running.step], &running.sum[r * running.step],
                                 running.out + r * running.out_stride, next.max[r * next.step], sum,
                                 next.out + r * next.out_stride, a_.config.head_dim);
  }

  void finish(const Item& item, const ChunkResult& result) const noexcept {
    const std::int32_t head_dim = a_.config.head_dim;
    for (std::int32_t r = 0; r < item.rows(); ++r) {
      float* const row = a_.acts.attn.row(item.tile->first_row + r / item.n_heads);
      a_.ctx.kernels.divide(result.out + r * result.out_stride, result.sum[r * result.step],
                            head_dim, row + (item.first_head + r % item.n_heads) * head_dim);
    }
  }

  const AttentionLayer& a_;
  const Worker& worker_;
  const WorkerScratch& scratch_;
  HeadBlocks blocks_;
  bool items_store_;  // each item stores the key and value it reads last; else all are stored first
};

}  // namespace

std::vector<QueryTile> make_query_tiles(const Batch& batch, std::int32_t max_group) {
  const std::int32_t max_tokens = kRows / std::min(max_group, kRows);
  std::vector<QueryTile> tiles;
  for (std::int32_t row = 0; row < batch.rows(); ++row) {
    const auto r = static_cast<std::size_t>(row);
    if (!tiles.empty() && tiles.back().sequence == batch.sequences[r] &&
        tiles.back().n_tokens < max_tokens) {
      ++tiles.back().n_tokens;
    } else {
      tiles.push_back({row, 1, batch.sequences[r], batch.positions[r]});
    }
  }
  return tiles;
}

void attend(const AttentionLayer& a, const Worker& worker) noexcept { Attention(a, worker).run(); }

}  // namespace openelm

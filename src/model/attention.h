#pragma once

#include <cstdint>
#include <vector>

#include <openelm/config.h>

#include "model/activations.h"
#include "model/batch.h"
#include "model/exec_context.h"
#include "model/kv_cache.h"
#include "model/rope_table.h"
#include "model/weights.h"

namespace openelm {

/// Consecutive rows of one sequence that attention handles together with the query heads of a KV
/// head.
struct QueryTile {
  std::int32_t first_row = 0;
  std::int32_t n_tokens = 0;
  std::int32_t sequence = 0;
  std::int32_t first_position = 0;
  std::int32_t last_position() const noexcept { return first_position + n_tokens - 1; }
};

/// Cuts a batch into query tiles for a model with at most `max_group` query heads per KV head, so
/// that a tile's tokens times the heads of a group (or of a block of kQueryRows of them) make at
/// most Activations::kQueryRows query rows.
std::vector<QueryTile> make_query_tiles(const Batch& batch, std::int32_t max_group);

/// Everything the attention of one layer needs besides the worker.
struct AttentionLayer {
  const ExecContext& ctx;
  const ModelConfig& config;
  const LayerConfig& sizes;
  const LayerWeights& weights;
  const RopeTable& rope;
  const KvCache& cache;
  const Activations& acts;
  const Batch& batch;
  const std::vector<QueryTile>& tiles;
  std::size_t layer;
};

/// Causal attention of a layer: acts.qkv -> acts.attn. Normalises and rotates queries and keys,
/// puts the batch's keys and values into the cache, and attends to all of the sequences' keys by
/// online softmax over chunks of 256. Contains a barrier unless every row is a decode step (then a
/// key is stored by the one who reads it), and one when single chunks are shared out; the caller
/// still needs one after it. Source of the method: FlashAttention, Dao et al. 2022, and its split-K
/// form for decoding.
void attend(const AttentionLayer& a, const Worker& worker) noexcept;

}  // namespace openelm

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

/// Normalises and rotates this worker's share of the query and key heads in acts.qkv, scales the
/// queries by 1/sqrt(head_dim), and stores keys and values in the cache.
void rotate_and_store(const AttentionLayer& a, const Worker& worker) noexcept;

/// Causal attention of all query heads over the cache, by online softmax over chunks of 256 keys:
/// acts.qkv -> acts.attn. All of the batch's keys and values must be stored. Contains a barrier
/// when single chunks are shared out; the caller still needs one after it. Source of the method:
/// FlashAttention, Dao et al. 2022, and its split-K form for decoding.
void attend(const AttentionLayer& a, const Worker& worker) noexcept;

}  // namespace openelm

#pragma once

#include <openelm/config.h>

#include "model/activations.h"
#include "model/batch.h"
#include "model/exec_context.h"
#include "model/kv_cache.h"
#include "model/rope_table.h"
#include "model/weights.h"

namespace openelm {

/// The immutable parts of a model that a pass reads.
struct Model {
  ModelConfig config;
  Weights weights;
  RopeTable rope;
};

/// One pass of the decoder over `batch`: a decode step is a prefill of one token. Stores the
/// batch's keys and values in `cache`, which must have pages for them, and writes the wanted rows'
/// logits. The logits are the same, bit for bit, however tokens are cut into batches, whatever
/// sequences share one, and for any number of threads. At most acts.max_rows() rows.
///
/// False: batch.cancel was seen set; logits are not written and the batch's positions in the cache
/// are undefined.
bool forward(const ExecContext& ctx, const Model& model, const KvCache& cache,
             const Activations& acts, const Batch& batch);

}  // namespace openelm

#pragma once

#include "kernels/kernels.h"
#include "model/activations.h"
#include "model/exec_context.h"

namespace openelm {

/// The rows X of a product, in the form that W's kernels read: plain or quantised.
struct MatmulInput {
  Rows plain = {};
  QuantisedRows quantised = {};
};

/// This worker's part of Y = epilogue(X Wᵀ) for m rows. Workers own contiguous tiles of W; when
/// there are too few tiles for them, rows of X are shared out as well.
void matmul(const ExecContext& ctx, const Worker& worker, const WorkerScratch& scratch,
            kernels::Epilogue epilogue, const PackedMatrix& w, const MatmulInput& x, std::int32_t m,
            Rows y) noexcept;

}  // namespace openelm

#include "model/matmul.h"

#include <cstdint>
#include <limits>

namespace openelm {
namespace {

/// Workers that share the rows of X among themselves; worker_count must be a multiple of it. The
/// best is the one whose largest part is smallest; one wherever that costs nothing, since it keeps
/// each worker on its own weights.
int row_parts(std::int64_t n_units, std::int32_t m, int worker_count) noexcept {
  constexpr std::int32_t kMinRows = 32;
  int best = 1;
  std::int64_t best_size = std::numeric_limits<std::int64_t>::max();
  for (int parts = 1; parts <= worker_count; ++parts) {
    if (worker_count % parts != 0 || (parts > 1 && m / parts < kMinRows)) continue;
    const std::int64_t size =
        partition(n_units, 0, worker_count / parts).size() * partition(m, 0, parts).size();
    // A quarter less work must be in it to pay for reading the weights `parts` times.
    if (best_size == std::numeric_limits<std::int64_t>::max() || 4 * size < 3 * best_size) {
      best = parts;
      best_size = size;
    }
  }
  return best;
}

}  // namespace

void matmul(const ExecContext& ctx, const Worker& worker, const WorkerScratch& scratch,
            kernels::Epilogue epilogue, const PackedMatrix& w, const MatmulInput& x, std::int32_t m,
            Rows y) noexcept {
  const std::int32_t unit = epilogue == kernels::Epilogue::swiglu ? 2 : 1;
  const std::int64_t n_units = w.n_tiles() / unit;
  const int parts = row_parts(n_units, m, worker.count());
  const Range tiles = partition(n_units, worker.index() / parts, worker.count() / parts);
  const Range rows = partition(m, worker.index() % parts, parts);
  if (tiles.empty() || rows.empty()) return;
  const auto kernel = ctx.kernels.matmul[kernels::matmul_kind(w.format)];
  kernel({.w = &w,
          .epilogue = epilogue,
          .x = x.plain.row(rows.begin),
          .x_stride = x.plain.stride,
          .xq = x.quantised.row(rows.begin),
          .xq_stride = x.quantised.stride,
          .m = static_cast<std::int32_t>(rows.size()),
          .y = y.row(rows.begin),
          .y_stride = y.stride,
          .tile_begin = static_cast<std::int32_t>(tiles.begin) * unit,
          .tile_end = static_cast<std::int32_t>(tiles.end) * unit,
          .scratch = scratch.matmul});
}

}  // namespace openelm

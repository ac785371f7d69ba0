#pragma once

#include <vector>

#include "kernels/kernel_test.h"

namespace openelm::test {

/// One matrix product: packed weights, tokens and an output that holds numbers of its own.
struct MatmulCase {
  WeightType type;
  std::int32_t n;
  std::int32_t k;
  std::int32_t m;
  std::uint32_t seed = 1;
  Numbers numbers = Numbers::ordinary;

  std::int32_t n_tiles() const { return (n + 15) / 16; }
  std::int32_t k_padded() const { return (k + 1) / 2 * 2; }
  std::int64_t x_stride() const { return k_padded() + 5; }
  std::int64_t y_stride() const { return n_tiles() * 16 + 3; }
};

/// The case's data; rows of x and y end where a guard page begins.
class MatmulData {
 public:
  explicit MatmulData(const MatmulCase& c)
      : case_(c),
        tiles_(static_cast<std::size_t>(c.n_tiles()) * 16 * static_cast<std::size_t>(c.k_padded()) *
               size_of(c.type)),
        x_(static_cast<std::size_t>((c.m - 1) * c.x_stride() + c.k_padded())),
        weights_(static_cast<std::size_t>(c.n) * static_cast<std::size_t>(c.k)) {
    NumberSource source(c.seed, c.numbers);
    source.fill(x_.span());
    if (c.k_padded() != c.k) {  // what follows the row is finite, as the contract has it
      for (std::int32_t t = 0; t < c.m; ++t) {
        x_[static_cast<std::size_t>(t * c.x_stride() + c.k)] = 7.0F;
      }
    }
    std::memset(tiles_.data(), 0, tiles_.size());
    for (std::int32_t row = 0; row < c.n; ++row) {
      for (std::int32_t k = 0; k < c.k; ++k) put(row, k, source.next());
    }
  }

  PackedMatrix matrix() const {
    return {{case_.type}, case_.n, case_.k, case_.k_padded(), tiles_.data()};
  }

  float weight(std::int32_t row, std::int32_t k) const {
    return row < case_.n ? weights_[static_cast<std::size_t>(row * case_.k + k)] : 0.0F;
  }
  const float* x(std::int32_t token) const { return x_.data() + token * case_.x_stride(); }

  /// y as the kernel leaves it, gaps between rows included; every variant starts from the same.
  std::vector<float> run(const kernels::KernelTable& table, kernels::Epilogue epilogue,
                         std::int32_t tile_begin, std::int32_t tile_end) const {
    GuardedArray<float> y(
        static_cast<std::size_t>((case_.m - 1) * case_.y_stride() + case_.n_tiles() * 16));
    NumberSource(case_.seed + 1, case_.numbers).fill(y.span());
    const GuardedArray<float> scratch(kernels::matmul_scratch_floats(case_.m));
    const PackedMatrix w = matrix();
    table.matmul[kernels::matmul_kind(w.format)]({.w = &w,
                                                  .epilogue = epilogue,
                                                  .x = x_.data(),
                                                  .x_stride = case_.x_stride(),
                                                  .m = case_.m,
                                                  .y = y.data(),
                                                  .y_stride = case_.y_stride(),
                                                  .tile_begin = tile_begin,
                                                  .tile_end = tile_end,
                                                  .scratch = scratch.data()});
    EXPECT_TRUE(y.intact() && scratch.intact() && x_.intact() && tiles_.intact());
    return {y.begin(), y.end()};
  }

 private:
  void put(std::int32_t row, std::int32_t k, float value) {
    weights_[static_cast<std::size_t>(row * case_.k + k)] = as_stored(case_.type, value);
    const std::int32_t tile = row / 16;
    const std::int32_t lane = row % 16;
    const std::int32_t in_tile =
        case_.type == WeightType::bf16 ? k / 2 * 32 + lane * 2 + k % 2 : k * 16 + lane;
    put_stored(case_.type, tiles_.span(),
               static_cast<std::size_t>(tile * 16 * case_.k_padded() + in_tile), value);
  }

  MatmulCase case_;
  GuardedArray<std::byte> tiles_;
  GuardedArray<float> x_;
  std::vector<float> weights_;
};

}  // namespace openelm::test

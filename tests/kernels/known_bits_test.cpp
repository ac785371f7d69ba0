#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/matmul_case.h"

namespace openelm::test {
namespace {

/// Numbers made by integer arithmetic alone, the same on every machine.
std::vector<float> made_numbers(std::size_t n, std::uint32_t state) {
  std::vector<float> numbers(n);
  for (float& number : numbers) {
    state = state * 1664525U + 1013904223U;
    number = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31F;
  }
  return numbers;
}

/// FNV-1a over the bits of the numbers.
std::uint64_t hash_of(std::span<const float> numbers) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const float number : numbers) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(number)) * 0x100000001B3U;
  }
  return hash;
}

/// The other tests compare tables with each other on one machine; these hashes tie machines
/// together.
class KnownBits : public testing::TestWithParam<NamedTable> {};

TEST_P(KnownBits, OfAGatedMatrixProduct) {
  const std::vector<float> numbers = made_numbers(96 * 64, 1);
  GuardedArray<std::byte> tiles(numbers.size() * 2);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    put_stored(WeightType::bf16, tiles.span(), i, numbers[i]);
  }
  const PackedMatrix w{{WeightType::bf16}, 64, 96, 96, tiles.data()};
  const std::vector<float> x = made_numbers(std::size_t{7} * 96, 2);
  std::vector<float> y(std::size_t{7} * 32);
  const GuardedArray<float> scratch(kernels::matmul_scratch_floats(7));
  GetParam().table->matmul[kernels::matmul_kind(w.format)]({.w = &w,
                                                            .epilogue = kernels::Epilogue::swiglu,
                                                            .x = x.data(),
                                                            .x_stride = 96,
                                                            .m = 7,
                                                            .y = y.data(),
                                                            .y_stride = 32,
                                                            .tile_begin = 0,
                                                            .tile_end = 4,
                                                            .scratch = scratch.data()});
  EXPECT_EQ(hash_of(y), 0xC1452315F6380397U);
}

TEST_P(KnownBits, OfRmsNormRopeAndSoftmax) {
  std::vector<float> x = made_numbers(200, 3);
  const std::vector<float> factors = made_numbers(200, 4);
  GetParam().table->rms_norm(x.data(), factors.data(), 200, 1e-6F, x.data());
  GetParam().table->rope(x.data(), factors.data(), factors.data() + 100, 100);
  float sum = 0.0F;
  const float max = GetParam().table->softmax_row(x.data(), 200, 190, &sum);
  x.insert(x.end(), {max, sum});
  EXPECT_EQ(hash_of(x), 0xB7091237A25EAC0FU);
}

INSTANTIATE_TEST_SUITE_P(Tables, KnownBits, testing::ValuesIn(all_tables()), table_name);

}  // namespace
}  // namespace openelm::test

// The same input gives the same logits, to the last bit, whatever the number of threads, the
// cutting of the prompt, the company in the batch, the pages of the cache, and the instruction set.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "support/float_bits.h"
#include "support/model_runner.h"
#include "support/variants.h"

namespace openelm {
namespace {

using test::ModelRunner;
using Rows = std::vector<std::vector<float>>;

constexpr const char* kSlow =
    "the scalar kernels are slow, and what cuts the work is the same code";

/// More than one 256-key chunk, and no multiple of a page.
constexpr std::size_t kTokens = 300;

void expect_same(const Rows& actual, const Rows& expected, std::size_t from = 0) {
  ASSERT_EQ(actual.size() + from, expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(test::same_bits(actual[i], expected[from + i])) << "position " << from + i;
  }
}

class Determinism : public testing::TestWithParam<std::tuple<std::string, std::string, KvType>> {
 protected:
  const std::string isa = std::get<0>(GetParam());
  const std::string checkpoint = std::get<1>(GetParam());
  const KvType kv_type = std::get<2>(GetParam());

  /// One thread, the whole prompt in one pass, kernels of the best variant.
  Rows baseline(const std::vector<TokenId>& tokens) const {
    return ModelRunner(checkpoint, 1, test::runnable_variants().front(), kv_type)
        .run(tokens, tokens.size());
  }
  std::vector<TokenId> tokens(std::uint32_t seed, std::size_t n = kTokens) const {
    return test::some_tokens(n, 250, seed);
  }
};

TEST_P(Determinism, AnyThreadsAndAnyChunks) {
  const auto prompt = tokens(1);
  const Rows expected = baseline(prompt);
  struct Cut {
    int threads;
    std::size_t chunk;
  };
  std::vector<Cut> cuts = {{2, 64}};
  // What cuts the work is the same code for all variants: the best one stands for it.
  if (isa == test::runnable_variants().front()) {
    cuts.insert(cuts.end(), {{1, 1}, {2, 1}, {1, 7}, {5, kTokens}});
  }
  for (const Cut cut : cuts) {
    SCOPED_TRACE(std::to_string(cut.threads) + " threads, chunks of " + std::to_string(cut.chunk));
    ModelRunner runner(checkpoint, cut.threads, isa, kv_type);
    expect_same(runner.run(prompt, cut.chunk), expected);
  }
}

TEST_P(Determinism, AnyCompanyInTheBatch) {
  if (isa == "scalar") GTEST_SKIP() << kSlow;
  const auto a = tokens(1);
  const auto b = tokens(2, 40);
  const auto c = tokens(3, 270);
  const Rows expected_a = baseline(a);
  const Rows expected_b = baseline(b);
  const Rows expected_c = baseline(c);
  ModelRunner runner(checkpoint, 3, isa, kv_type);
  const auto sa = runner.cache().add_sequence();
  const auto sb = runner.cache().add_sequence();
  const auto sc = runner.cache().add_sequence();
  // Pages are taken in turn, so no sequence's pages lie one after the other; prompts of different
  // lengths go together with single decode steps of others.
  std::size_t done_a = 0;
  std::size_t done_b = 0;
  std::size_t done_c = 0;
  for (std::size_t step = 0; done_a < a.size() || done_b < b.size() || done_c < c.size(); ++step) {
    std::vector<ModelRunner::Part> parts;
    const auto take = [&](std::int32_t sequence, const std::vector<TokenId>& all, std::size_t& done,
                          std::size_t n) {
      n = std::min(n, all.size() - done);
      if (n == 0) return;
      parts.push_back({sequence, static_cast<std::int32_t>(done), std::span(all).subspan(done, n)});
      done += n;
    };
    const std::size_t from_a = done_a;
    const std::size_t from_b = done_b;
    const std::size_t from_c = done_c;
    take(sa, a, done_a, step % 3 == 0 ? 17 : 1);
    take(sb, b, done_b, 1);
    take(sc, c, done_c, step % 2 == 0 ? 5 : 33);
    const Rows rows = runner.pass(parts);
    std::size_t row = 0;
    for (std::size_t i = from_a; i < done_a; ++i) {
      ASSERT_TRUE(test::same_bits(rows[row++], expected_a[i])) << "a " << i;
    }
    for (std::size_t i = from_b; i < done_b; ++i) {
      ASSERT_TRUE(test::same_bits(rows[row++], expected_b[i])) << "b " << i;
    }
    for (std::size_t i = from_c; i < done_c; ++i) {
      ASSERT_TRUE(test::same_bits(rows[row++], expected_c[i])) << "c " << i;
    }
  }
}

TEST_P(Determinism, PagesThatOthersUsedBefore) {
  if (isa == "scalar") GTEST_SKIP() << kSlow;
  const auto first = tokens(4, 100);
  const auto second = tokens(5, 120);
  const Rows expected = baseline(second);
  ModelRunner runner(checkpoint, 2, isa, kv_type, 8);
  runner.run(first, 100);
  expect_same(runner.run(second, 50), expected);
}

TEST_P(Determinism, RewoundAndEvaluatedAnew) {
  if (isa == "scalar") GTEST_SKIP() << kSlow;
  const auto prompt = tokens(6, 90);
  auto wrong = prompt;
  for (std::size_t i = 50; i < wrong.size(); ++i) wrong[i] = (wrong[i] + 1) % 250;
  const Rows expected = baseline(prompt);
  ModelRunner runner(checkpoint, 2, isa, kv_type);
  const auto sequence = runner.cache().add_sequence();
  runner.pass({{sequence, 0, wrong}});
  runner.cache().shrink(sequence, 50);
  expect_same(runner.pass({{sequence, 50, std::span(prompt).subspan(50)}}), expected, 50);
}

/// FNV-1a over the bits of all logits.
std::uint64_t hash_of(const Rows& rows) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const auto& row : rows) {
    for (const float value : row) {
      hash = (hash ^ std::bit_cast<std::uint32_t>(value)) * 0x100000001B3U;
    }
  }
  return hash;
}

// Machines that never meet agree as well: x86-64 and ARM64 builds are held to the same constants.
TEST_P(Determinism, SameBitsOnEveryMachine) {
  const std::map<std::string, std::uint64_t> expected = {
      {"tiny-gqa4 f32", 0xA8D21EC48C01783AU},      {"tiny-gqa4 f16", 0x3A1F837B86A9A856U},
      {"tiny-gqa4 bf16", 0x57BC8DEBADACF84EU},     {"tiny-gqa4 q8", 0xB9F324D9D798CBC4U},
      {"tiny-mha f32", 0xFD3EA070F9701B8CU},       {"tiny-mqa f32", 0x6EF643CC812346C4U},
      {"tiny-gqa4+q8 f32", 0x7916B68A299B8F99U},   {"tiny-gqa4+q4 f32", 0xD9CB9E435A6CBB68U},
      {"openelm-tiny+q4 f32", 0x3544066DB4DDA195U}};
  ModelRunner runner(checkpoint, 2, isa, kv_type);
  EXPECT_EQ(hash_of(runner.run(tokens(1), 100)),
            expected.at(checkpoint + " " + to_string(kv_type)));
}

std::string test_name(const testing::TestParamInfo<Determinism::ParamType>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param) + "_" +
                     to_string(std::get<2>(info.param));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == '+'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, Determinism,
                         testing::Combine(testing::ValuesIn(test::runnable_variants()),
                                          testing::Values("tiny-gqa4", "tiny-mha", "tiny-mqa"),
                                          testing::Values(KvType::f32)),
                         test_name);
// In the first two the matrices whose width is no multiple of 32 stay plain.
INSTANTIATE_TEST_SUITE_P(Quantised, Determinism,
                         testing::Combine(testing::ValuesIn(test::runnable_variants()),
                                          testing::Values("tiny-gqa4+q8", "tiny-gqa4+q4",
                                                          "openelm-tiny+q4"),
                                          testing::Values(KvType::f32)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(CacheTypes, Determinism,
                         testing::Combine(testing::ValuesIn(test::runnable_variants()),
                                          testing::Values("tiny-gqa4"),
                                          testing::Values(KvType::f16, KvType::bf16, KvType::q8)),
                         test_name);

}  // namespace
}  // namespace openelm

#include "runtime/sequence_pool.h"

#include <filesystem>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/error.h>
#include <openelm/session.h>

namespace openelm {
namespace {

using Logits = std::vector<float>;
using Tokens = std::vector<TokenId>;

std::shared_ptr<const Engine> tiny() {
  static const auto engine =
      Engine::load(std::filesystem::path(OPENELM_TEST_DATA) / "ckpt" / "tiny-gqa4", {.threads = 2});
  return engine;
}

Tokens ids(std::size_t n, TokenId from = 0) {
  Tokens tokens(n);
  for (std::size_t i = 0; i < n; ++i)
    tokens[i] = static_cast<TokenId>((i * 37 + static_cast<std::size_t>(from) * 11) % 300);
  return tokens;
}

Tokens operator+(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class Pools : public testing::TestWithParam<KvType> {
 protected:
  SequencePool pool(std::int32_t n_pages = 64) const {
    return {tiny(), {.context = 256, .kv_type = GetParam(), .n_pages = n_pages, .max_rows = 64}};
  }

  /// Logits after the last token, in a session of its own.
  Logits fresh(const Tokens& tokens) const {
    Session session(tiny(), {.context = 256, .kv_type = GetParam()});
    const auto logits = session.evaluate(tokens);
    return {logits.begin(), logits.end()};
  }
};

/// Appends tokens to several sequences together; the logits after the last token of each.
std::vector<Logits> append(SequencePool& pool,
                           const std::vector<std::pair<std::int32_t, Tokens>>& parts) {
  std::vector<std::int32_t> last;
  for (const auto& [sequence, tokens] : parts) {
    last.push_back(static_cast<std::int32_t>(tokens.size()) - 1);
  }
  std::vector<SequencePool::Work> work;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    work.push_back({parts[i].first, parts[i].second, {&last[i], 1}});
  }
  std::vector<Logits> logits(parts.size());
  pool.evaluate(work, [&](std::size_t item, std::int32_t, std::span<const float> row) {
    logits[item].assign(row.begin(), row.end());
  });
  return logits;
}

TEST_P(Pools, SequencesOfOnePassEqualTheirOwnSessions) {
  SequencePool p = pool();
  const std::int32_t a = p.add();
  const std::int32_t b = p.add();
  const std::int32_t c = p.add();
  const auto first = append(p, {{a, ids(70, 1)}, {b, ids(3, 2)}, {c, ids(33, 3)}});
  EXPECT_EQ(first[0], fresh(ids(70, 1)));
  EXPECT_EQ(first[1], fresh(ids(3, 2)));
  EXPECT_EQ(first[2], fresh(ids(33, 3)));
  const auto second = append(p, {{c, {7}}, {a, {8}}, {b, ids(20, 4)}});
  EXPECT_EQ(second[0], fresh(ids(33, 3) + Tokens{7}));
  EXPECT_EQ(second[1], fresh(ids(70, 1) + Tokens{8}));
  EXPECT_EQ(second[2], fresh(ids(3, 2) + ids(20, 4)));
}

TEST_P(Pools, ForksEqualFreshRunsWhicheverGoesOnFirst) {
  for (const std::int32_t length : {1, 15, 16, 17, 40}) {
    SequencePool p = pool();
    const std::int32_t parent = p.add();
    append(p, {{parent, ids(40)}});
    const auto child = p.fork(parent, length);
    ASSERT_TRUE(child);
    const Tokens shared(p.tokens(*child).begin(), p.tokens(*child).end());
    ASSERT_EQ(shared.size(), static_cast<std::size_t>(length));
    EXPECT_EQ(append(p, {{*child, ids(9, 5)}})[0], fresh(shared + ids(9, 5)));
    EXPECT_EQ(append(p, {{parent, ids(5, 6)}})[0], fresh(ids(40) + ids(5, 6)));
    EXPECT_EQ(append(p, {{*child, {3}}})[0], fresh(shared + ids(9, 5) + Tokens{3}));
  }
}

TEST_P(Pools, RewindingIntoASharedPageLeavesTheOtherAlone) {
  SequencePool p = pool();
  const std::int32_t parent = p.add();
  append(p, {{parent, ids(48)}});
  const auto child = p.fork(parent, 48);
  ASSERT_TRUE(child);
  p.rewind(*child, 20);
  EXPECT_EQ(append(p, {{*child, ids(12, 9)}})[0], fresh(Tokens(ids(20)) + ids(12, 9)));
  EXPECT_EQ(append(p, {{parent, {5}}})[0], fresh(ids(48) + Tokens{5}));
}

TEST_P(Pools, SharedPagesAreHeldOnceAndAllComeBack) {
  SequencePool p = pool(10);
  const std::int32_t parent = p.add();
  append(p, {{parent, ids(64)}});
  EXPECT_EQ(p.free_pages(), 6);
  const auto whole = p.fork(parent, 64);
  const auto part = p.fork(parent, 60);
  ASSERT_TRUE(whole && part);
  EXPECT_EQ(p.free_pages(), 5);  // only the page in part was copied
  p.remove(parent);
  EXPECT_EQ(p.free_pages(), 5);  // `whole` still holds them all
  p.remove(*whole);
  EXPECT_EQ(p.free_pages(), 6);
  p.remove(*part);
  EXPECT_EQ(p.free_pages(), 10);
}

TEST_P(Pools, WithoutAFreePageNothingChanges) {
  SequencePool p = pool(3);
  const std::int32_t a = p.add();
  append(p, {{a, ids(40)}});
  EXPECT_FALSE(p.fork(a, 20));
  EXPECT_TRUE(p.fork(a, 32));
  const std::int32_t b = p.add();
  EXPECT_THROW(append(p, {{a, {1}}, {b, {2}}}), Error);
  EXPECT_EQ(p.length(a), 40);
  EXPECT_EQ(p.length(b), 0);
  EXPECT_EQ(append(p, {{a, {9}}})[0], fresh(ids(40) + Tokens{9}));
}

INSTANTIATE_TEST_SUITE_P(CacheTypes, Pools,
                         testing::Values(KvType::f32, KvType::f16, KvType::bf16, KvType::q8),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace openelm

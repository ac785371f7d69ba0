#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/batch.h>
#include <openelm/error.h>
#include <openelm/session.h>

#include "model/kv_cache.h"

namespace openelm {
namespace {

using Tokens = std::vector<TokenId>;

std::shared_ptr<const Engine> tiny() {
  static const auto engine =
      Engine::load(std::filesystem::path(OPENELM_TEST_DATA) / "ckpt" / "tiny-gqa4", {.threads = 2});
  return engine;
}

constexpr std::int32_t kContext = 160;

std::uint64_t bytes_of_pages(std::int32_t n) {
  return kv_bytes(tiny()->config(), KvType::f32, n * KvCache::kPageSize);
}

/// Requests in, answers out.
struct Outcome {
  std::map<std::uint64_t, BatchAnswer> answers;
  BatchStatistics statistics;
};

Outcome run(std::vector<BatchRequest> requests, BatchOptions options,
            const std::atomic<bool>* cancel = nullptr) {
  options.context = kContext;
  options.kv_type = KvType::f32;
  Outcome done;
  std::size_t next = 0;
  const BatchHooks hooks{.next =
                             [&](BatchRequest& request, bool) {
                               if (next == requests.size()) return BatchHooks::Supply::end;
                               request = requests[next++];
                               return BatchHooks::Supply::request;
                             },
                         .answer =
                             [&](BatchAnswer answer) {
                               const std::uint64_t number = answer.number;
                               EXPECT_TRUE(done.answers.emplace(number, std::move(answer)).second)
                                   << "answered twice";
                               return true;
                             },
                         .progress = {}};
  done.statistics = generate_batch(tiny(), nullptr, options, hooks, cancel);
  return done;
}

GenerationResult alone(const BatchRequest& request) {
  Session session(tiny(), {.context = kContext, .kv_type = KvType::f32});
  return generate(session, nullptr, request.prompt, request.options);
}

Tokens random_tokens(std::mt19937& random, std::size_t n) {
  Tokens tokens(n);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 300);
  return tokens;
}

BatchRequest request(std::uint64_t number, Tokens prompt, std::int32_t max_tokens = 8) {
  BatchRequest made{.number = number, .prompt = std::move(prompt), .options = {}};
  made.options.max_tokens = max_tokens;
  made.options.sampling.seed = number;
  return made;
}

/// Prompts of all lengths, some of which begin alike or are the same; all kinds of sampling.
std::vector<BatchRequest> mix(unsigned seed, std::size_t n) {
  std::mt19937 random(seed);
  const std::vector<Tokens> heads = {{}, random_tokens(random, 40), random_tokens(random, 100)};
  std::vector<BatchRequest> requests;
  for (std::size_t i = 0; i < n; ++i) {
    Tokens prompt = heads[random() % heads.size()];
    const Tokens tail = random_tokens(random, 1 + random() % 60);
    prompt.insert(prompt.end(), tail.begin(), tail.end());
    if (i > 0 && random() % 6 == 0) prompt = requests[random() % i].prompt;
    requests.push_back(request(i, prompt, static_cast<std::int32_t>(random() % 30) - 1));
    GenerationOptions& options = requests.back().options;
    options.sampling.temperature = random() % 3 == 0 ? 0.0F : 1.0F;
    options.sampling.repetition_penalty = random() % 2 == 0 ? 1.0F : 1.3F;
    options.ignore_eos = random() % 2 == 0;
    options.logprobs = random() % 4 == 0 ? 2 : -1;
  }
  return requests;
}

class Mixes : public testing::TestWithParam<std::int32_t> {};

TEST_P(Mixes, EachAnswerIsThatOfTheRequestAlone) {
  const std::vector<BatchRequest> requests = mix(static_cast<unsigned>(GetParam()), 40);
  const std::int32_t pages = kv_pages(kContext);
  for (const BatchOptions& options :
       {BatchOptions{.parallel = GetParam()},
        BatchOptions{.parallel = GetParam(), .kv_bytes = bytes_of_pages(pages)},
        BatchOptions{.parallel = GetParam(), .kv_bytes = bytes_of_pages(2 * pages + 3)}}) {
    const Outcome done = run(requests, options);
    ASSERT_EQ(done.answers.size(), requests.size());
    for (const BatchRequest& request : requests) {
      const BatchAnswer& answer = done.answers.at(request.number);
      const GenerationResult expected = alone(request);
      ASSERT_FALSE(answer.error) << *answer.error;
      EXPECT_EQ(answer.result.tokens, expected.tokens) << "request " << request.number;
      EXPECT_EQ(answer.result.reason, expected.reason);
      ASSERT_EQ(answer.result.logprobs.size(), expected.logprobs.size());
      for (std::size_t i = 0; i < expected.logprobs.size(); ++i) {
        EXPECT_EQ(answer.result.logprobs[i].logprob, expected.logprobs[i].logprob);
        EXPECT_EQ(answer.result.logprobs[i].top, expected.logprobs[i].top);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Parallel, Mixes, testing::Values(1, 2, 3, 7, 16, 64),
                         testing::PrintToStringParamName());

TEST(Batch, EvaluatesACommonBeginningOnce) {
  std::mt19937 random(5);
  const Tokens head = random_tokens(random, 100);
  std::vector<BatchRequest> requests;
  for (std::uint64_t i = 0; i < 20; ++i) {
    Tokens prompt = head;
    prompt.push_back(static_cast<TokenId>(i));
    prompt.push_back(7);
    requests.push_back(request(i, prompt));
  }
  const Outcome done = run(requests, {.parallel = 4});
  EXPECT_EQ(done.statistics.prompt_tokens, 20U * 102);
  EXPECT_EQ(done.statistics.evaluated_tokens, 100U + 20 * 2);
}

TEST(Batch, DoesNotShareShortBeginnings) {
  const Tokens head(31, 9);
  std::vector<BatchRequest> requests;
  for (TokenId i = 0; i < 4; ++i) {
    Tokens prompt = head;
    prompt.push_back(100 + i);
    requests.push_back(request(static_cast<std::uint64_t>(i), prompt));
  }
  EXPECT_EQ(run(requests, {.parallel = 2}).statistics.evaluated_tokens, 4U * 32);
}

TEST(Batch, RefusesOneRequestAndGoesOnWithTheOthers) {
  BatchRequest bad_option = request(4, {1, 2});
  bad_option.options.sampling.top_p = 2;
  const Outcome done =
      run({request(0, {1, 2, 3}), request(1, {}), request(2, Tokens(kContext + 1, 5)),
           request(3, {1, 100000}), bad_option, request(5, {4, 5})},
          {.parallel = 3});
  ASSERT_EQ(done.answers.size(), 6U);
  EXPECT_EQ(done.statistics.errors, 4U);
  EXPECT_FALSE(done.answers.at(0).error);
  EXPECT_NE(done.answers.at(1).error->find("no tokens"), std::string::npos);
  EXPECT_NE(done.answers.at(2).error->find("161"), std::string::npos);
  EXPECT_NE(done.answers.at(3).error->find("100000"), std::string::npos);
  EXPECT_NE(done.answers.at(4).error->find("top-p"), std::string::npos);
  EXPECT_FALSE(done.answers.at(5).error);
}

TEST(Batch, FullContextAndNoTokens) {
  const Outcome done =
      run({request(0, Tokens(kContext, 3)), request(1, {1, 2}, 0)}, {.parallel = 2});
  EXPECT_EQ(done.answers.at(0).result.reason, FinishReason::context);
  EXPECT_EQ(done.answers.at(1).result.reason, FinishReason::length);
  EXPECT_TRUE(done.answers.at(1).result.tokens.empty());
}

TEST(Batch, NothingToDo) { EXPECT_EQ(run({}, {}).statistics.answers, 0U); }

TEST(Batch, EndsWhenCancelled) {
  const std::atomic<bool> cancel{true};
  const Outcome done = run({request(0, {1, 2})}, {}, &cancel);
  EXPECT_TRUE(done.statistics.ended_early);
  EXPECT_TRUE(done.answers.empty());
}

TEST(Batch, EndsWhenAnAnswerIsRefused) {
  int answers = 0;
  std::uint64_t number = 0;
  const BatchHooks hooks{.next =
                             [&](BatchRequest& out, bool) {
                               out = request(number++, {1, 2}, 3);
                               return BatchHooks::Supply::request;  // for ever
                             },
                         .answer = [&](const BatchAnswer&) { return ++answers < 10; },
                         .progress = {}};
  const BatchStatistics statistics = generate_batch(
      tiny(), nullptr, {.context = kContext, .kv_type = KvType::f32, .parallel = 2}, hooks);
  EXPECT_TRUE(statistics.ended_early);
  EXPECT_GE(answers, 10);
}

/// A worker that is fed record by record must not wait for the next request while one is running.
TEST(Batch, DoesNotWaitForRequestsWhileItHasWork) {
  int given = 0;
  int answered = 0;
  const BatchHooks hooks{.next =
                             [&](BatchRequest& out, bool wait) {
                               if (given == 3) return BatchHooks::Supply::end;
                               EXPECT_EQ(wait, given == answered)
                                   << "waiting is right only when nothing runs";
                               if (given > answered) return BatchHooks::Supply::none_yet;
                               out = request(static_cast<std::uint64_t>(given++), {1, 2}, 3);
                               return BatchHooks::Supply::request;
                             },
                         .answer =
                             [&](const BatchAnswer&) {
                               ++answered;
                               return true;
                             },
                         .progress = {}};
  generate_batch(tiny(), nullptr, {.context = kContext, .kv_type = KvType::f32, .parallel = 2},
                 hooks);
  EXPECT_EQ(answered, 3);
}

TEST(Batch, RefusesWrongOptions) {
  EXPECT_THROW(run({}, {.parallel = kMaxParallel + 1}), UsageError);
  EXPECT_THROW(run({}, {.parallel = -1}), UsageError);
}

}  // namespace
}  // namespace openelm

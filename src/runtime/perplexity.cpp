#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <utility>

#include <openelm/error.h>
#include <openelm/evaluation.h>
#include <openelm/session.h>

#include "runtime/engine_impl.h"
#include "runtime/logit_row.h"
#include "runtime/sequence_pool.h"
#include "runtime/window_cutter.h"
#include "text/token_stream.h"

namespace openelm {
namespace {

/// Pages of the cache that windows evaluated together may take: 2048 positions, or one window.
constexpr std::int32_t kGroupPages = 2048 / KvCache::kPageSize;
constexpr std::int32_t kMaxRows = 512;

std::int32_t windows_of_group(const WindowOptions& options) {
  const std::int32_t pages = kv_pages(options.context);
  return (kGroupPages + pages - 1) / pages;
}

std::vector<std::int32_t> token_lengths(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> lengths;
  std::string bytes;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    bytes.clear();
    tokenizer.append_bytes(id, bytes);
    lengths.push_back(static_cast<std::int32_t>(bytes.size()));
  }
  return lengths;
}

}  // namespace

std::optional<double> TextScore::perplexity() const {
  if (scored == 0) return std::nullopt;
  return std::exp(nll / static_cast<double>(scored));
}

std::optional<double> TextScore::standard_error() const {
  if (scored < 2) return std::nullopt;
  const auto n = static_cast<double>(scored);
  const double mean = nll / n;
  const double variance = std::max(0.0, nll_squares / n - mean * mean);
  return std::exp(mean) * std::sqrt(variance / (n - 1));
}

std::optional<double> TextScore::bits_per_byte() const {
  if (bytes == 0) return std::nullopt;
  return nll / std::numbers::ln2 / static_cast<double>(bytes);
}

std::optional<double> TextScore::word_perplexity() const {
  if (!words || scored == 0) return std::nullopt;
  return std::exp(nll / static_cast<double>(*words));
}

TextScore& TextScore::operator+=(const TextScore& other) {
  tokens += other.tokens;
  scored += other.scored;
  bytes += other.bytes;
  words = words && other.words ? std::optional(*words + *other.words) : std::nullopt;
  nll += other.nll;
  nll_squares += other.nll_squares;
  partial = partial || other.partial;
  return *this;
}

struct PerplexityEvaluator::Impl {
  Impl(std::shared_ptr<const Engine> engine, std::shared_ptr<const Tokenizer> text_tokenizer,
       const WindowOptions& wanted, KvType kv)
      : tokenizer(std::move(text_tokenizer)),
        options(resolve(wanted, engine->config().max_context)),
        kv_type(kv),
        pool(engine,
             {.context = options.context,
              .kv_type = kv_type,
              .n_pages = windows_of_group(options) * kv_pages(options.context),
              .max_rows = std::min(kMaxRows, windows_of_group(options) * options.context)}) {
    if (!tokenizer) return;
    cuts.emplace(*tokenizer);
    lengths = token_lengths(*tokenizer);
  }

  /// Scores as many windows as belong together, and says whether there were any.
  template <typename More>
  bool score_group(WindowCutter& cutter, const More& more, const PerplexityHooks& hooks,
                   TextScore& score);
  void score_windows(const std::vector<Window>& windows, const PerplexityHooks& hooks,
                     TextScore& score);
  void count(std::span<const ScoredToken> tokens, TextScore& score) const;

  std::shared_ptr<const Tokenizer> tokenizer;
  WindowOptions options;
  KvType kv_type;
  SequencePool pool;
  std::optional<TextCuts> cuts;
  std::vector<std::int32_t> lengths;  // bytes of each token's text
};

template <typename More>
bool PerplexityEvaluator::Impl::score_group(WindowCutter& cutter, const More& more,
                                            const PerplexityHooks& hooks, TextScore& score) {
  std::vector<Window> windows;
  while (std::ssize(windows) < windows_of_group(options)) {
    if (auto window = cutter.next()) {
      windows.push_back(std::move(*window));
    } else if (!more()) {
      break;
    }
  }
  score.tokens = cutter.text_tokens();
  if (!windows.empty()) score_windows(windows, hooks, score);
  return !windows.empty();
}

void PerplexityEvaluator::Impl::score_windows(const std::vector<Window>& windows,
                                              const PerplexityHooks& hooks, TextScore& score) {
  std::vector<std::int32_t> wanted(static_cast<std::size_t>(options.context));
  std::iota(wanted.begin(), wanted.end(), 0);
  std::vector<SequencePool::Work> work;
  std::vector<std::size_t> first_slot;  // of each window
  std::vector<ScoredToken> scored;
  for (const Window& w : windows) {
    const std::size_t n = w.tokens.size() - w.first_target;
    work.push_back({pool.add(), std::span(w.tokens).first(w.tokens.size() - 1),
                    std::span(wanted).subspan(w.first_target - 1, n)});
    first_slot.push_back(scored.size());
    for (std::size_t i = 0; i < n; ++i) {
      scored.push_back({.index = w.first_index + static_cast<std::int64_t>(i),
                        .id = w.tokens[w.first_target + i]});
    }
  }

  std::atomic<bool> finite{true};
  const kernels::KernelTable& kernels = pool.engine().impl().kernels;
  const auto score_row = [&](std::size_t item, std::int32_t i, std::span<const float> logits) {
    const Window& window = windows[item];
    const auto index = static_cast<std::size_t>(i);
    ScoredToken& token = scored[first_slot[item] + index + 1 - window.first_target];
    const RowMass mass = row_mass(kernels, logits, hooks.details);
    token.logprob = double{logits[static_cast<std::size_t>(token.id)]} - mass.log_sum;
    if (!all_finite(logits)) finite = false;
    if (hooks.details) {
      token.rank = rank_of(logits, token.id);
      token.entropy = mass.entropy();
    }
  };
  try {
    pool.scan(work, score_row, hooks.cancel);
  } catch (...) {
    for (const auto& w : work) pool.remove(w.sequence);
    throw;
  }
  for (const auto& w : work) pool.remove(w.sequence);
  if (!finite) {
    throw Error("the model's output is not finite: the weights hold NaN or infinity, or overflow " +
                std::string(to_string(kv_type)) + " keys and values");
  }
  count(scored, score);
  if (hooks.on_tokens) hooks.on_tokens(scored);
}

void PerplexityEvaluator::Impl::count(std::span<const ScoredToken> tokens, TextScore& score) const {
  for (const ScoredToken& token : tokens) {
    score.nll -= token.logprob;
    score.nll_squares += token.logprob * token.logprob;
    if (!tokenizer) continue;
    score.bytes += lengths[static_cast<std::size_t>(token.id)];
    // The space that the tokenizer put in front of the text is not the text's.
    const bool has_mark = token.index == 0 && tokenizer->adds_leading_space() &&
                          tokenizer->piece(token.id).starts_with("\u2581");
    if (has_mark) --score.bytes;
  }
  score.scored += static_cast<std::int64_t>(tokens.size());
}

PerplexityEvaluator::PerplexityEvaluator(std::shared_ptr<const Engine> engine,
                                         std::shared_ptr<const Tokenizer> tokenizer,
                                         const WindowOptions& options, KvType kv_type)
    : impl_(std::make_unique<Impl>(std::move(engine), std::move(tokenizer), options, kv_type)) {}
PerplexityEvaluator::~PerplexityEvaluator() = default;

const WindowOptions& PerplexityEvaluator::options() const noexcept { return impl_->options; }

TextScore PerplexityEvaluator::evaluate(const ReadText& read, const std::string& name,
                                        std::int64_t max_tokens, const PerplexityHooks& hooks) {
  Impl& s = *impl_;
  if (!s.tokenizer) throw UsageError("a text needs a tokenizer");
  std::int64_t bytes_read = 0;
  TokenStream stream(
      *s.tokenizer, *s.cuts,
      [&](std::span<char> to) {
        const std::size_t n = read(to);
        bytes_read += static_cast<std::int64_t>(n);
        return n;
      },
      name);
  WindowCutter cutter(s.options, s.pool.engine().config().bos_id);
  TextScore score;
  bool cut_short = false;
  bool ended = false;
  const auto more = [&] {
    if (ended) return false;
    std::vector<TokenId> ids = stream.next();
    ended = ids.empty();
    const std::int64_t room = max_tokens - cutter.text_tokens();
    if (max_tokens >= 0 && std::ssize(ids) > room) {
      ids.resize(static_cast<std::size_t>(room));
      cut_short = ended = true;
    }
    cutter.push(ids);
    if (ended) cutter.finish();
    return true;
  };
  try {
    while (s.score_group(cutter, more, hooks, score)) {
      if (!hooks.progress) continue;
      const double share = static_cast<double>(score.scored) / static_cast<double>(score.tokens);
      hooks.progress(score, static_cast<std::int64_t>(share * static_cast<double>(bytes_read)));
    }
  } catch (const Interrupted&) {
    score.partial = true;
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    const std::string what = error.what();
    throw Error(what.starts_with(name + ": ") ? what : name + ": " + what);
  }
  if (!score.partial && !cut_short && score.scored == score.tokens) score.words = stream.words();
  return score;
}

TextScore PerplexityEvaluator::evaluate(std::span<const TokenId> tokens,
                                        const PerplexityHooks& hooks) {
  Impl& s = *impl_;
  WindowCutter cutter(s.options, s.pool.engine().config().bos_id);
  cutter.push(tokens);
  cutter.finish();
  TextScore score;
  try {
    while (s.score_group(
        cutter, [] { return false; }, hooks, score)) {
    }
  } catch (const Interrupted&) {
    score.partial = true;
  }
  return score;
}

}  // namespace openelm

#include "cli/batch_report.h"

#include <algorithm>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "cli/format.h"

namespace openelm::cli {
namespace {

double generation_speed(const BatchSummary& summary) {
  return per_second(static_cast<double>(summary.statistics.generated_tokens), summary.seconds);
}

/// Prompt tokens that were taken over from another prompt.
std::uint64_t shared_tokens(const BatchStatistics& statistics) {
  return statistics.prompt_tokens - std::min(statistics.prompt_tokens, statistics.evaluated_tokens);
}

}  // namespace

nlohmann::ordered_json summary_json(const BatchSummary& summary) {
  const BatchStatistics& s = summary.statistics;
  return {{"records", summary.records},
          {"failed", summary.failed},
          {"resumed", summary.resumed},
          {"complete", summary.complete},
          {"seconds", summary.seconds},
          {"prompt_tokens", s.prompt_tokens},
          {"prompt_tokens_evaluated", s.evaluated_tokens},
          {"prompt_tokens_shared", shared_tokens(s)},
          {"generated_tokens", s.generated_tokens},
          {"tokens_per_second", generation_speed(summary)},
          {"full_batch_tokens_per_second",
           per_second(static_cast<double>(s.full_pass_tokens), s.full_pass_seconds)},
          {"passes", s.passes},
          {"parallel", s.parallel},
          {"kv_bytes", s.kv_bytes},
          {"seed", summary.seed}};
}

std::string summary_text(const BatchSummary& summary) {
  const BatchStatistics& s = summary.statistics;
  const std::string resumed =
      summary.resumed > 0 ? fmt::format(", {} were there before", summary.resumed) : "";
  return fmt::format(
      "records:    {} done, {} failed{}{}\n"
      "prompts:    {} tokens, {} of them shared\n"
      "generation: {} tokens in {:.1f} s, {:.1f} tokens/s\n"
      "set-up:     seed {}, {} sequences at once, {} for keys and values\n",
      summary.records, summary.failed, resumed, summary.complete ? "" : "; ended early",
      s.prompt_tokens, shared_tokens(s), s.generated_tokens, summary.seconds,
      generation_speed(summary), summary.seed, s.parallel, format_bytes(s.kv_bytes));
}

BatchProgress::BatchProgress(bool quiet, const BatchInput& input) : progress_("Batch", quiet) {
  if (progress_.enabled()) total_ = input.count_records();
}

void BatchProgress::show(std::uint64_t done, const BatchStatistics& statistics) {
  if (!progress_.enabled()) return;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::string count =
      total_ ? fmt::format("{}/{} records", done, *total_) : fmt::format("{} records", done);
  std::string detail =
      fmt::format("{}, {:.0f} tokens/s", count,
                  per_second(static_cast<double>(statistics.generated_tokens), seconds));
  if (total_ && done > 0 && done <= *total_) {
    const auto left = static_cast<std::uint64_t>(seconds * static_cast<double>(*total_ - done) /
                                                 static_cast<double>(done));
    detail += fmt::format(", {}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
  }
  progress_.show(done, total_.value_or(0), detail);
}

}  // namespace openelm::cli

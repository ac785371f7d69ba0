#include "cli/log.h"

#include <cstdlib>
#include <memory>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

namespace openelm::cli {
namespace {

bool wants_color(const std::string& color) {
  if (color != "auto") return color == "always";
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return false;
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

}  // namespace

void set_up_log(const LogOptions& options) {
  const auto mode =
      wants_color(options.color) ? spdlog::color_mode::always : spdlog::color_mode::never;
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_st>(mode);
  auto logger = std::make_shared<spdlog::logger>("openelm", std::move(sink));
  logger->set_pattern("openelm: %^%l%$: %v");
  logger->set_level(options.quiet ? spdlog::level::err : spdlog::level::from_str(options.level));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace openelm::cli

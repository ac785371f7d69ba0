#include <limits>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <openelm/error.h>

#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/log.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "parallel/cpu_topology.h"
#include "runtime/quantize_folder.h"

namespace openelm::cli {
namespace {

struct QuantizeCommandOptions {
  LogOptions log;
  std::string in;
  std::string out;
  QuantizeOptions quantize{.bits = 4};
  int threads = 0;
  bool force = false;
};

std::string summary_text(const std::string& out, const QuantizedFolder& folder) {
  return fmt::format("folder   {}\n", out) +
         fmt::format("weights  {} -> {}\n", format_bytes(folder.bytes_in),
                     format_bytes(folder.bytes_out)) +
         fmt::format("body     {:.2f} bits a weight\n", folder.body.bits_per_weight()) +
         fmt::format("head     {:.2f} bits a weight\n", folder.head.bits_per_weight()) +
         fmt::format("tensors  {} quantised, {} kept as they are\n", folder.quantized,
                     folder.kept.size());
}

int run_quantize(const QuantizeCommandOptions& options) {
  set_up_log(options.log);
  const MappedFileGuard guard(options.in.c_str());
  // However often Ctrl-C is pressed, what was begun is taken away first.
  const InterruptScope interrupt(std::numeric_limits<int>::max());
  ThreadPool pool(options.threads > 0 ? options.threads : default_thread_count());
  std::optional<QuantizedFolder> folder;
  {
    Progress progress("Quantising", options.log.quiet);
    const QuantizeFolderOptions how{
        .quantize = options.quantize,
        .replace = options.force,
        .progress = [&progress](auto done, auto total) { progress.show(done, total); },
        .cancel = &interrupt.requested()};
    folder = quantize_folder(options.in, options.out, how, pool);
  }
  if (!folder) return kExitInterrupted;
  for (const std::string& warning : folder->warnings) spdlog::warn("{}", warning);
  if (folder->note) spdlog::warn("{}: {}", options.in, *folder->note);
  Output output;
  output.write(summary_text(options.out, *folder));
  return kExitDone;
}

}  // namespace

Command add_quantize(CLI::App& program) {
  auto options = std::make_shared<QuantizeCommandOptions>();
  QuantizeCommandOptions* const o = options.get();
  CLI::App* app = program.add_subcommand(
      "quantize", "Write a model folder with weights of 4 or 8 bits, in MLX's format");
  app->add_option("IN", o->in, "The model folder to read")->type_name("")->required();
  app->add_option("OUT", o->out, "The folder to write")->type_name("")->required();
  add_number_choice(*app, "--bits", o->quantize.bits, {kAffineBits.begin(), kAffineBits.end()},
                    "Of the layers' weights (default 4)");
  add_number_choice(*app, "--group-size", o->quantize.group_size,
                    {kAffineGroupSizes.begin(), kAffineGroupSizes.end()},
                    "Weights that share a scale and a bias (default 64)");
  add_number_choice(*app, "--head-bits", o->quantize.head_bits,
                    {kAffineBits.begin(), kAffineBits.end()},
                    "Of the embedding and the head (default 8)");
  app->add_flag("--force", o->force, "Replace a model folder that is at OUT");
  add_threads_option(*app, o->threads);
  add_log_options(*app, o->log);
  app->footer(
      "OUT appears when it is complete; a failure or Ctrl-C leaves nothing behind. openelm and\n"
      "mlx-lm read it.\n\n"
      "Example:\n  openelm quantize ./OpenELM-1_1B ./OpenELM-1_1B-4bit --bits 4");
  return {app, [options] { return run_quantize(*options); }};
}

}  // namespace openelm::cli

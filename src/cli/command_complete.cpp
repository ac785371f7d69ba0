#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <openelm/error.h>
#include <openelm/generation.h>

#include "base/utf8.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/generation_options.h"
#include "cli/generation_report.h"
#include "cli/input_text.h"
#include "cli/interrupt.h"
#include "cli/loading.h"
#include "cli/log.h"
#include "cli/model_location.h"
#include "cli/options.h"
#include "cli/output.h"

namespace openelm::cli {
namespace {

struct CompleteOptions {
  LogOptions log;
  ModelOptions model;
  ComputeOptions compute;
  InputOptions input;
  SamplingFlags sampling;
  GenerationOptions generation;
  bool echo = false;
  bool json = false;
  bool no_stream = false;
  bool stats = false;
};

/// Ids in and ids out: then there is nothing to tokenize, and "text" is null.
bool works_without_tokenizer(const CompleteOptions& options) {
  return options.input.ids && options.json && options.generation.stop.empty() &&
         !options.model.tokenizer;
}

std::string json_text(const CompleteOptions& options, const Prompt& prompt,
                      const Tokenizer* tokenizer, const GenerationReport& report,
                      const GenerationResult& result) {
  nlohmann::ordered_json object;
  object["prompt"] = nullptr;
  if (prompt.text) object["prompt"] = *prompt.text;
  object["text"] = nullptr;
  if (tokenizer != nullptr) {
    const std::string echoed = options.echo ? prompt.text.value_or("") : "";
    object["text"] = replace_invalid_utf8(echoed + result.text);
  }
  object["tokens"] = result.tokens;
  object["finish_reason"] = to_string(result.reason);
  object["stop"] = nullptr;
  if (result.stop) object["stop"] = *result.stop;
  object["seed"] = report.seed;
  object["usage"] = usage_json(report, result);
  object["timings"] = timings_json(report, result);
  if (options.generation.logprobs >= 0) {
    object["logprobs"] = logprobs_json(result.logprobs, tokenizer);
  }
  return object.dump();
}

void note_cut_character(const GenerationResult& result) {
  if (complete_utf8_prefix(result.text) != result.text.size()) {
    spdlog::warn("the text ends inside a character: its first bytes are written as they are");
  }
}

int run_complete(const CompleteOptions& options) {
  set_up_log(options.log);
  require_input(options.input, "complete");
  const auto folder = locate_model(options.model, kBundledModel);
  std::optional<std::string> text;
  if (!options.input.ids) text = read_text(options.input);
  std::shared_ptr<const Tokenizer> tokenizer;
  if (!works_without_tokenizer(options)) tokenizer = load_tokenizer(options.model, folder);

  const LoadedEngine loaded = load_engine(folder, options.compute, options.log.quiet);
  const ModelConfig& config = loaded.engine->config();
  if (tokenizer) {
    require_same_vocabulary(*tokenizer, tokenizer_path(options.model, folder), config);
  }
  GenerationOptions generation = options.generation;
  generation.sampling = options.sampling.resolve();
  generation.sampling.validate(config.vocab_size);
  const Prompt prompt = make_prompt(options.input, std::move(text), tokenizer.get(), config);
  Session session = open_session(loaded.engine, options.compute);
  require_fits(prompt, session.context());
  warn_about(prompt);

  InterruptScope interrupt(1);
  session.set_cancel(&interrupt.requested());
  Output output;
  const bool streams = !options.json && !options.no_stream;
  if (options.echo && !options.json) {
    output.write(prompt.text ? *prompt.text : tokenizer->decode(prompt.ids));
  }
  TextCallback on_text;
  if (streams) {
    on_text = [&output](std::string_view part) {
      output.write(part);
      return true;
    };
  }
  const GenerationResult result =
      generate(session, tokenizer.get(), prompt.ids, generation, on_text, prompt.at_start);

  const GenerationReport report{prompt.ids.size(),        prompt.ids.size(),
                                loaded.seconds,           generation.sampling.seed,
                                loaded.engine->threads(), loaded.engine->isa()};
  if (options.json) {
    output.line(json_text(options, prompt, tokenizer.get(), report, result));
  } else {
    if (!streams) output.write(result.text);
    output.end_line_on_terminal();
    note_cut_character(result);
  }
  if (options.stats) print_stats(report, result);
  return result.reason == FinishReason::interrupted ? kExitInterrupted : kExitDone;
}

}  // namespace

Command add_complete(CLI::App& program) {
  auto options = std::make_shared<CompleteOptions>();
  CLI::App* app = program.add_subcommand("complete", "Continue a text");
  add_prompt_options(*app, options->input);
  add_generation_options(*app, options->generation,
                         "With --json: log-probabilities of each token and of the N best");
  app->add_flag("--echo", options->echo, "Print the prompt too");
  CLI::Option* json = app->add_flag("--json", options->json, "Print one JSON object at the end");
  app->add_flag("--no-stream", options->no_stream, "Print the text when it is whole");
  app->add_flag("--stats", options->stats, "Print timings and the seed to stderr");
  app->get_option("--logprobs")->needs(json);
  add_model_and_compute_options(*app, options->model, options->compute);
  add_sampling_options(*app, options->sampling);
  add_log_options(*app, options->log);
  app->footer(
      "The text is taken as it is, with its last line end; CRLF is kept.\n\n"
      "Example:\n  openelm complete -p \"Once upon a time\" -n 100 --temperature 0.7");
  return {app, [options] { return run_complete(*options); }};
}

}  // namespace openelm::cli

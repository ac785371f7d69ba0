#include <iostream>
#include <limits>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/answer_display.h"
#include "cli/chat.h"
#include "cli/chat_commands.h"
#include "cli/chat_options.h"
#include "cli/chat_template.h"
#include "cli/command.h"
#include "cli/dialogue.h"
#include "cli/history_file.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/loading.h"
#include "cli/log.h"
#include "cli/model_location.h"
#include "cli/terminal_modes.h"

namespace openelm::cli {
namespace {

// Presses that a busy answer has not noticed yet, before one of them ends the program.
constexpr int kPatience = 2;

ChatTemplate choose_template(const ChatOptions& options, const std::filesystem::path& folder) {
  if (options.chat_template) return find_chat_template(*options.chat_template);
  ChatTemplate detected = detect_chat_template(folder);
  spdlog::debug("chat template: {}", detected.name);
  return detected;
}

/// Keeps the terminal, if there is one, and reads from it as well as it can.
struct Input {
  std::unique_ptr<TerminalModes> modes;
  std::unique_ptr<EntryReader> reader;
  bool on_terminal = ::isatty(STDIN_FILENO) == 1;
};

Input open_input(bool no_history) {
  Input input;
  if (!input.on_terminal) {
    input.reader = std::make_unique<PipeReader>();
    return input;
  }
  input.modes = std::make_unique<TerminalModes>();
  HistoryFile history(no_history ? std::nullopt : history_path());
  input.reader = LineEditor::open(*input.modes, std::move(history), complete_chat_command);
  if (!input.reader) input.reader = std::make_unique<PlainTerminalReader>();
  return input;
}

int run_chat(const ChatOptions& options) {
  set_up_log(options.log);
  require_utf8(options.system, "--system");
  const auto folder = locate_model(options.model, kBundledChatModel);
  const ChatTemplate chat_template = choose_template(options, folder);
  const auto tokenizer = load_tokenizer(options.model, folder);
  const LoadedEngine loaded = load_engine(folder, options.compute, options.log.quiet);
  const ModelConfig& config = loaded.engine->config();
  require_same_vocabulary(*tokenizer, tokenizer_path(options.model, folder), config);

  GenerationOptions generation;
  generation.max_tokens = options.max_tokens.value_or(chat_template.max_tokens);
  generation.stop = chat_template.stop;
  generation.ignore_eos = options.ignore_eos;
  generation.sampling = options.sampling.resolve();
  generation.sampling.validate(config.vocab_size);

  Session session = open_session(loaded.engine, options.compute);
  InterruptScope interrupt(kPatience);
  session.set_cancel(&interrupt.requested());
  Chat chat(session, *tokenizer, chat_template, options.system);
  if (options.show_prompt) {
    chat.set_prompt_callback(
        [&](auto ids) { std::cerr << describe_prompt(*tokenizer, ids) << std::flush; });
  }
  const Input input = open_input(options.no_history);
  if (input.on_terminal) {
    spdlog::info("{}, template {}: /help lists the commands, Ctrl-D leaves", config.name,
                 chat_template.name);
  }
  const AnswerDisplay display({.json = options.json,
                               .streams = !options.no_stream,
                               .stats = options.stats,
                               .trims = chat_template.trims_answer});
  const GenerationReport report{.load_seconds = loaded.seconds,
                                .seed = generation.sampling.seed,
                                .threads = loaded.engine->threads(),
                                .isa = loaded.engine->isa()};
  Dialogue dialogue(chat, *input.reader, display,
                    {.model = folder,
                     .model_name = config.name,
                     .tokenizer = tokenizer.get(),
                     .vocab_size = config.vocab_size,
                     .generation = std::move(generation),
                     .report = report,
                     .on_terminal = input.on_terminal});
  return dialogue.run(interrupt);
}

}  // namespace

Command add_chat(CLI::App& program) {
  auto options = std::make_shared<ChatOptions>();
  ChatOptions* o = options.get();
  CLI::App* app = program.add_subcommand("chat", "Talk with a model, turn by turn");
  add_value(*app, "--system", "TEXT",
            "Text that stands before the conversation and is never dropped",
            [o](auto, auto text) { o->system = text; });
  add_value(*app, "--template", "NAME|FILE",
            chat_template_names() +
                ", or a file with {{system}}, {{user}} and {{assistant}}; default: what the "
                "model's folder asks for, else none (plain continuation)",
            [o](auto, auto text) { o->chat_template = text; });
  add_value(*app, "-n,--max-tokens", "N",
            "Most tokens of an answer; -1: until it ends (default -1, with template none 128)",
            [o](auto flag, auto text) {
              o->max_tokens = static_cast<std::int32_t>(
                  parse_integer(flag, text, -1, std::numeric_limits<std::int32_t>::max()));
            });
  app->add_flag("--ignore-eos", o->ignore_eos, "Never choose EOS");
  app->add_flag("--no-stream", o->no_stream, "Print an answer when it is whole");
  app->add_flag("--no-history", o->no_history, "Keep no history of what is typed");
  app->add_flag("--show-prompt", o->show_prompt,
                "Print to stderr what the model sees before each answer, text and ids");
  app->add_flag("--json", o->json, "Print one JSON object a turn");
  app->add_flag("--stats", o->stats, "Print timings and the seed to stderr after each answer");
  add_model_and_compute_options(*app, o->model, o->compute);
  add_sampling_options(*app, o->sampling);
  add_log_options(*app, o->log);
  app->footer(
      "On a terminal: /help lists the commands; Ctrl-C stops an answer, Ctrl-D leaves. With other "
      "input every line is a turn, and the answers are printed one after the other.\n\n"
      "Example:\n  echo \"Tell me a story about a fox.\" | openelm chat --temperature 0.7");
  return {app, [options] { return run_chat(*options); }};
}

}  // namespace openelm::cli

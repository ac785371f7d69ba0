#include <iostream>
#include <limits>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/answer_printer.h"
#include "cli/chat.h"
#include "cli/chat_template.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/generation_report.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/loading.h"
#include "cli/log.h"
#include "cli/model_location.h"
#include "cli/options.h"
#include "cli/output.h"

namespace openelm::cli {
namespace {

// Presses that a busy answer has not noticed yet, before one of them ends the program.
constexpr int kPatience = 2;

struct ChatOptions {
  LogOptions log;
  ModelOptions model;
  ComputeOptions compute;
  SamplingFlags sampling;
  std::string system;
  std::optional<std::string> chat_template;
  std::optional<std::int32_t> max_tokens;
  bool ignore_eos = false;
  bool no_stream = false;
  bool json = false;
  bool stats = false;
};

/// The dialogue around a Chat: reads turns, prints answers, obeys commands.
class Dialogue {
 public:
  Dialogue(Chat& chat, const ChatOptions& options, const ChatTemplate& chat_template,
           GenerationOptions generation, GenerationReport report)
      : chat_(chat),
        options_(options),
        template_(chat_template),
        generation_(std::move(generation)),
        report_(report),
        on_terminal_(::isatty(STDIN_FILENO) == 1) {}

  /// Until the input ends or the user leaves; returns the exit code.
  int run(InterruptScope& interrupt);

 private:
  enum class Next { go_on, leave };

  void prompt_for_turn() const;
  Next obey(const std::string& command);
  FinishReason answer(const std::string& message);
  void print_json(const std::string& message, const Answer& answer);

  Chat& chat_;
  const ChatOptions& options_;
  const ChatTemplate& template_;
  GenerationOptions generation_;
  GenerationReport report_;
  bool on_terminal_;
  LineReader reader_;
  Output output_;
  std::size_t turns_ = 0;
};

void Dialogue::prompt_for_turn() const {
  if (on_terminal_ && ::isatty(STDERR_FILENO) == 1) std::cerr << "> " << std::flush;
}

Dialogue::Next Dialogue::obey(const std::string& line) {
  const std::string command(trim(line));
  if (command == "/quit") return Next::leave;
  if (command == "/help") {
    std::cerr << "/reset  forget the conversation\n"
                 "/quit   leave (or Ctrl-D)\n"
                 "/help   show this\n"
                 "Ctrl-C stops an answer.\n";
  } else if (command == "/reset") {
    chat_.reset();
    spdlog::info("the conversation is forgotten");
  } else {
    spdlog::error(
        "no command {}: /help lists them; put a space in front to send a message that begins with "
        "a slash",
        command.substr(0, command.find(' ')));
  }
  return Next::go_on;
}

void Dialogue::print_json(const std::string& message, const Answer& answer) {
  const GenerationResult& result = answer.result;
  const std::string_view text =
      template_.trims_answer ? trim(result.text) : std::string_view(result.text);
  nlohmann::ordered_json object{{"turn", turns_},
                                {"prompt", message},
                                {"text", replace_invalid_utf8(text)},
                                {"tokens", result.tokens},
                                {"finish_reason", to_string(result.reason)},
                                {"stop", nullptr},
                                {"seed", report_.seed},
                                {"usage", usage_json(report_, result)},
                                {"timings", timings_json(report_, result)}};
  if (result.stop) object["stop"] = *result.stop;
  output_.line(object.dump());
}

FinishReason Dialogue::answer(const std::string& message) {
  AnswerPrinter printer(output_, template_.trims_answer);
  const bool streams = !options_.json && !options_.no_stream;
  const TextCallback on_text = [&printer, streams](std::string_view part) {
    if (streams) printer.write(part);
    return true;
  };
  const Answer answer = chat_.answer(message, generation_, on_text);
  ++turns_;
  report_.prompt_tokens = answer.prompt_tokens;
  report_.evaluated_tokens = answer.evaluated_tokens;
  if (options_.json) {
    print_json(message, answer);
  } else {
    if (!streams) printer.write(answer.result.text);
    printer.finish();
  }
  if (options_.stats) print_stats(report_, answer.result);
  return answer.result.reason;
}

int Dialogue::run(InterruptScope& interrupt) {
  bool told_how_to_leave = false;
  std::string line;
  while (true) {
    prompt_for_turn();
    const LineReader::Result read = reader_.read(line, interrupt.requested());
    if (read == LineReader::Result::end) {
      if (on_terminal_) std::cerr << '\n';
      return kExitDone;
    }
    if (read == LineReader::Result::interrupted) {
      interrupt.reset();
      if (on_terminal_) std::cerr << '\n';
      if (!on_terminal_ || told_how_to_leave) return kExitInterrupted;
      std::cerr << "(Ctrl-C again, Ctrl-D or /quit to leave)\n";
      told_how_to_leave = true;
      continue;
    }
    told_how_to_leave = false;
    if (trim(line).empty()) continue;
    if (on_terminal_ && line.starts_with('/')) {
      if (obey(line) == Next::leave) return kExitDone;
      continue;
    }
    try {
      const FinishReason reason = answer(line);
      if (reason == FinishReason::interrupted && !on_terminal_) return kExitInterrupted;
    } catch (const MessageRefused& refused) {
      if (!on_terminal_) {
        throw Error("line " + std::to_string(reader_.count()) + ": " + refused.what());
      }
      spdlog::error("{}", refused.what());
    }
    interrupt.reset();
  }
}

const ChatTemplate& choose_template(const ChatOptions& options,
                                    const std::filesystem::path& folder) {
  if (options.chat_template) return find_chat_template(*options.chat_template);
  const ChatTemplate& detected = detect_chat_template(folder);
  spdlog::debug("chat template: {}", detected.name);
  return detected;
}

int run_chat(const ChatOptions& options) {
  set_up_log(options.log);
  require_utf8(options.system, "--system");
  const auto folder = locate_model(options.model, kBundledChatModel);
  const ChatTemplate& chat_template = choose_template(options, folder);
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
  const GenerationReport report{.load_seconds = loaded.seconds,
                                .seed = generation.sampling.seed,
                                .threads = loaded.engine->threads(),
                                .isa = loaded.engine->isa()};
  if (::isatty(STDIN_FILENO) == 1) {
    spdlog::info("{}, template {}: /help lists the commands, Ctrl-D leaves", config.name,
                 chat_template.name);
  }
  return Dialogue(chat, options, chat_template, std::move(generation), report).run(interrupt);
}

}  // namespace

Command add_chat(CLI::App& program) {
  auto options = std::make_shared<ChatOptions>();
  ChatOptions* o = options.get();
  CLI::App* app = program.add_subcommand("chat", "Talk with a model, turn by turn");
  add_value(*app, "--system", "TEXT",
            "Text that stands before the conversation and is never dropped",
            [o](auto, auto text) { o->system = text; });
  add_value(*app, "--template", "NAME",
            "none (plain continuation) or user-assistant; default: what the model's "
            "tokenizer_config.json asks for, else none",
            [o](auto, auto text) { o->chat_template = text; });
  add_value(*app, "-n,--max-tokens", "N",
            "Most tokens of an answer; -1: until it ends (default -1, with template none 128)",
            [o](auto flag, auto text) {
              o->max_tokens = static_cast<std::int32_t>(
                  parse_integer(flag, text, -1, std::numeric_limits<std::int32_t>::max()));
            });
  app->add_flag("--ignore-eos", o->ignore_eos, "Never choose EOS");
  app->add_flag("--no-stream", o->no_stream, "Print an answer when it is whole");
  app->add_flag("--json", o->json, "Print one JSON object a turn");
  app->add_flag("--stats", o->stats, "Print timings and the seed to stderr after each answer");
  add_model_option(*app, o->model);
  add_tokenizer_option(*app, o->model);
  add_threads_option(*app, o->compute.threads);
  add_kernel_options(*app, o->compute);
  add_context_option(*app, o->compute);
  add_sampling_options(*app, o->sampling);
  add_log_options(*app, o->log);
  app->footer(
      "On a terminal: /help lists the commands; Ctrl-C stops an answer, Ctrl-D leaves. With other "
      "input every line is a turn, and the answers are printed one after the other.\n\n"
      "Example:\n  echo \"Tell me a story about a fox.\" | openelm chat --temperature 0.7");
  return {app, [options] { return run_chat(*options); }};
}

}  // namespace openelm::cli

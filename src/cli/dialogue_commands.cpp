#include <algorithm>
#include <iostream>

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <openelm/error.h>

#include "base/atomic_file.h"
#include "base/utf8.h"
#include "cli/dialogue.h"
#include "cli/format.h"
#include "cli/generation_settings.h"
#include "cli/saved_chat.h"
#include "runtime/model_fingerprint.h"

namespace openelm::cli {
namespace {

std::string count_of(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

Dialogue::Next Dialogue::obey(const std::string& line) {
  try {
    const ChatCommandCall call = parse_chat_command(line);
    switch (call.command) {
      case ChatCommand::quit:
        return Next::leave;
      case ChatCommand::help:
        std::cerr << chat_help();
        break;
      case ChatCommand::reset:
        chat_.reset();
        spdlog::info("the conversation is forgotten");
        break;
      case ChatCommand::undo:
        spdlog::info("{}", chat_.undo() ? "the last message is taken back" : "nothing to undo");
        break;
      case ChatCommand::retry:
        retry();
        break;
      case ChatCommand::edit:
        edit(call.argument);
        break;
      case ChatCommand::system:
        change_system(call.argument);
        break;
      case ChatCommand::save:
        save(call.argument);
        break;
      case ChatCommand::load:
        load(call.argument);
        break;
      case ChatCommand::set:
        change_settings(call.argument);
        break;
      case ChatCommand::stats:
        show_stats();
        break;
      case ChatCommand::tokens:
        show_tokens(call.argument);
        break;
    }
  } catch (const Error& error) {
    spdlog::error("{}", error.what());
  }
  return Next::go_on;
}

void Dialogue::retry() {
  const std::vector<Turn>& turns = chat_.conversation().turns();
  if (turns.empty()) {
    spdlog::info("nothing to retry");
    return;
  }
  // A draw depends on the seed and the position: the same seed would give the same answer.
  ++setup_.generation.sampling.seed;
  if (setup_.generation.sampling.temperature == 0.0F) {
    spdlog::info("with temperature 0 the answer is always the same: /set temperature 0.8");
  }
  answer_instead(std::string(turns.back().user));
}

void Dialogue::edit(const std::string& text) {
  const std::vector<Turn>& turns = chat_.conversation().turns();
  if (turns.empty()) {
    spdlog::info("nothing to edit");
  } else if (!text.empty()) {
    answer_instead(text);
  } else if (reader_.can_propose()) {
    proposal_ = turns.back().user;
    editing_ = true;
  } else {
    spdlog::error("this terminal cannot show it for a change: /edit TEXT");
  }
}

void Dialogue::change_system(const std::string& text) {
  if (text.empty()) {
    const std::string& system = chat_.conversation().system();
    std::cerr << (system.empty() ? "(no system text)" : system) << '\n';
    return;
  }
  chat_.set_system(text == "-" ? "" : text);
  spdlog::info("the system text is {}", text == "-" ? "removed" : "changed");
}

const std::string& Dialogue::fingerprint() {
  if (fingerprint_.empty()) fingerprint_ = model_fingerprint(setup_.model);
  return fingerprint_;
}

void Dialogue::save(const std::string& file) {
  const Conversation& conversation = chat_.conversation();
  const SavedChat saved{.model = setup_.model_name,
                        .fingerprint = fingerprint(),
                        .chat_template = conversation.chat_template().name,
                        .system = conversation.system(),
                        .settings = settings_of(setup_.generation),
                        .turns = conversation.turns(),
                        .ids = conversation.ids()};
  write_file_atomically(file, to_json_text(saved));
  spdlog::info("{} saved in {}", count_of(saved.turns.size(), "turn"), file);
}

/// The turns with ids of this model's vocabulary; those of the same model are taken as they are.
std::vector<Turn> Dialogue::turns_for_this_model(const SavedChat& saved, const std::string& file) {
  std::vector<Turn> turns = saved.turns;
  const Tokenizer& tokenizer = *setup_.tokenizer;
  const bool same_model = saved.fingerprint == fingerprint();
  if (!same_model) {
    spdlog::warn("{}: saved with another model ({}); its texts become tokens of this one", file,
                 saved.model);
  }
  for (std::size_t i = 0; i < turns.size(); ++i) {
    Turn& turn = turns[i];
    if (!same_model) {
      turn.answer_ids = tokenizer.encode_continuation(turn.answer);
      continue;
    }
    std::string bytes;
    for (const TokenId id : turn.answer_ids) tokenizer.append_bytes(id, bytes);
    if (replace_invalid_utf8(bytes) != turn.answer) {
      throw Error(
          fmt::format("{}: turn {}: \"answer\" is not what \"answer_ids\" spell", file, i + 1));
    }
    turn.answer = bytes;
  }
  return turns;
}

void Dialogue::load(const std::string& file) {
  const SavedChat saved = read_saved_chat(file);
  const std::string& name = chat_.conversation().chat_template().name;
  if (saved.chat_template != name) {
    throw Error(
        fmt::format("{}: saved with template {}, this chat has {}: start with --template {}", file,
                    saved.chat_template, name, saved.chat_template));
  }
  GenerationOptions generation = setup_.generation;
  for (const Setting& setting : saved.settings) {
    change_setting(generation, setting.name, setting.value, setup_.vocab_size);
  }
  std::vector<Turn> turns = turns_for_this_model(saved, file);
  Conversation before = chat_.conversation();
  chat_.restore(saved.system, std::move(turns));
  if (saved.fingerprint == fingerprint() && chat_.conversation().ids() != saved.ids) {
    chat_.restore(before.system(), before.turns());
    throw Error(file + ": \"ids\" are not those of its turns: the file was changed");
  }
  setup_.generation = std::move(generation);
  spdlog::info("{} loaded from {}", count_of(saved.turns.size(), "turn"), file);
}

void Dialogue::change_settings(const std::string& text) {
  if (text.empty()) {
    for (const Setting& setting : settings_of(setup_.generation)) {
      std::cerr << fmt::format("{:<20}{}\n", setting.name, setting.value);
    }
    return;
  }
  const std::size_t blank = text.find_first_of(" \t");
  if (blank == std::string::npos) throw UsageError("/set needs NAME VALUE, or nothing, after it");
  change_setting(setup_.generation, text.substr(0, blank), trim(text.substr(blank)),
                 setup_.vocab_size);
}

void Dialogue::show_stats() {
  constexpr double milliseconds = 1000;
  const std::size_t used = chat_.conversation().ids().size();
  std::cerr << fmt::format("conversation: {}, {} of {} tokens of context ({:.0f} %)\n",
                           count_of(chat_.conversation().turns().size(), "turn"), used,
                           chat_.context(), 100.0 * static_cast<double>(used) / chat_.context());
  if (answers_ == 0) return;
  const GenerationReport& report = setup_.report;
  std::cerr << fmt::format(
      "last answer:  {} of {} prompt tokens evaluated, first token after {:.1f} ms "
      "({:.1f} tokens/s)\n"
      "              {} tokens generated, {:.1f} tokens/s, finish reason {}, seed {}\n",
      report.evaluated_tokens, report.prompt_tokens, last_result_.prompt_seconds * milliseconds,
      per_second(static_cast<double>(report.evaluated_tokens), last_result_.prompt_seconds),
      last_result_.tokens.size(),
      per_second(static_cast<double>(last_result_.tokens.size()), last_result_.generate_seconds),
      to_string(last_result_.reason), report.seed);
}

void Dialogue::show_tokens(const std::string& text) {
  const std::vector<TokenId> ids =
      text.empty() ? chat_.conversation().ids() : setup_.tokenizer->encode(text);
  std::cerr << count_of(ids.size(), "token") << ": " << describe_tokens(*setup_.tokenizer, ids)
            << '\n';
}

}  // namespace openelm::cli

#include "cli/dialogue.h"

#include <iostream>
#include <utility>

#include <spdlog/spdlog.h>

#include <openelm/error.h>

#include "cli/exit_code.h"

namespace openelm::cli {

Dialogue::Dialogue(Chat& chat, EntryReader& reader, AnswerDisplay display, DialogueSetup setup)
    : chat_(chat), reader_(reader), display_(std::move(display)), setup_(std::move(setup)) {}

FinishReason Dialogue::show_answer(const std::string& message, const Generate& generate) {
  const Answer answer = generate(display_.begin());
  if (answer.taken_back) {
    if (setup_.on_terminal) {
      spdlog::info("stopped before the answer began; the message is taken back");
    }
    return answer.result.reason;
  }
  ++answers_;
  setup_.report.seed = setup_.generation.sampling.seed;
  setup_.report.prompt_tokens = answer.prompt_tokens;
  setup_.report.evaluated_tokens = answer.evaluated_tokens;
  display_.end(answers_, message, answer, setup_.report);
  last_result_ = answer.result;
  return answer.result.reason;
}

FinishReason Dialogue::answer(const std::string& message) {
  return show_answer(message, [&](const TextCallback& on_text) {
    return chat_.answer(message, setup_.generation, on_text);
  });
}

FinishReason Dialogue::answer_instead(const std::string& message) {
  return show_answer(message, [&](const TextCallback& on_text) {
    return chat_.replace_newest(message, setup_.generation, on_text);
  });
}

int Dialogue::run(InterruptScope& interrupt) {
  bool told_how_to_leave = false;
  std::string entry;
  while (true) {
    const std::string proposal = std::exchange(proposal_, {});
    const EntryReader::Result read = reader_.read(entry, proposal, interrupt.requested());
    const bool replaces = std::exchange(editing_, false);
    if (read == EntryReader::Result::end) return kExitDone;
    if (read == EntryReader::Result::interrupted) {
      interrupt.reset();
      if (!setup_.on_terminal || told_how_to_leave) return kExitInterrupted;
      std::cerr << "(Ctrl-C again, Ctrl-D or /quit to leave)\n";
      told_how_to_leave = true;
      continue;
    }
    told_how_to_leave = false;
    if (trim(entry).empty()) continue;
    try {
      if (setup_.on_terminal && entry.starts_with('/')) {
        if (obey(entry) == Next::leave) return kExitDone;
      } else {
        const FinishReason reason = replaces ? answer_instead(entry) : answer(entry);
        if (reason == FinishReason::interrupted && !setup_.on_terminal) return kExitInterrupted;
      }
    } catch (const MessageRefused& refused) {
      if (!setup_.on_terminal) {
        throw Error("line " + std::to_string(reader_.line_count()) + ": " + refused.what());
      }
      spdlog::error("{}", refused.what());
    }
    interrupt.reset();
  }
}

}  // namespace openelm::cli

#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "cli/answer_display.h"
#include "cli/chat.h"
#include "cli/chat_commands.h"
#include "cli/entry_reader.h"
#include "cli/interrupt.h"

namespace openelm::cli {

struct SavedChat;

/// What a dialogue is about.
struct DialogueSetup {
  std::filesystem::path model;  ///< the folder
  std::string model_name;
  const Tokenizer* tokenizer = nullptr;  ///< not owned
  std::int32_t vocab_size = 0;
  GenerationOptions generation;
  GenerationReport report;
  bool on_terminal = false;  ///< commands are obeyed, and a failure ends nothing
};

/// The dialogue around a Chat: reads entries, prints answers, obeys commands.
class Dialogue {
 public:
  /// `chat` and `reader` are not owned.
  Dialogue(Chat& chat, EntryReader& reader, AnswerDisplay display, DialogueSetup setup);

  /// Until the input ends or the user leaves; returns the exit code.
  int run(InterruptScope& interrupt);

 private:
  enum class Next { go_on, leave };
  using Generate = std::function<Answer(const TextCallback& on_text)>;

  Next obey(const std::string& line);
  void retry();
  void edit(const std::string& text);
  void change_system(const std::string& text);
  void save(const std::string& file);
  void load(const std::string& file);
  void change_settings(const std::string& text);
  void show_stats();
  void show_tokens(const std::string& text);

  FinishReason answer(const std::string& message);
  FinishReason answer_instead(const std::string& message);
  FinishReason show_answer(const std::string& message, const Generate& generate);
  const std::string& fingerprint();
  std::vector<Turn> turns_for_this_model(const SavedChat& saved, const std::string& file);

  Chat& chat_;
  EntryReader& reader_;
  AnswerDisplay display_;
  DialogueSetup setup_;
  std::string fingerprint_;  // empty until asked for
  std::string proposal_;     // for the next entry
  bool editing_ = false;     // the next entry takes the last message's place
  std::size_t answers_ = 0;
  GenerationResult last_result_;
};

}  // namespace openelm::cli

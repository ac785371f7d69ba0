#include <gtest/gtest.h>

#include <openelm/engine.h>

#include "checkpoint/model_folder.h"
#include "cli/chat.h"
#include "cli/saved_chat.h"

namespace openelm::cli {
namespace {

class ChatLogits : public testing::TestWithParam<int> {
 protected:
  static constexpr std::int32_t kContext = 160;

  /// The logits after all of the conversation equal those of a session that never saw anything
  /// else.
  void expect_fresh(Session& session, const Chat& chat) {
    const std::vector<TokenId> ids = chat.conversation().ids();
    const auto held = session.tokens();
    std::size_t kept = 0;
    while (kept < held.size() && kept + 1 < ids.size() && held[kept] == ids[kept]) ++kept;
    session.rewind(static_cast<std::int32_t>(kept));
    const auto logits = session.evaluate(std::span(ids).subspan(kept));
    Session fresh(engine, {.context = kContext, .kv_type = KvType::f16});
    const auto expected = fresh.evaluate(ids);
    EXPECT_TRUE(std::equal(logits.begin(), logits.end(), expected.begin(), expected.end()));
  }

  const std::string folder = std::string(OPENELM_MODELS) + "/openelm-tiny-instruct";
  const std::shared_ptr<const Engine> engine = Engine::load(folder);
  const std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::load(folder + "/tokenizer.model");
};

TEST_P(ChatLogits, EqualThoseOfAFreshRunAfterEveryStep) {
  const int script = GetParam();
  const std::vector<std::string> templates{"user-assistant", "zephyr", "alpaca", "llama2",
                                           "chatml"};
  Session session(engine, {.context = kContext, .kv_type = KvType::f16});
  Chat chat(session, *tokenizer,
            find_chat_template(templates[static_cast<std::size_t>(script) % templates.size()]),
            script % 2 == 0 ? "" : "You tell tales.");
  GenerationOptions options;
  options.max_tokens = 6 + script;
  options.ignore_eos = true;
  options.sampling.seed = static_cast<std::uint64_t>(script);

  std::size_t most = 0;
  for (int i = 0; i < 8; ++i) {
    chat.answer("Question number " + std::to_string(i) + ".", options, {});
    expect_fresh(session, chat);
    most = std::max(most, chat.conversation().turns().size());
    ++options.sampling.seed;
    chat.replace_newest(chat.conversation().turns().back().user, options, {});
    expect_fresh(session, chat);
    if (i % 3 == script % 3) {
      EXPECT_TRUE(chat.undo());
      if (!chat.conversation().turns().empty()) expect_fresh(session, chat);
    }
  }
  // Turns were dropped on the way.
  EXPECT_LT(most, 6U);

  const test::TempFolder files;
  const SavedChat saved{.model = "tiny",
                        .fingerprint = "f",
                        .chat_template = chat.conversation().chat_template().name,
                        .system = chat.conversation().system(),
                        .settings = settings_of(options),
                        .turns = chat.conversation().turns(),
                        .ids = chat.conversation().ids()};
  test::write_file(files / "chat.json", to_json_text(saved));
  const SavedChat loaded = read_saved_chat(files / "chat.json");
  EXPECT_EQ(loaded.ids, saved.ids);
  chat.reset();
  chat.restore(loaded.system, loaded.turns);
  EXPECT_EQ(chat.conversation().ids(), saved.ids);
  expect_fresh(session, chat);
}

INSTANTIATE_TEST_SUITE_P(Scripts, ChatLogits, testing::Range(0, 10));

}  // namespace
}  // namespace openelm::cli

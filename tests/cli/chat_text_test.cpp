#include <gtest/gtest.h>

#include <openelm/error.h>

#include "cli/chat_template.h"
#include "cli/entry.h"
#include "cli/wide_text.h"
#include "cli/word_wrap.h"

namespace openelm::cli {
namespace {

TEST(Entry, GoesOnAfterABackslashAndWithinABlock) {
  EXPECT_FALSE(is_unfinished("a"));
  EXPECT_TRUE(is_unfinished("a\\"));
  EXPECT_TRUE(is_unfinished("\"\"\""));
  EXPECT_TRUE(is_unfinished("\"\"\"a\\"));
  EXPECT_FALSE(is_unfinished("\"\"\"a\"\"\""));
  EXPECT_EQ(entry_text("\"\"\"\n  a\n\n\"\"\""), "  a\n");
  EXPECT_EQ(entry_text("  a"), "  a");
}

TEST(WordWrap, MovesAWordThatDoesNotFit) {
  ASSERT_TRUE(use_utf8_characters());
  WordWrap wrap;
  EXPECT_EQ(wrap.push("one two", 8), "one two");
  EXPECT_EQ(wrap.push("s", 8), "\b\b\b   \ntwos");
  EXPECT_EQ(wrap.push("\x1b", 8), "\u241b");
  WordWrap wide;
  EXPECT_EQ(wide.push("\u4f60\u597d\u4f60", 6), "\u4f60\u597d\n\u4f60");
}

TEST(ChatTemplate, StopsWhereTheUsersPartBegins) {
  EXPECT_TRUE(find_chat_template("none").stop.empty());
  EXPECT_EQ(find_chat_template("user-assistant").stop, std::vector<std::string>{"\nUser:"});
  EXPECT_EQ(find_chat_template("zephyr").stop, std::vector<std::string>{"\n<|user|>"});
  EXPECT_EQ(find_chat_template("alpaca").stop, std::vector<std::string>{"\n\n### Instruction:"});
  EXPECT_EQ(find_chat_template("llama2").stop, std::vector<std::string>{"[INST]"});
  EXPECT_EQ(find_chat_template("chatml").stop, std::vector<std::string>{"<|im_end|>"});
}

TEST(ChatTemplate, ReadsOnesOwn) {
  const ChatTemplate own =
      parse_chat_template("own", "S: {{system}}\nQ: {{user}}\nA:{{assistant}}{{eos}}\n");
  EXPECT_EQ(own.before_system, (TemplateText{{.text = "S: "}}));
  EXPECT_EQ(own.after_answer, (TemplateText{{.kind = TemplatePiece::Kind::eos}, {.text = "\n"}}));
  EXPECT_EQ(own.stop, std::vector<std::string>{"\nQ:"});
  for (const char* bad :
       {"", "{{user}}", "{{assistant}}{{user}}", "{{user}}{{user}}{{assistant}}"}) {
    EXPECT_THROW(parse_chat_template("bad", bad), Error) << bad;
  }
}

}  // namespace
}  // namespace openelm::cli

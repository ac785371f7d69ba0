#include "text/stop_matcher.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/error.h>

namespace openelm {
namespace {

struct Outcome {
  std::string text;
  std::optional<std::string> stop;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << '"' << outcome.text << "\", stop " << outcome.stop.value_or("(none)");
}

/// The rule by itself: the stop string with the earliest end, of these the longest.
Outcome search(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::optional<std::string> longest;
    for (const std::string& stop : stops) {
      if (!text.substr(0, end).ends_with(stop)) continue;
      if (!longest || stop.size() > longest->size()) longest = stop;
    }
    if (longest) return {text.substr(0, end - longest->size()), longest};
  }
  return {text, std::nullopt};
}

Outcome feed(StopMatcher matcher, const std::vector<std::string>& pieces) {
  Outcome outcome;
  for (const std::string& piece : pieces) outcome.text += matcher.push(piece);
  outcome.text += matcher.finish();
  outcome.stop = matcher.fired();
  return outcome;
}

TEST(StopMatcher, TextPassesAtOnceWithoutStopStrings) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.push("Once "), "Once ");
  EXPECT_EQ(matcher.push(""), "");
  EXPECT_EQ(matcher.push("upon"), "upon");
  EXPECT_EQ(matcher.finish(), "");
  EXPECT_EQ(matcher.fired(), std::nullopt);
}

TEST(StopMatcher, AStopStringThatSpansPiecesNeverShows) {
  StopMatcher matcher({"\nUser:"});
  EXPECT_EQ(matcher.push("Yes."), "Yes.");
  EXPECT_EQ(matcher.push("\n"), "");
  EXPECT_EQ(matcher.push("User"), "");
  EXPECT_EQ(matcher.push(": more"), "");
  EXPECT_EQ(matcher.fired(), "\nUser:");
  EXPECT_EQ(matcher.push("even more"), "") << "the text has ended";
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, OnlyATailThatCouldBeginAStopStringIsHeldBack) {
  StopMatcher matcher({"END", "\n\n"});
  EXPECT_EQ(matcher.push("abcE"), "abc");
  EXPECT_EQ(matcher.push("N"), "");
  EXPECT_EQ(matcher.push("TER"), "ENTER") << "let go as soon as it cannot become one";
  EXPECT_EQ(matcher.push("\n"), "");
  EXPECT_EQ(matcher.push(""), "");
  EXPECT_EQ(matcher.push("x\n"), "\nx");
  EXPECT_EQ(matcher.finish(), "\n") << "at the end the tail is ordinary text";
  EXPECT_EQ(matcher.finish(), "");
  EXPECT_EQ(matcher.fired(), std::nullopt);
}

TEST(StopMatcher, AFalseStartMayHideTheTrueOne) {
  EXPECT_EQ(feed(StopMatcher({"aab"}), {"a", "a", "a", "b", "c"}), (Outcome{"a", "aab"}));
  EXPECT_EQ(feed(StopMatcher({"abac"}), {"ab", "ab", "ac"}), (Outcome{"ab", "abac"}));
}

TEST(StopMatcher, ThePrefixOfAnotherStopStringFiresFirst) {
  EXPECT_EQ(feed(StopMatcher({"stop here", "stop"}), {"Now stop here"}), (Outcome{"Now ", "stop"}));
  EXPECT_EQ(feed(StopMatcher({"stop", "stop here"}), {"Now stop here"}), (Outcome{"Now ", "stop"}));
}

TEST(StopMatcher, TheOneCompletedFirstFiresAndOfSeveralTheLongest) {
  EXPECT_EQ(feed(StopMatcher({"abcde", "cd"}), {"abcde"}), (Outcome{"ab", "cd"}));
  EXPECT_EQ(feed(StopMatcher({"d", "bcd", "cd"}), {"abcd"}), (Outcome{"a", "bcd"}));
}

TEST(StopMatcher, TheTextIsCutAtWholeCharacters) {
  StopMatcher matcher({"\u00E9t\u00E9"});
  EXPECT_EQ(matcher.push("l'\u00E8"), "l'\u00E8") << "shares only its first byte with the stop";
  EXPECT_EQ(matcher.push("\u00E9t"), "");
  EXPECT_EQ(matcher.push("\u00E9"), "");
  EXPECT_EQ(matcher.fired(), "\u00E9t\u00E9");
}

TEST(StopMatcher, NulIsText) {
  const std::string stop("\0\0", 2);
  EXPECT_EQ(feed(StopMatcher({stop}), {std::string("a\0b", 3), stop}),
            (Outcome{std::string("a\0b", 3), stop}));
}

TEST(StopMatcher, AnySplitOfAnyTextGivesTheSame) {
  std::mt19937 rng(5);
  const auto number = [&](std::size_t from, std::size_t to) {
    return std::uniform_int_distribution<std::size_t>(from, to)(rng);
  };
  const auto word = [&](std::size_t from, std::size_t to) {
    std::string text(number(from, to), 'a');
    for (char& c : text) c = "ab"[number(0, 1)];
    return text;
  };
  int fired = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops(number(1, 3));
    for (std::string& stop : stops) stop = word(1, 5);
    const std::string text = word(0, 12);
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size(); at += pieces.back().size()) {
      pieces.push_back(text.substr(at, number(1, 4)));
    }
    const Outcome expected = search(text, stops);
    ASSERT_EQ(feed(StopMatcher(stops), pieces), expected) << text;
    fired += expected.stop ? 1 : 0;
  }
  EXPECT_GT(fired, 1000);
  EXPECT_LT(fired, 4900);
}

TEST(StopMatcher, EmptyAndUndecodableStopStringsAreRefused) {
  EXPECT_THROW(StopMatcher({"a", ""}), UsageError);
  EXPECT_THROW(StopMatcher({"\xC3"}), UsageError);
}

}  // namespace
}  // namespace openelm

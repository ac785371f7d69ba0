#include "checkpoint/json_text.h"

#include <string>

#include <gtest/gtest.h>

#include "checkpoint/model_folder.h"

namespace openelm::test {
namespace {

using nlohmann::json;

json parse(const std::string& text) { return parse_python_json(text, "config.json"); }

std::string message(const std::string& text) {
  return message_of([&] { parse(text); });
}

void expect_words(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "no '" << words << "' in: " << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_TRUE(text.starts_with("config.json: ")) << text;
}

TEST(JsonText, NonFiniteNumbersBecomeMarkers) {
  const json value = parse(R"({"a": [0.0, Infinity], "b": -Infinity, "c": NaN, "d": 5})");
  EXPECT_TRUE(is_nonfinite_marker(value["a"][1]));
  EXPECT_TRUE(is_nonfinite_marker(value["b"]));
  EXPECT_TRUE(is_nonfinite_marker(value["c"]));
  EXPECT_FALSE(is_nonfinite_marker(value["d"]));
}

TEST(JsonText, NonFiniteWordsInsideStringsStay) {
  const json value = parse(R"({"NaN": "Infinity and \"NaN\" \\", "b": "-Infinity"})");
  EXPECT_EQ(value["NaN"], "Infinity and \"NaN\" \\");
  EXPECT_EQ(value["b"], "-Infinity");
}

TEST(JsonText, OtherBareWordsAreErrors) {
  for (const char* text : {R"({"a": nan})", R"({"a": Inf})", R"({"a": +Infinity})",
                           R"({"a": --Infinity})", R"({"a": NaNa})", R"({"a": undefined})"}) {
    expect_words(message(text), "not valid JSON: line 1, column");
  }
}

TEST(JsonText, ErrorsGiveLineAndColumn) {
  expect_words(message("{\n \"a\": 1,\n}"), "line 3, column 1");
  expect_words(message("{\n \"a\": Infinity, \"b\": ]"), "line 2, column 22");
}

TEST(JsonText, ByteOrderMarkIsDropped) { EXPECT_EQ(parse("\xEF\xBB\xBF{\"a\":1}")["a"], 1); }

TEST(JsonText, RepeatedKeysAreErrorsAtEveryDepth) {
  expect_words(message(R"({"a": 1, "b": 2, "a": 1})"), "repeated key \"a\"");
  expect_words(message(R"({"a": {"b": [{"c": 1, "c": 2}]}})"), "repeated key \"c\"");
  expect_words(message(R"({"a": 1, "\u0061": 1})"), "repeated key \"a\"");
  EXPECT_NO_THROW(parse(R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]})"));
}

TEST(JsonText, DepthIsBounded) {
  const auto nested = [](std::size_t depth) {
    return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_NO_THROW(parse(nested(64)));
  expect_words(message(nested(65)), "nested deeper than 64");
}

TEST(JsonText, OnlyAWholeObjectWillDo) {
  expect_words(message(""), "not valid JSON");
  expect_words(message("   "), "not valid JSON");
  expect_words(message("[1]"), "not a JSON object");
  expect_words(message("null"), "not a JSON object");
  expect_words(message("{} {}"), "not valid JSON");
  expect_words(message("{\"a\": 1"), "not valid JSON");
  expect_words(message(std::string("{}\0{}", 5)), "NUL at byte 2");
  expect_words(message("{\"a\": \"\xC3\"}"), "not valid JSON");
  expect_words(message("{\"a\": 1e999}"), "number overflow");
}

TEST(JsonText, LongTextsAreCutInMessages) {
  EXPECT_LT(message("{\"" + std::string(100'000, 'x')).size(), 400U);
  EXPECT_LT(
      message("{\"" + std::string(100'000, 'x') + "\":0,\"" + std::string(100'000, 'x') + "\":0}")
          .size(),
      400U);
}

TEST(ConfigFile, NonFiniteNumberIsTakenWhereNotRead) {
  ModelFolder model = ModelFolder::load();
  const TempFolder folder;
  model.write(folder.path());
  std::string text = model.config.dump(1);
  text.replace(0, 1, "{\n \"time_step_limit\": [0.0, Infinity, -Infinity, NaN],");
  write_file(folder / "config.json", text);
  EXPECT_EQ(error_of(folder.path()), std::nullopt);
}

TEST(ConfigFile, NonFiniteNumberIsRefusedWhereRead) {
  ModelFolder model = ModelFolder::load();
  const TempFolder folder;
  model.write(folder.path());
  const std::string text = model.config.dump();
  for (const std::string field : {"\"head_dim\":64", "\"rope_freq_constant\":10000",
                                  "\"model_type\":\"openelm\"", "\"ffn_with_glu\":true"}) {
    const std::string name = field.substr(0, field.find(':'));
    std::string changed = text;
    changed.replace(text.find(field), field.size(), name + ":-Infinity");
    write_file(folder / "config.json", changed);
    expect_error(folder.path(), {"config.json", name, "found NaN or Infinity"});
  }
}

TEST(ConfigFile, ImpostorsAreNamed) {
  ModelFolder model = ModelFolder::load();
  const TempFolder folder;
  model.write(folder.path());
  write_file(folder / "config.json", "<!DOCTYPE html><html></html>");
  expect_error(folder.path(), {"config.json", "web page"});
  write_file(folder / "config.json", "version https://git-lfs.github.com/spec/v1\n");
  expect_error(folder.path(), {"config.json", "Git LFS pointer"});
  write_file(folder / "config.json", "");
  expect_error(folder.path(), {"config.json", "empty"});
  std::filesystem::remove(folder / "config.json");
  expect_error(folder.path(), {"config.json", "No such file"});
}

TEST(ConfigFile, SizeIsBounded) {
  ModelFolder model = ModelFolder::load();
  const TempFolder folder;
  model.write(folder.path());
  std::filesystem::resize_file(folder / "config.json", std::size_t{65} << 20);
  expect_error(folder.path(), {"config.json", "too large"});
}

}  // namespace
}  // namespace openelm::test

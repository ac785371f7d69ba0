#include "cli/answer_display.h"

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace openelm::cli {

TextCallback AnswerDisplay::begin() {
  printer_ = AnswerPrinter(output_, options_.trims);
  return [this](std::string_view part) {
    if (options_.streams && !options_.json) printer_.write(part);
    return true;
  };
}

void AnswerDisplay::end(std::size_t turn, const std::string& message, const Answer& answer,
                        const GenerationReport& report) {
  const GenerationResult& result = answer.result;
  if (options_.json) {
    const std::string_view text =
        options_.trims ? trim(result.text) : std::string_view(result.text);
    nlohmann::ordered_json object{{"turn", turn},
                                  {"prompt", message},
                                  {"text", replace_invalid_utf8(text)},
                                  {"tokens", result.tokens},
                                  {"finish_reason", to_string(result.reason)},
                                  {"stop", nullptr},
                                  {"seed", report.seed},
                                  {"usage", usage_json(report, result)},
                                  {"timings", timings_json(report, result)}};
    if (result.stop) object["stop"] = *result.stop;
    output_.line(object.dump());
  } else {
    if (!options_.streams) printer_.write(result.text);
    printer_.finish();
  }
  if (options_.stats) print_stats(report, result);
}

std::string describe_prompt(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  std::string text;
  std::string list;
  bool after_bos = false;
  for (const TokenId id : ids) {
    list += " " + std::to_string(id);
    std::string bytes;
    tokenizer.append_bytes(id, bytes);
    if (bytes.empty()) {
      text += "[" + std::string(tokenizer.piece(id)) + "]";
    } else {
      // The space that the encoder puts in front of a text is none of the text's own.
      text.append(bytes, after_bos && bytes.front() == ' ' ? 1 : 0);
    }
    after_bos = id == tokenizer.bos_id();
  }
  return replace_invalid_utf8(text) + "\nids:" + list + "\n";
}

std::string describe_tokens(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  std::string text;
  for (const TokenId id : ids) {
    if (!text.empty()) text += "  ";
    text += std::to_string(id) + " " + replace_invalid_utf8(tokenizer.piece(id));
  }
  return text;
}

}  // namespace openelm::cli

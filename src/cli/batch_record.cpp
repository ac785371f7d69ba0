#include "cli/batch_record.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include <openelm/error.h>

#include "base/utf8.h"
#include "checkpoint/json_text.h"
#include "checkpoint/message_text.h"
#include "cli/generation_report.h"
#include "runtime/rng.h"

namespace openelm::cli {
namespace {

using Json = nlohmann::json;

constexpr std::int32_t kIntMax = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void fail(const std::string& field, const std::string& expected, const Json& got) {
  // What the record holds may be long, and need not be shown whole.
  const std::string text = got.dump(-1, ' ', false, Json::error_handler_t::replace);
  throw UsageError(in_quotes(field) + ": expected " + expected + ", got " + printable(text, 60));
}

std::int32_t whole(const std::string& field, const Json& value, std::int32_t least) {
  const std::string expected =
      "a whole number from " + std::to_string(least) + " to " + std::to_string(kIntMax);
  if (!value.is_number_integer()) fail(field, expected, value);
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kIntMax) {
    fail(field, expected, value);
  }
  const auto number = value.get<std::int64_t>();
  if (number < least || number > kIntMax) fail(field, expected, value);
  return static_cast<std::int32_t>(number);
}

float real(const std::string& field, const Json& value) {
  if (!value.is_number()) fail(field, "a number", value);
  const auto number = value.get<double>();
  if (!(std::abs(number) <= std::numeric_limits<float>::max())) fail(field, "a number", value);
  return static_cast<float>(number);
}

std::string stop_string(const Json& value) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
    fail("stop", "a text, or a list of texts, none of them empty", value);
  }
  return value.get<std::string>();
}

std::vector<std::string> stop_strings(const Json& value) {
  std::vector<std::string> stops;
  if (!value.is_array()) return {stop_string(value)};
  for (const Json& entry : value) stops.push_back(stop_string(entry));
  return stops;
}

using SetField = std::function<void(const std::string& field, const Json&, GenerationOptions&)>;

SetField real_field(float SamplingOptions::*member) {
  return [member](const std::string& field, const Json& value, GenerationOptions& options) {
    options.sampling.*member = real(field, value);
  };
}

SetField whole_field(std::int32_t SamplingOptions::*member, std::int32_t least) {
  return [member, least](const std::string& field, const Json& value, GenerationOptions& options) {
    options.sampling.*member = whole(field, value, least);
  };
}

/// The fields of a record that change how it is generated.
const std::map<std::string, SetField>& option_fields() {
  static const std::map<std::string, SetField> fields = {
      {"max_tokens",
       [](auto& field, auto& value, auto& o) { o.max_tokens = whole(field, value, -1); }},
      {"logprobs", [](auto& field, auto& value, auto& o) { o.logprobs = whole(field, value, 0); }},
      {"stop", [](auto&, auto& value, auto& o) { o.stop = stop_strings(value); }},
      {"ignore_eos",
       [](auto& field, auto& value, auto& o) {
         if (!value.is_boolean()) fail(field, "true or false", value);
         o.ignore_eos = value.template get<bool>();
       }},
      {"seed",
       [](auto& field, auto& value, auto& o) {
         if (!value.is_number_unsigned()) {
           fail(field, "a whole number from 0 to 18446744073709551615", value);
         }
         o.sampling.seed = value.template get<std::uint64_t>();
       }},
      {"temperature", real_field(&SamplingOptions::temperature)},
      {"top_p", real_field(&SamplingOptions::top_p)},
      {"min_p", real_field(&SamplingOptions::min_p)},
      {"repetition_penalty", real_field(&SamplingOptions::repetition_penalty)},
      {"frequency_penalty", real_field(&SamplingOptions::frequency_penalty)},
      {"presence_penalty", real_field(&SamplingOptions::presence_penalty)},
      {"top_k", whole_field(&SamplingOptions::top_k, 0)},
      {"repetition_window", whole_field(&SamplingOptions::repetition_window, -1)},
  };
  return fields;
}

/// A number that a double cannot hold exactly would come out as another one.
void require_exact_id(const Json& id) {
  constexpr double kLargestExact = 9007199254740992.0;  // 2^53
  if (id.is_number_float() && std::abs(id.get<double>()) >= kLargestExact) {
    fail("id", "a number of at most 64 bits, or a text", id);
  }
  if (id.is_structured()) {
    for (const Json& part : id) require_exact_id(part);
  }
}

nlohmann::ordered_json head_of(const BatchRecord& record) {
  return {{"id", record.id}, {"index", record.index}};
}

}  // namespace

std::uint64_t record_seed(std::uint64_t run_seed, std::uint64_t index) {
  return random_bits(run_seed, index) >> 11;
}

BatchRecordParser::BatchRecordParser(BatchRecordOptions options, const Tokenizer& tokenizer,
                                     const ModelConfig& config, std::int32_t context)
    : options_(std::move(options)), tokenizer_(tokenizer), config_(config), context_(context) {}

bool BatchRecordParser::is_record(std::string_view text) const {
  return !options_.json || text.find_first_not_of(" \t\r") != std::string_view::npos;
}

BatchRecord BatchRecordParser::parse(std::string_view text, std::size_t line,
                                     std::uint64_t index) const {
  BatchRecord record{
      .index = index, .line = line, .id = {}, .carried = {}, .request = {}, .error = {}};
  try {
    fill(text, record);
  } catch (const Error& error) {
    record.error = error.what();
  }
  return record;
}

BatchRecord BatchRecordParser::too_long(std::size_t longest, std::size_t line,
                                        std::uint64_t index) const {
  return {.index = index,
          .line = line,
          .id = {},
          .carried = {},
          .request = {},
          .error = "the line is longer than " + std::to_string(longest) + " bytes"};
}

void BatchRecordParser::fill(std::string_view text, BatchRecord& record) const {
  record.request.number = record.index;
  record.request.options = options_.generation;
  SamplingOptions& sampling = record.request.options.sampling;
  sampling.seed = record_seed(sampling.seed, record.index);

  std::string prompt_text;
  if (options_.json) {
    prompt_text = read_fields(parse_json_object(text, "not a record"), record);
  } else {
    require_utf8(text, "the prompt");
    prompt_text = text;
  }
  InputOptions input;
  input.no_bos = options_.no_bos;
  Prompt prompt = make_prompt(input, std::move(prompt_text), &tokenizer_, config_);
  require_fits(prompt, context_);
  record.request.prompt = std::move(prompt.ids);
  record.request.at_start = prompt.at_start;
}

/// Sets the record's id and options; its prompt. A null counts as absent.
std::string BatchRecordParser::read_fields(const Json& object, BatchRecord& record) const {
  // First of all, so that an error is reported under the record's id.
  if (object.contains("id")) {
    require_exact_id(object["id"]);
    record.id = object["id"];
  }
  if (options_.carry) record.carried = Json::object();
  std::string prompt;
  bool has_prompt = false;
  for (const auto& [field, value] : object.items()) {
    const auto known = option_fields().find(field);
    if (field == "prompt") {
      if (!value.is_string()) fail(field, "a text", value);
      prompt = value.get<std::string>();
      has_prompt = true;
    } else if (known != option_fields().end()) {
      if (!value.is_null()) known->second(field, value, record.request.options);
    } else if (options_.carry && field != "id") {
      record.carried[field] = value;
    }
  }
  if (!has_prompt) throw UsageError("\"prompt\": missing");
  record.request.options.sampling.validate(config_.vocab_size);
  return prompt;
}

std::string batch_output_line(const BatchRecord& record, const GenerationResult& result,
                              const Tokenizer& tokenizer) {
  nlohmann::ordered_json object = head_of(record);
  object["text"] = replace_invalid_utf8(result.text);
  object["finish_reason"] = to_string(result.reason);
  object["stop"] = nullptr;
  if (result.stop) object["stop"] = *result.stop;
  object["usage"] = usage_json({.prompt_tokens = record.request.prompt.size()}, result);
  object["seed"] = record.request.options.sampling.seed;
  if (record.request.options.logprobs >= 0) {
    object["logprobs"] = logprobs_json(result.logprobs, &tokenizer);
  }
  if (!record.carried.is_null()) object["input"] = record.carried;
  return object.dump();
}

std::string batch_error_line(const BatchRecord& record, const std::string& message) {
  nlohmann::ordered_json object = head_of(record);
  object["error"] = {{"line", record.line}, {"message", replace_invalid_utf8(message)}};
  if (!record.carried.is_null()) object["input"] = record.carried;
  return object.dump();
}

}  // namespace openelm::cli

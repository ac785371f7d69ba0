#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <openelm/error.h>

#include "base/utf8.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/input_text.h"
#include "cli/log.h"
#include "cli/model_location.h"
#include "cli/options.h"
#include "cli/output.h"

namespace openelm::cli {
namespace {

struct TokenizeOptions {
  LogOptions log;
  ModelOptions model;
  InputOptions input;
  bool ids = false;
  bool pieces = false;
  bool count = false;
  bool json = false;
  bool bos = false;
  bool eos = false;
};

struct DetokenizeOptions {
  LogOptions log;
  ModelOptions model;
  std::vector<std::string> ids;
};

/// Neither command needs a model where a tokenizer is named.
std::shared_ptr<const Tokenizer> find_tokenizer(const ModelOptions& options) {
  if (options.tokenizer) return load_tokenizer(options, {});
  return load_tokenizer(options, locate_model(options, kBundledModel));
}

TokenId require_control(TokenId id, const char* name) {
  if (id < 0) throw Error(std::string("this tokenizer has no ") + name);
  return id;
}

void print_pieces(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, Output& output) {
  std::string lines;
  for (const TokenId id : ids) lines.append(tokenizer.piece(id)) += '\n';
  output.write(lines);
}

void print_ids(const std::vector<TokenId>& ids, Output& output) {
  std::string line;
  for (const TokenId id : ids) line += (line.empty() ? "" : " ") + std::to_string(id);
  output.line(line);
}

void print_json(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, Output& output) {
  nlohmann::ordered_json object{{"ids", ids}, {"pieces", nlohmann::ordered_json::array()}};
  for (const TokenId id : ids) {
    object["pieces"].push_back(replace_invalid_utf8(tokenizer.piece(id)));
  }
  object["count"] = ids.size();
  output.line(object.dump());
}

int run_tokenize(const TokenizeOptions& options) {
  set_up_log(options.log);
  require_input(options.input, "tokenize");
  const std::string text = read_text(options.input);
  const auto tokenizer = find_tokenizer(options.model);
  std::vector<TokenId> ids = tokenizer->encode(text);
  if (options.bos) ids.insert(ids.begin(), require_control(tokenizer->bos_id(), "BOS"));
  if (options.eos) ids.push_back(require_control(tokenizer->eos_id(), "EOS"));

  Output output;
  if (options.json) {
    print_json(*tokenizer, ids, output);
  } else if (options.count) {
    output.line(std::to_string(ids.size()));
  } else if (options.pieces) {
    print_pieces(*tokenizer, ids, output);
  } else {
    print_ids(ids, output);
  }
  return kExitDone;
}

int run_detokenize(const DetokenizeOptions& options) {
  set_up_log(options.log);
  std::string words;
  for (const std::string& word : options.ids) words += word + ' ';
  if (options.ids.empty()) {
    require_input({}, "detokenize");
    words = read_bytes("-");
  }
  const auto tokenizer = find_tokenizer(options.model);
  const std::vector<TokenId> ids = parse_list("IDS", words, 0, tokenizer->vocab_size() - 1);
  Output output;
  output.write(tokenizer->decode(ids));
  output.end_line_on_terminal();
  return kExitDone;
}

}  // namespace

Command add_tokenize(CLI::App& program) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* app = program.add_subcommand("tokenize", "Turn a text into token ids");
  CLI::Option* text = add_value(*app, "TEXT", "", "The text; default: standard input",
                                [o = options.get()](auto, auto t) { o->input.text = t; });
  add_file_option(*app, options->input);
  text->excludes(app->get_option("--file"));
  CLI::Option* ids = app->add_flag("--ids", options->ids, "Print the ids on a line (default)");
  CLI::Option* pieces = app->add_flag("--pieces", options->pieces, "Print the pieces, one a line");
  CLI::Option* count = app->add_flag("--count", options->count, "Print how many tokens there are");
  ids->excludes(pieces)->excludes(count);
  pieces->excludes(count);
  app->add_flag("--json", options->json, "Print an object with ids, pieces and count");
  app->add_flag("--bos", options->bos, "Put BOS in front");
  app->add_flag("--eos", options->eos, "Put EOS at the end");
  add_model_option(*app, options->model);
  add_tokenizer_option(*app, options->model);
  add_log_options(*app, options->log);
  app->footer("Example:\n  openelm tokenize --bos \"Once upon a time\"");
  return {app, [options] { return run_tokenize(*options); }};
}

Command add_detokenize(CLI::App& program) {
  auto options = std::make_shared<DetokenizeOptions>();
  CLI::App* app =
      program.add_subcommand("detokenize", "Turn token ids into the bytes of their text");
  app->add_option("IDS", options->ids, "The ids; default: standard input")->type_name("");
  add_model_option(*app, options->model);
  add_tokenizer_option(*app, options->model);
  add_log_options(*app, options->log);
  app->footer("Example:\n  openelm tokenize \"Once upon a time\" | openelm detokenize");
  return {app, [options] { return run_detokenize(*options); }};
}

}  // namespace openelm::cli

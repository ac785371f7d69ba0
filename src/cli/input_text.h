#pragma once

#include <optional>
#include <string>
#include <vector>

#include <openelm/config.h>
#include <openelm/tokenizer.h>

namespace CLI {
class App;
}

namespace openelm::cli {

/// Where a command's text comes from; at most one is given, else it is standard input.
struct InputOptions {
  std::optional<std::string> text;
  std::optional<std::string> file;  ///< "-": standard input
  std::optional<std::vector<TokenId>> ids;
  bool no_bos = false;
};

/// -p, -f, --ids (which exclude each other) and --no-bos.
void add_prompt_options(CLI::App& app, InputOptions& options);

/// -f alone, for commands that take their text as an argument.
void add_file_option(CLI::App& app, InputOptions& options);

/// Throws UsageError if there is no text and standard input is a terminal.
void require_input(const InputOptions& options, const char* what);

/// The text: bytes as they are (CRLF kept), a byte-order mark at the start of a file dropped.
/// Throws Error with the byte offset when it is not UTF-8, and when the file cannot be read.
std::string read_text(const InputOptions& options);

/// Everything in the file, or in standard input for "-", as it is.
std::string read_bytes(const std::string& file);

/// A prompt, ready to be evaluated.
struct Prompt {
  std::optional<std::string> text;  ///< absent when it was given as ids
  std::vector<TokenId> ids;         ///< with BOS
  bool at_start = false;            ///< no text stands before what is generated
};

/// Text to ids, with the model's BOS in front unless --no-bos. `tokenizer` may be null when the
/// options hold ids. Throws UsageError for an empty prompt and for ids outside the vocabulary.
Prompt make_prompt(const InputOptions& options, std::optional<std::string> text,
                   const Tokenizer* tokenizer, const ModelConfig& config);

/// Throws Error with both numbers when a prompt is longer than the context.
void require_fits(const Prompt& prompt, std::int32_t context);

/// Warns of text that is likely meant otherwise: "<s>" in front, a space at the end.
void warn_about(const Prompt& prompt);

}  // namespace openelm::cli

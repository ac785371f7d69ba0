#include "cli/input_text.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <openelm/error.h>

#include "base/utf8.h"
#include "cli/options.h"

namespace openelm::cli {
namespace {

constexpr const char* kStandardInput = "standard input";

/// A descriptor that is closed with its scope, unless it is standard input.
class InputFile {
 public:
  explicit InputFile(const std::string& file)
      : name_(file == "-" ? kStandardInput : file),
        descriptor_(file == "-" ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail();
  }
  ~InputFile() {
    if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  std::string read_all() {
    std::string bytes;
    std::array<char, 65536> block;
    while (true) {
      const ssize_t n = ::read(descriptor_, block.data(), block.size());
      if (n == 0) return bytes;
      if (n > 0) {
        bytes.append(block.data(), static_cast<std::size_t>(n));
      } else if (errno != EINTR) {
        fail();
      }
    }
  }

 private:
  [[noreturn]] void fail() const { throw Error(name_ + ": " + std::strerror(errno)); }

  std::string name_;
  int descriptor_;
};

}  // namespace

void add_file_option(CLI::App& app, InputOptions& options) {
  add_value(app, "-f,--file", "FILE", "Take the text from a file; -: standard input",
            [&options](auto, auto text) { options.file = text; });
}

void add_prompt_options(CLI::App& app, InputOptions& options) {
  add_value(app, "-p,--prompt", "TEXT", "The prompt; default: standard input",
            [&options](auto, auto text) { options.text = text; });
  add_file_option(app, options);
  add_value(app, "--ids", "IDS", "The prompt as token ids, taken as they are (no BOS is added)",
            [&options](auto flag, auto text) {
              options.ids = parse_list(flag, text, 0, std::numeric_limits<TokenId>::max());
            });
  app.add_flag("--no-bos", options.no_bos, "Do not put BOS in front of the text");
  CLI::Option* text = app.get_option("--prompt");
  CLI::Option* file = app.get_option("--file");
  CLI::Option* ids = app.get_option("--ids");
  text->excludes(file)->excludes(ids);
  file->excludes(ids);
}

void require_input(const InputOptions& options, const char* what) {
  if (options.text || options.file || options.ids || ::isatty(STDIN_FILENO) == 0) return;
  throw UsageError(std::string("nothing to ") + what +
                   ": give a text, -f FILE, or pipe it to standard input");
}

std::string read_bytes(const std::string& file) { return InputFile(file).read_all(); }

std::string read_text(const InputOptions& options) {
  if (options.text) {
    require_utf8(*options.text, "the text");
    return *options.text;
  }
  const std::string file = options.file.value_or("-");
  const std::string bytes = read_bytes(file);
  require_utf8(bytes, file == "-" ? kStandardInput : file);
  return std::string(drop_byte_order_mark(bytes));
}

Prompt make_prompt(const InputOptions& options, std::optional<std::string> text,
                   const Tokenizer* tokenizer, const ModelConfig& config) {
  Prompt prompt;
  if (options.ids) {
    require_in_vocabulary("--ids", *options.ids, config.vocab_size);
    prompt.ids = *options.ids;
    prompt.at_start = prompt.ids.size() == 1 && prompt.ids.front() == config.bos_id;
  } else {
    prompt.at_start = text->empty();
    if (!options.no_bos) prompt.ids.push_back(config.bos_id);
    const std::vector<TokenId> ids = tokenizer->encode(*text);
    prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
    prompt.text = std::move(text);
  }
  if (prompt.ids.empty()) throw UsageError("the prompt has no tokens: give a text or let BOS in");
  return prompt;
}

void require_fits(const Prompt& prompt, std::int32_t context) {
  if (prompt.ids.size() <= static_cast<std::size_t>(context)) return;
  throw Error("the prompt has " + std::to_string(prompt.ids.size()) +
              " tokens, more than the context of " + std::to_string(context));
}

void warn_about(const Prompt& prompt) {
  const std::string_view text = prompt.text ? std::string_view(*prompt.text) : "";
  if (text.starts_with("<s>")) {
    spdlog::warn(
        "the text begins with \"<s>\": BOS is added anyway, and this is read as plain text");
  }
  if (text.ends_with(' ')) {
    spdlog::warn(
        "the text ends in a space, which most tokens bring themselves: expect a worse "
        "continuation");
  }
}

}  // namespace openelm::cli

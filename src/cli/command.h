#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace openelm::cli {

/// A subcommand: what the parser knows of it, and what it does when it was chosen. `run` returns
/// the exit code; it throws Error, OutputClosed or Interrupted.
struct Command {
  CLI::App* parser;
  std::function<int()> run;
};

// Each adds its subcommand to the program's parser. Values are kept in what `run` holds on to.
Command add_complete(CLI::App& program);
Command add_chat(CLI::App& program);
Command add_batch(CLI::App& program);
Command add_tokenize(CLI::App& program);
Command add_detokenize(CLI::App& program);
Command add_inspect(CLI::App& program);
Command add_logits(CLI::App& program);
Command add_bench(CLI::App& program);
Command add_quantize(CLI::App& program);

}  // namespace openelm::cli

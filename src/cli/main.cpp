#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include <openelm/error.h>
#include <openelm/session.h>
#include <openelm/version.h>

#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/log.h"
#include "cli/output.h"
#include "kernels/kernels.h"

namespace openelm::cli {
namespace {

std::string version_text() {
  std::string text = std::string("openelm ") + kVersion + "\nkernels compiled in:";
  for (const kernels::Variant& variant : kernels::variants()) {
    if (variant.table != nullptr) text += std::string(" ") + variant.name;
  }
  return text + "\nin use: " + kernels::select("auto").name + "\n";
}

/// A mistake on the command line, in one line, with the command whose help tells more.
int explain(const std::vector<Command>& commands, const std::string& what) {
  std::string help = "openelm";
  for (const Command& command : commands) {
    if (command.parser->parsed()) help += " " + command.parser->get_name();
  }
  spdlog::error("{} (see {} --help)", what, help);
  return kExitUsage;
}

/// What was not understood, and what it was taken for.
std::string describe_extra(const CLI::App& program, const std::vector<Command>& commands) {
  const std::string extra = program.remaining(true).front();
  if (extra.starts_with('-')) return "no such option: " + extra;
  if (!program.get_subcommands().empty()) return "one argument too many: " + extra;
  std::string names;
  for (const Command& command : commands) names += " " + command.parser->get_name();
  return "no such command: " + extra + "; there are" + names;
}

int run_chosen(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (command.parser->parsed()) return command.run();
  }
  throw UsageError("no command given");
}

int run(int argc, char** argv) {
  CLI::App program("Runs Apple's OpenELM language models on the CPU.", "openelm");
  bool show_version = false;
  program.add_flag("--version", show_version, "Print the version and the kernels, and exit");
  program.footer(
      "Exit codes: 0 done, also when the reader of the output goes away; 1 failure; 2 wrong usage; "
      "3 done, but records failed; 130 interrupted.\n\n"
      "Example:\n  openelm complete -p \"Once upon a time\"");
  program.require_subcommand(0, 1);
  const std::vector<Command> commands = {
      add_complete(program), add_chat(program),       add_batch(program),
      add_tokenize(program), add_detokenize(program), add_inspect(program),
      add_logits(program),   add_bench(program),      add_quantize(program),
  };

  Output output;
  int status = kExitDone;
  try {
    program.parse(argc, argv);
    if (show_version) {
      output.write(version_text());
    } else {
      status = run_chosen(commands);
    }
  } catch (const CLI::Success&) {
    output.write(program.help());
  } catch (const CLI::ExtrasError&) {
    return explain(commands, describe_extra(program, commands));
  } catch (const CLI::ParseError& error) {
    return explain(commands, error.what());
  } catch (const UsageError& error) {
    return explain(commands, error.what());
  }
  output.close();
  return status;
}

/// The one place where failures end: each becomes a line on stderr and an exit code.
int guarded_run(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const OutputClosed&) {
    return kExitDone;
  } catch (const Interrupted&) {
    return kExitInterrupted;
  } catch (const std::bad_alloc&) {
    // What is left of the memory may not suffice for the logger.
    std::fputs("openelm: error: not enough memory\n", stderr);
    return kExitFailure;
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
    return kExitFailure;
  }
}

}  // namespace
}  // namespace openelm::cli

int main(int argc, char** argv) {
  openelm::cli::set_up_log({});
  openelm::cli::install_signal_handlers();
  return openelm::cli::guarded_run(argc, argv);
}

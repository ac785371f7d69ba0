#include "cli/model_location.h"

#include <array>
#include <cstdlib>
#include <system_error>
#include <vector>

#include <openelm/error.h>

#include "cli/program_path.h"

namespace openelm::cli {
namespace {

namespace fs = std::filesystem;

// How far above the program's folder a source tree is looked for: build/, build/<preset>/, and one
// more for generators that add a folder for the configuration.
constexpr int kBuildTreeDepth = 4;

bool is_model(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "config.json", ignored);
}

fs::path bundled_model(std::string_view name) {
  std::vector<fs::path> roots;
  if (const fs::path program = program_path(); !program.empty()) {
    fs::path folder = program.parent_path();
    roots.push_back(folder / OPENELM_RELATIVE_DATADIR / "openelm" / "models");
    for (int i = 0; i < kBuildTreeDepth && folder.has_relative_path(); ++i) {
      roots.push_back(folder / "models");
      folder = folder.parent_path();
    }
  }
  roots.emplace_back(OPENELM_SOURCE_MODELS);
  for (const fs::path& root : roots) {
    if (is_model(root / name)) return (root / name).lexically_normal();
  }
  throw Error("no model: the bundled '" + std::string(name) +
              "' was not found beside the program; name a model folder with -m or OPENELM_MODEL");
}

fs::path require_folder(const fs::path& path, const std::string& named_by) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return path;
  const std::string where = named_by + ": " + path.string();
  if (status.type() == fs::file_type::not_found) throw Error(where + ": no such model folder");
  if (!fs::exists(status)) throw Error(where + ": " + error.message());
  if (path.extension() == ".gguf") {
    throw Error(where + ": GGUF files are not supported in this version: give a model folder");
  }
  throw Error(where + ": is a file: give the model's folder (with config.json)");
}

}  // namespace

std::filesystem::path locate_model(const ModelOptions& options, std::string_view bundled) {
  if (options.model) return require_folder(*options.model, "--model");
  const char* variable = std::getenv("OPENELM_MODEL");
  if (variable != nullptr && *variable != '\0') return require_folder(variable, "OPENELM_MODEL");
  return bundled_model(bundled);
}

std::filesystem::path tokenizer_path(const ModelOptions& options,
                                     const std::filesystem::path& model) {
  return options.tokenizer ? fs::path(*options.tokenizer) : model / "tokenizer.model";
}

std::shared_ptr<const Tokenizer> load_tokenizer(const ModelOptions& options,
                                                const std::filesystem::path& model) {
  const fs::path file = tokenizer_path(options, model);
  std::error_code ignored;
  if (!options.tokenizer && fs::symlink_status(file, ignored).type() == fs::file_type::not_found) {
    if (!is_model(model)) throw Error(model.string() + ": no model folder: it has no config.json");
    throw Error(file.string() +
                ": no tokenizer in the model's folder: name one with --tokenizer PATH (OpenELM "
                "checkpoints come without; Apple's use the tokenizer.model of Llama 2, from "
                "https://huggingface.co/meta-llama/Llama-2-7b-hf)");
  }
  return Tokenizer::load(file);
}

void require_same_vocabulary(const Tokenizer& tokenizer, const std::filesystem::path& file,
                             const ModelConfig& config) {
  if (tokenizer.vocab_size() == config.vocab_size) return;
  throw Error(file.string() + ": the tokenizer has " + std::to_string(tokenizer.vocab_size()) +
              " pieces, the model a vocabulary of " + std::to_string(config.vocab_size) +
              ": they do not belong together (--tokenizer names another)");
}

}  // namespace openelm::cli

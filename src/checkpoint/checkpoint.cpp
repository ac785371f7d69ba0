#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <vector>

#include <openelm/error.h>

#include "checkpoint/affine_tensor.h"
#include "checkpoint/hf_config.h"
#include "checkpoint/json_text.h"
#include "checkpoint/message_text.h"
#include "checkpoint/mlx_config.h"
#include "checkpoint/quantization_config.h"
#include "checkpoint/tensor_layout.h"
#include "checkpoint/tensor_source.h"
#include "checkpoint/weight_files.h"

namespace openelm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEmbedding = "token_embeddings.weight";
constexpr std::string_view kHead = "lm_head.weight";

void check_folder(const fs::path& folder) {
  if (folder.empty()) throw Error("the path of the model folder is empty");
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (fs::is_directory(status)) return;
  if (status.type() == fs::file_type::none) {
    throw Error(folder.string() + ": cannot open the model folder: " + error.message());
  }
  if (!fs::exists(status)) {
    const bool dangling = fs::is_symlink(folder, error);
    throw Error(folder.string() + (dangling ? ": is a dangling link, expected a model folder"
                                            : ": no such model folder"));
  }
  if (folder.extension() == ".gguf") {
    throw Error(
        folder.string() +
        ": GGUF files are not supported in this version: give a Hugging Face or MLX folder");
  }
  throw Error(folder.string() + ": is a file, expected the model folder that holds config.json" +
              (folder.extension() == ".safetensors" ? " and this file" : ""));
}

/// A name to show: the folder's, or the repository's where the folder is a snapshot of the
/// Hugging Face cache (models--apple--OpenELM-270M/snapshots/<revision>).
std::string display_name(const fs::path& folder) {
  fs::path path = fs::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string repository = path.parent_path().parent_path().filename().string();
  constexpr std::string_view kCachePrefix = "models--";
  if (path.parent_path().filename() == "snapshots" && repository.starts_with(kCachePrefix)) {
    const std::string name = repository.substr(kCachePrefix.size());
    const auto dashes = name.find("--");
    return dashes == name.npos ? name : name.substr(0, dashes) + '/' + name.substr(dashes + 2);
  }
  return path.filename().string();
}

struct FolderConfig {
  ModelConfig model;
  QuantizationConfig quantization;
};

FolderConfig read_config(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  const nlohmann::json object = read_json_file(file);
  FolderConfig config{
      is_mlx_config(object) ? parse_mlx_config(object, file) : parse_hf_config(object, file),
      QuantizationConfig::read(object, file)};
  if (config.model.name.empty()) config.model.name = display_name(folder);
  return config;
}

/// "layers.3.ffn.proj_1.weight" -> "layers.3.ffn.proj_1": MLX's path of the module.
std::string_view module_of(std::string_view weight) {
  constexpr std::string_view kSuffix = ".weight";
  return weight.ends_with(kSuffix) ? weight.substr(0, weight.size() - kSuffix.size()) : weight;
}

/// The files' tensors under their canonical names, brought to what the architecture uses.
class Assembly {
 public:
  Assembly(FolderConfig config, WeightFiles weights)
      : config_(std::move(config.model)),
        quantization_(std::move(config.quantization)),
        weights_(std::move(weights)) {
    for (StoredTensor& tensor : weights_.tensors) {
      const auto [at, added] = stored_.emplace(canonical_name(tensor.entry.name), &tensor);
      if (!added) {
        fail_at(tensor, "stands for the same weights as " + in_quotes(at->second->entry.name));
      }
    }
  }

  Checkpoint finish() {
    std::map<std::string, TensorView, std::less<>> views;
    for (const TensorSpec& spec : expected_tensors(config_)) views.emplace(spec.name, take(spec));
    judge_leftovers();
    return {config_, TensorSource(weights_.origin, std::move(views), std::move(weights_.files)),
            std::move(warnings_)};
  }

 private:
  TensorView take(const TensorSpec& spec) {
    const auto node = stored_.extract(spec.name);
    if (node.empty()) fail_missing(spec);
    const StoredTensor& tensor = *node.mapped();
    // As in mlx-lm, the scales make a matrix a quantised one, and the configuration says how.
    const StoredTensor* const scales =
        spec.shape.size() == 2 ? extract_part(spec.name, ".scales") : nullptr;
    TensorView view = scales == nullptr ? plain(tensor) : affine(tensor, *scales, spec);
    const bool row_per_token = spec.name == kEmbedding || spec.name == kHead;
    if (row_per_token) drop_padding_rows(tensor, view, spec.shape[0]);
    require_shape(view, spec.shape);
    return view;
  }

  const StoredTensor* extract_part(std::string_view weight, const char* suffix) {
    const auto node = stored_.extract(std::string(module_of(weight)) + suffix);
    return node.empty() ? nullptr : node.mapped();
  }

  static TensorView plain(const StoredTensor& tensor) {
    const SafetensorsEntry& entry = tensor.entry;
    const auto type = weight_type_of(entry.dtype);
    if (!type) {
      const bool quants = entry.dtype == "U32" && entry.shape.size() == 2;
      fail_at(tensor,
              "has dtype " + in_quotes(entry.dtype) +
                  (quants ? ", but its .scales are missing" : ", weights may be F32, F16 or BF16"));
    }
    return {.name = entry.name,
            .format = {.type = *type},
            .shape = entry.shape,
            .data = entry.data,
            .file = tensor.file};
  }

  TensorView affine(const StoredTensor& tensor, const StoredTensor& scales,
                    const TensorSpec& spec) {
    const std::string_view module = module_of(tensor.entry.name);
    if (!quantization_.present()) {
      fail_at(scales, "is there, but config.json has no \"quantization\" entry");
    }
    const auto groups = quantization_.of(module);
    if (!groups) {
      fail_at(scales, "is there, but \"quantization\" in config.json says that " +
                          in_quotes(module) + " is not quantised");
    }
    const StoredTensor* const biases = extract_part(spec.name, ".biases");
    if (biases == nullptr) {
      fail_at(scales, "is there, but " + in_quotes(std::string(module) + ".biases") +
                          " is missing: supported is MLX's affine format");
    }
    return view_affine({tensor, scales, *biases}, *groups, spec);
  }

  /// Training pads the vocabulary to a round number of rows that are never tokens.
  void drop_padding_rows(const StoredTensor& tensor, TensorView& view, std::int64_t vocab) {
    if (view.shape.size() != 2 || view.shape[0] <= vocab) return;
    warnings_.push_back(place_of(tensor) + " has " + std::to_string(view.shape[0]) +
                        " rows for a vocabulary of " + std::to_string(vocab) +
                        ", the rows past it are ignored");
    const auto rows = static_cast<std::size_t>(view.shape[0]);
    for (auto* part : {&view.data, &view.scales, &view.biases}) {
      *part = part->first(part->size() / rows * static_cast<std::size_t>(vocab));
    }
    view.shape[0] = vocab;
  }

  [[noreturn]] void fail_missing(const TensorSpec& spec) const {
    const bool hf_names = std::ranges::any_of(weights_.tensors, [](const StoredTensor& tensor) {
      return tensor.entry.name.starts_with("transformer.");
    });
    const bool prefixed = hf_names && spec.name != kHead;
    std::string message = weights_.origin.string() + ": tensor " +
                          in_quotes((prefixed ? "transformer." : "") + spec.name) + " of shape " +
                          shape_text(spec.shape) + " is missing";
    if (spec.name == kHead) {
      message += ", but share_input_output_layers in config.json is not true";
    }
    if (spec.name == kEmbedding) message += "; the file holds " + names_found();
    throw Error(message);
  }

  std::string names_found() const {
    constexpr std::size_t kMostShown = 3;
    const std::size_t count = weights_.tensors.size();
    std::string text;
    for (std::size_t i = 0; i < std::min(count, kMostShown); ++i) {
      text += (i > 0 ? ", " : "") + in_quotes(weights_.tensors[i].entry.name);
    }
    if (count == 0) return "no tensors";
    return count > kMostShown ? text + " and " + std::to_string(count - kMostShown) + " more"
                              : text;
  }

  /// What is left in the files after the architecture has taken its tensors.
  void judge_leftovers() {
    if (const auto head = stored_.extract(std::string(kHead)); !head.empty()) {
      for (const char* suffix : {".scales", ".biases"}) extract_part(kHead, suffix);
      warnings_.push_back(place_of(*head.mapped()) +
                          " is not used: config.json says that the embedding is the head");
    }
    std::vector<std::string> unused = weights_.unlisted;
    for (const auto& [name, tensor] : stored_) {
      check_leftover(name, *tensor);
      unused.push_back(tensor->entry.name);
    }
    if (unused.empty()) return;
    warnings_.push_back(weights_.origin.string() + ": " + std::to_string(unused.size()) +
                        (unused.size() == 1 ? " tensor is" : " tensors are") +
                        " not part of the model and ignored, the first is " + in_quotes(unused[0]));
  }

  /// Refuses what shows that the configuration belongs to another checkpoint.
  void check_leftover(std::string_view name, const StoredTensor& tensor) const {
    constexpr std::string_view kLayers = "layers.";
    if (!name.starts_with(kLayers)) return;
    std::size_t layer = 0;
    const char* const digits = name.data() + kLayers.size();
    const auto [end, error] = std::from_chars(digits, name.data() + name.size(), layer);
    if (end != digits && (error != std::errc{} || layer >= config_.layers.size())) {
      fail_at(tensor, "belongs to a layer past num_transformer_layers in config.json, which is " +
                          std::to_string(config_.layers.size()));
    }
    if (name.ends_with(".attn.q_norm.weight") || name.ends_with(".attn.k_norm.weight")) {
      fail_at(tensor, "is present, but normalize_qk_projections in config.json is not true");
    }
  }

  ModelConfig config_;
  QuantizationConfig quantization_;
  WeightFiles weights_;
  std::map<std::string, const StoredTensor*, std::less<>> stored_;
  std::vector<std::string> warnings_;
};

}  // namespace

Checkpoint open_checkpoint(const std::filesystem::path& folder) {
  check_folder(folder);
  FolderConfig config = read_config(folder);
  return Assembly(std::move(config), open_weight_files(folder)).finish();
}

}  // namespace openelm

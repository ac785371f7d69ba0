#include <map>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <openelm/engine.h>

#include "base/utf8.h"
#include "checkpoint/tensor_source.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/log.h"
#include "cli/model_location.h"
#include "cli/options.h"
#include "cli/output.h"
#include "kernels/kernels.h"

namespace openelm::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InspectOptions {
  LogOptions log;
  ModelOptions model;
  bool tensors = false;
  bool json = false;
};

/// What is shown of a checkpoint and of the machine it would run on.
struct Inspection {
  std::filesystem::path folder;
  const Checkpoint* checkpoint = nullptr;
  std::map<std::string, std::size_t> formats;  ///< tensors of each format
  std::uint64_t weight_bytes = 0;
  double bits_per_weight = 0;
  std::vector<std::string> cpu_supports;
  std::vector<std::string> compiled_in;
  std::string in_use;
};

constexpr KvType kKvTypes[] = {KvType::f32, KvType::f16, KvType::bf16, KvType::q8};

std::uint64_t kv_bytes(const ModelConfig& config, KvType type) {
  return static_cast<std::uint64_t>(config.kv_bytes_per_token(type)) *
         static_cast<std::uint64_t>(config.max_context);
}

Inspection inspect(const std::filesystem::path& folder, const Checkpoint& checkpoint) {
  Inspection result;
  result.folder = folder;
  result.checkpoint = &checkpoint;
  for (const auto& [name, tensor] : checkpoint.tensors.all()) {
    ++result.formats[to_string(tensor.format)];
    result.weight_bytes += tensor.bytes();
  }
  result.bits_per_weight = 8.0 * static_cast<double>(result.weight_bytes) /
                           static_cast<double>(checkpoint.config.parameter_count());
  for (const kernels::Variant& variant : kernels::variants()) {
    if (variant.table != nullptr) result.compiled_in.emplace_back(variant.name);
    if (variant.supported) result.cpu_supports.emplace_back(variant.name);
  }
  result.in_use = kernels::select("auto").name;
  return result;
}

Json tensors_json(const TensorSource& tensors) {
  Json list = Json::array();
  for (const auto& [name, tensor] : tensors.all()) {
    list.push_back({{"name", replace_invalid_utf8(tensor.name)},
                    {"format", to_string(tensor.format)},
                    {"shape", tensor.shape},
                    {"bytes", tensor.bytes()}});
  }
  return list;
}

Json to_json(const Inspection& seen, bool with_tensors) {
  const ModelConfig& config = seen.checkpoint->config;
  Json layers = Json::array();
  for (std::size_t l = 0; l < config.layers.size(); ++l) {
    const LayerConfig& layer = config.layers[l];
    layers.push_back({{"layer", l},
                      {"n_heads", layer.n_heads},
                      {"n_kv_heads", layer.n_kv_heads},
                      {"ffn_dim", layer.ffn_dim},
                      {"parameters", config.layer_parameter_count(l)}});
  }
  Json kv = Json::object();
  for (const KvType type : kKvTypes) kv[to_string(type)] = kv_bytes(config, type);
  Json object{{"path", replace_invalid_utf8(seen.folder.string())},
              {"name", replace_invalid_utf8(config.name)},
              {"config",
               {{"vocab_size", config.vocab_size},
                {"model_dim", config.model_dim},
                {"head_dim", config.head_dim},
                {"n_layers", config.layers.size()},
                {"max_context", config.max_context},
                {"rope_base", config.rope_base},
                {"norm_eps", config.norm_eps},
                {"qk_norm", config.qk_norm},
                {"tied_head", config.tied_head},
                {"glu", config.glu},
                {"bos_id", config.bos_id},
                {"eos_id", config.eos_id}}},
              {"layers", std::move(layers)},
              {"parameters", config.parameter_count()},
              {"formats", seen.formats},
              {"bits_per_weight", seen.bits_per_weight},
              {"memory", {{"weight_bytes", seen.weight_bytes}, {"kv_cache_bytes", std::move(kv)}}},
              {"cpu",
               {{"supports", seen.cpu_supports},
                {"compiled_in", seen.compiled_in},
                {"in_use", seen.in_use}}}};
  if (with_tensors) object["tensors"] = tensors_json(seen.checkpoint->tensors);
  return object;
}

std::string layer_table(const ModelConfig& config) {
  std::string text = fmt::format("\n{:>5}  {:>11}  {:>8}  {:>9}  {:>10}\n", "layer", "query heads",
                                 "kv heads", "ffn width", "parameters");
  for (std::size_t l = 0; l < config.layers.size(); ++l) {
    const LayerConfig& layer = config.layers[l];
    text += fmt::format("{:>5}  {:>11}  {:>8}  {:>9}  {:>10}\n", l, layer.n_heads, layer.n_kv_heads,
                        layer.ffn_dim, format_count(config.layer_parameter_count(l)));
  }
  return text;
}

std::string tensor_table(const TensorSource& tensors) {
  std::string text = "\ntensors\n";
  for (const auto& [name, tensor] : tensors.all()) {
    text += fmt::format("  {:<55}  {:<7}  {}\n", tensor.name, to_string(tensor.format),
                        fmt::join(tensor.shape, " x "));
  }
  return text;
}

std::string to_text(const Inspection& seen, bool with_tensors) {
  const ModelConfig& config = seen.checkpoint->config;
  std::string formats;
  for (const auto& [format, count] : seen.formats) {
    formats += fmt::format("{}{} ({} tensors)", formats.empty() ? "" : ", ", format, count);
  }
  std::string kv;
  for (const KvType type : kKvTypes) {
    kv += fmt::format("{}{} as {}", kv.empty() ? "" : ", ", format_bytes(kv_bytes(config, type)),
                      to_string(type));
  }
  std::string text =
      fmt::format("model        {}\n", config.name) +
      fmt::format("path         {}\n", seen.folder.string()) +
      fmt::format("parameters   {} ({})\n", format_count(config.parameter_count()),
                  config.parameter_count()) +
      fmt::format("format       {}, {:.2f} bits a weight\n", formats, seen.bits_per_weight) +
      fmt::format("layers       {}, model width {}, head width {}\n", config.layers.size(),
                  config.model_dim, config.head_dim) +
      fmt::format("vocabulary   {} (BOS {}, EOS {}), head {}\n", config.vocab_size, config.bos_id,
                  config.eos_id, config.tied_head ? "tied to the embedding" : "of its own") +
      fmt::format("context      {} positions, RoPE base {}\n", config.max_context,
                  config.rope_base) +
      fmt::format("norms        RMSNorm, eps {}, query and key heads {}\n", config.norm_eps,
                  config.qk_norm ? "normalised" : "as they are") +
      fmt::format("feed-forward {}\n", config.glu ? "SwiGLU" : "SiLU") +
      fmt::format("memory       {} for weights; keys and values at full context {}\n",
                  format_bytes(seen.weight_bytes), kv) +
      fmt::format("CPU          can run {}; compiled in {}; in use {}\n",
                  fmt::join(seen.cpu_supports, ", "), fmt::join(seen.compiled_in, ", "),
                  seen.in_use);
  text += layer_table(config);
  if (with_tensors) text += tensor_table(seen.checkpoint->tensors);
  return text;
}

int run_inspect(const InspectOptions& options) {
  set_up_log(options.log);
  const auto folder = locate_model(options.model, kBundledModel);
  const std::string name = folder.string();
  const MappedFileGuard guard(name.c_str());
  const Checkpoint checkpoint = open_checkpoint(folder);
  for (const std::string& warning : checkpoint.warnings) spdlog::warn("{}", warning);
  const Inspection seen = inspect(folder, checkpoint);
  Output output;
  if (options.json) {
    output.line(to_json(seen, options.tensors).dump());
  } else {
    output.write(to_text(seen, options.tensors));
  }
  return kExitDone;
}

}  // namespace

Command add_inspect(CLI::App& program) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* app = program.add_subcommand("inspect", "Show what a model folder holds");
  app->add_flag("--tensors", options->tensors, "List the tensors too");
  app->add_flag("--json", options->json, "Print one JSON object");
  add_model_option(*app, options->model);
  add_log_options(*app, options->log);
  app->footer("Example:\n  openelm inspect -m ./OpenELM-270M --tensors");
  return {app, [options] { return run_inspect(*options); }};
}

}  // namespace openelm::cli

#include "checkpoint/weight_files.h"

#include <algorithm>
#include <map>

#include <openelm/error.h>

#include "checkpoint/json_text.h"
#include "checkpoint/message_text.h"

namespace openelm {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kFileName = "model.safetensors";
constexpr const char* kMlxFileName = "weights.safetensors";

/// Whether the folder lists the name: a dangling link counts, and is reported when it is opened.
bool lists(const fs::path& folder, const char* name) {
  std::error_code error;
  return fs::exists(fs::symlink_status(folder / name, error));
}

/// A shard must lie in the folder itself.
void check_shard_name(const fs::path& index, const std::string& name) {
  const bool plain =
      !name.empty() && name != "." && name != ".." && std::ranges::none_of(name, [](char c) {
        return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
      });
  if (!plain) {
    throw Error(index.string() + ": shard " + in_quotes(name) + " is not a plain file name");
  }
}

/// Tensor names of every shard.
using ShardMap = std::map<std::string, std::vector<std::string>>;

ShardMap read_index(const fs::path& path) {
  const json index = read_json_file(path);
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object() || weight_map->empty()) {
    throw Error(path.string() + ": \"weight_map\" must be an object from tensor names to files");
  }
  ShardMap shards;
  for (const auto& [tensor, file] : weight_map->items()) {
    if (!file.is_string()) {
      throw Error(path.string() + ": weight_map entry " + in_quotes(tensor) +
                  " is not a file name");
    }
    const auto& name = file.get_ref<const std::string&>();
    check_shard_name(path, name);
    shards[name].push_back(tensor);
  }
  return shards;
}

std::vector<StoredTensor> open_file(WeightFiles& weights, const fs::path& path) {
  const MappedFile& file = *weights.files.emplace_back(std::make_unique<MappedFile>(path));
  std::vector<StoredTensor> tensors;
  for (SafetensorsEntry& entry : parse_safetensors(file.bytes(), path.string())) {
    tensors.push_back({std::move(entry), &file});
  }
  return tensors;
}

void open_shard(WeightFiles& weights, const fs::path& path,
                const std::vector<std::string>& listed) {
  if (!lists(path.parent_path(), path.filename().c_str())) {
    throw Error(path.string() + ": this shard is missing, but " + kIndexName + " names it");
  }
  std::map<std::string, StoredTensor> found;
  for (StoredTensor& tensor : open_file(weights, path)) {
    found.emplace(tensor.entry.name, std::move(tensor));
  }
  for (const std::string& name : listed) {
    auto node = found.extract(name);
    if (node.empty()) {
      throw Error(path.string() + ": tensor " + in_quotes(name) + " is not in this shard, but " +
                  kIndexName + " says so: index and shards do not belong together");
    }
    weights.tensors.push_back(std::move(node.mapped()));
  }
  for (const auto& entry : found) weights.unlisted.push_back(entry.first);
}

}  // namespace

std::string place_of(const StoredTensor& tensor) {
  return tensor.file->path().string() + ": tensor " + in_quotes(tensor.entry.name);
}

void fail_at(const StoredTensor& tensor, const std::string& what) {
  throw Error(place_of(tensor) + " " + what);
}

WeightFiles open_weight_files(const fs::path& folder) {
  WeightFiles weights;
  if (lists(folder, kIndexName)) {
    weights.origin = folder / kIndexName;
    for (const auto& [name, tensors] : read_index(weights.origin)) {
      open_shard(weights, folder / name, tensors);
    }
    return weights;
  }
  for (const char* name : {kFileName, kMlxFileName}) {
    if (!lists(folder, name)) continue;
    weights.origin = folder / name;
    weights.tensors = open_file(weights, weights.origin);
    return weights;
  }
  throw Error(folder.string() + ": no weights in this folder: looked for " + kIndexName + ", " +
              kFileName + " and " + kMlxFileName);
}

}  // namespace openelm

#include "cli/batch_resume.h"

#include <fstream>
#include <functional>

#include <openelm/error.h>
#include <openelm/version.h>

#include "base/atomic_file.h"
#include "checkpoint/json_text.h"

namespace openelm::cli {
namespace {

using Json = nlohmann::json;

std::size_t id_hash(const Json& id) { return std::hash<std::string>{}(id.dump()); }

}  // namespace

FinishedRecords::FinishedRecords(const std::filesystem::path& file) : name_(file.string()) {
  std::ifstream in(file, std::ios::binary);
  std::string line;
  std::size_t number = 0;
  while (std::getline(in, line) && !in.eof()) {  // a last line without an end was cut off
    const std::string where = name_ + ": line " + std::to_string(++number);
    const Json record = parse_json_object(line, where);
    if (!record.contains("id") || !record.contains("index") ||
        !record["index"].is_number_unsigned()) {
      throw Error(where + ": not a record of an output of batch: \"id\" or \"index\" is missing");
    }
    if (!ids_.emplace(record["index"].get<std::uint64_t>(), id_hash(record["id"])).second) {
      throw Error(where + ": index " + record["index"].dump() + " is there twice");
    }
    if (record.contains("error")) ++failed_;
    whole_bytes_ += line.size() + 1;
  }
}

bool FinishedRecords::contains(const BatchRecord& record) const {
  const auto found = ids_.find(record.index);
  if (found == ids_.end()) return false;
  if (found->second != id_hash(record.id)) {
    throw Error("--resume: record " + std::to_string(record.index) + " (line " +
                std::to_string(record.line) + " of the input) has the id " + record.id.dump() +
                ", but another one in " + name_ + ": the input has changed");
  }
  return true;
}

std::filesystem::path run_header_path(const std::filesystem::path& output) {
  return output.string() + ".run.json";
}

void write_run_header(const std::filesystem::path& output, const RunHeader& header) {
  const nlohmann::ordered_json file = {
      {"openelm", kVersion}, {"seed", header.seed}, {"settings", header.settings}};
  write_file_atomically(run_header_path(output), file.dump(2) + "\n");
}

void continue_run(const std::filesystem::path& output, std::optional<std::uint64_t> seed,
                  RunHeader& header) {
  const std::filesystem::path path = run_header_path(output);
  if (!std::filesystem::exists(path)) {
    throw Error("--resume: " + path.string() +
                ", which says how the output was begun, is missing; --force begins anew");
  }
  const Json before = read_json_file(path);
  if (!before.contains("settings") || !before["settings"].is_object() || !before.contains("seed") ||
      !before["seed"].is_number_unsigned()) {
    throw Error(path.string() +
                ": not the header of a batch run: \"settings\" or \"seed\" is "
                "missing");
  }
  for (const auto& [name, now] : header.settings.items()) {
    const Json& then = before["settings"].contains(name) ? before["settings"][name] : Json();
    if (then != Json(now)) {
      throw Error("--resume: " + output.string() + " was begun with " + name + " " + then.dump() +
                  ", now it is " + now.dump() + "; --force begins anew");
    }
  }
  header.seed = before["seed"].get<std::uint64_t>();
  if (seed && *seed != header.seed) {
    throw Error("--resume: " + output.string() + " was begun with seed " +
                std::to_string(header.seed) + ", now it is " + std::to_string(*seed) +
                "; --force begins anew");
  }
}

}  // namespace openelm::cli

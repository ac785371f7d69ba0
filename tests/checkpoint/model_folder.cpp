#include "checkpoint/model_folder.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <stdlib.h>

namespace openelm::test {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string name = (fs::temp_directory_path() / "openelm-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
  // A new file: some file systems wait for the disk when an old one is truncated and rewritten.
  fs::remove(path);
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::string length_field(std::uint64_t length) {
  std::string field;
  for (int i = 0; i < 8; ++i) field += static_cast<char>((length >> (8 * i)) & 0xFF);
  return field;
}

std::string assemble(const std::string& header, const std::string& data) {
  return length_field(header.size()) + header + data;
}

Safetensors Safetensors::parse(const std::string& bytes) {
  std::size_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return {OrderedJson::parse(bytes.substr(8, length)), bytes.substr(8 + length)};
}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> out;
  for (const auto& [name, fields] : header.items()) {
    if (name != "__metadata__") out.push_back(name);
  }
  std::ranges::sort(out, {}, [this](const std::string& name) {
    return header[name]["data_offsets"].get<std::vector<std::int64_t>>();
  });
  return out;
}

void Safetensors::append(const std::string& name, const std::string& dtype,
                         const std::vector<std::int64_t>& shape, std::size_t bytes) {
  header[name] = {
      {"dtype", dtype}, {"shape", shape}, {"data_offsets", {data.size(), data.size() + bytes}}};
  data.append(bytes, '\0');
}

Safetensors Safetensors::subset(const std::vector<std::string>& names) const {
  Safetensors out;
  for (const std::string& name : names) {
    OrderedJson fields = header[name];
    const auto begin = fields["data_offsets"][0].get<std::size_t>();
    const auto end = fields["data_offsets"][1].get<std::size_t>();
    fields["data_offsets"] = {out.data.size(), out.data.size() + end - begin};
    out.header[name] = fields;
    out.data += data.substr(begin, end - begin);
  }
  return out;
}

std::string Safetensors::bytes(char pad) const {
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, pad);
  return assemble(text, data);
}

ModelFolder ModelFolder::load(const std::string& name) {
  const fs::path folder = fs::path(OPENELM_TEST_DATA) / "ckpt" / name;
  return {OrderedJson::parse(read_file(folder / "config.json")),
          Safetensors::parse(read_file(folder / "model.safetensors"))};
}

void ModelFolder::write(const fs::path& folder, const std::string& weights_name) const {
  write_file(folder / "config.json", config.dump(1));
  write_file(folder / weights_name, weights.bytes());
}

OrderedJson ModelFolder::write_shards(const fs::path& folder) const {
  const std::vector<std::string> names = weights.names();
  const auto middle = names.begin() + static_cast<std::ptrdiff_t>(names.size() / 2);
  const std::vector<std::string> first(names.begin(), middle);
  const std::vector<std::string> second(middle, names.end());
  write_file(folder / "config.json", config.dump(1));
  write_file(folder / "a.safetensors", weights.subset(first).bytes());
  write_file(folder / "b.safetensors", weights.subset(second).bytes());
  OrderedJson index = {{"metadata", {{"total_size", weights.data.size()}}}};
  for (const std::string& name : first) index["weight_map"][name] = "a.safetensors";
  for (const std::string& name : second) index["weight_map"][name] = "b.safetensors";
  return index;
}

std::optional<std::string> error_of(const fs::path& folder) {
  try {
    open_checkpoint(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

void expect_error(const fs::path& folder, const std::vector<std::string>& words) {
  const auto error = error_of(folder);
  ASSERT_TRUE(error.has_value()) << "expected to be refused: " << folder;
  EXPECT_EQ(error->find('\n'), std::string::npos) << *error;
  for (const std::string& word : words) {
    EXPECT_NE(error->find(word), std::string::npos) << "no '" << word << "' in: " << *error;
  }
}

}  // namespace openelm::test

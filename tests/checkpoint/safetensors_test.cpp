// Broken and odd weight files: each is refused with a line that names the file and the fault, or
// opens, as real-world reports of such files ask for.

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/model_folder.h"

namespace openelm::test {
namespace {

struct Variant {
  std::string name;
  /// The bytes of model.safetensors, from those of the sound one.
  std::function<std::string(const Safetensors& sound)> make;
  /// Words of the message; none: the checkpoint opens.
  std::vector<std::string> words;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

std::string first(const Safetensors& file) { return file.names().front(); }
std::string last(const Safetensors& file) { return file.names().back(); }

/// A variant that differs in one tensor's description.
std::function<std::string(const Safetensors&)> edit(
    std::string (*which)(const Safetensors&), std::function<void(OrderedJson& fields)> change) {
  return [=](const Safetensors& sound) {
    Safetensors copy = sound;
    change(copy.header[which(sound)]);
    return copy.bytes();
  };
}

/// A variant that sets a field of the first or last tensor.
std::function<std::string(const Safetensors&)> set(std::string (*which)(const Safetensors&),
                                                   const char* field, OrderedJson value) {
  return edit(which, [=](OrderedJson& fields) { fields[field] = value; });
}

std::vector<Variant> file_size_variants() {
  return {
      {"control", [](auto& s) { return s.bytes(); }, {}},
      {"empty_file", [](auto&) { return ""; }, {"empty", "0 bytes"}},
      {"seven_bytes", [](auto& s) { return s.bytes().substr(0, 7); }, {"7 bytes", "too short"}},
      {"eight_bytes",
       [](auto& s) { return s.bytes().substr(0, 8); },
       {"8 bytes", "download it again"}},
      {"length_zero", [](auto& s) { return length_field(0) + s.bytes().substr(8); }, {"not JSON"}},
      {"length_one",
       [](auto& s) { return length_field(1) + s.bytes().substr(8); },
       {"not valid JSON"}},
      {"length_huge",
       [](auto& s) { return length_field(UINT64_MAX) + s.bytes().substr(8); },
       {"18446744073709551615", "download it again"}},
      {"length_wraps",
       [](auto& s) { return length_field(UINT64_MAX - 7) + s.bytes().substr(8); },
       {"18446744073709551608", "download it again"}},
      {"length_past_end",
       [](auto& s) { return length_field(s.bytes().size()) + s.bytes().substr(8); },
       {"bytes, but says that its header has", "download it again"}},
      {"length_short_by_one",
       [](auto& s) { return length_field(s.header.dump().size() - 1) + s.header.dump() + s.data; },
       {"not valid JSON"}},
      {"cut_in_header",
       [](auto& s) { return s.bytes().substr(0, 1000); },
       {"1000 bytes", "truncated"}},
      {"cut_in_data",
       [](auto& s) { return s.bytes().substr(0, s.bytes().size() - 1000); },
       {"bytes, but its header needs", "truncated", "download it again"}},
      {"cut_by_one_byte",
       [](auto& s) { return s.bytes().substr(0, s.bytes().size() - 1); },
       {"1783215 bytes", "needs 1783216", "truncated"}},
      {"no_data_at_all",
       [](auto& s) { return assemble(s.header.dump(), ""); },
       {"its header needs", "truncated"}},
      {"trailing_bytes",
       [](auto& s) { return s.bytes() + std::string(16, '\0'); },
       {"16 bytes after the last tensor", "download it again"}},
      {"odd_data_start",
       [](auto& s) {
         const std::string header = s.header.dump();
         return assemble(header + std::string(1 + header.size() % 2, ' '), s.data);
       },
       {}},
  };
}

std::vector<Variant> header_text_variants() {
  return {
      {"not_json",
       [](auto& s) { return assemble("hello world     ", s.data); },
       {"header is not JSON"}},
      {"json_list", [](auto& s) { return assemble("[]", s.data); }, {"header is not JSON"}},
      {"json_broken",
       [](auto& s) { return assemble("{\"a\":}", s.data); },
       {"not valid JSON", "column 6"}},
      {"json_unclosed", [](auto& s) { return assemble("{\"a\":{", s.data); }, {"not valid JSON"}},
      {"text_after_json",
       [](auto& s) { return assemble(s.header.dump() + "{}", s.data); },
       {"header: not valid JSON"}},
      {"nul_padding", [](auto& s) { return s.bytes('\0'); }, {"NUL at byte 3617"}},
      {"leading_space",
       [](auto& s) { return assemble(' ' + s.header.dump(), s.data); },
       {"header is not JSON"}},
      {"invalid_utf8",
       [](auto& s) { return assemble("{\"\xFF\xFE\":1}", s.data); },
       {"not valid JSON", "UTF-8"}},
      {"nan", [](auto& s) { return assemble("{\"a\":NaN}", s.data); }, {"not valid JSON"}},
      {"number_overflow",
       [](auto& s) { return assemble("{\"a\":1e999}", s.data); },
       {"not valid JSON"}},
      {"deep_lists",
       [](auto& s) { return assemble("{\"a\":" + std::string(2'000'000, '['), s.data); },
       {"nested deeper than 64"}},
      {"deep_objects",
       [](auto& s) {
         std::string text = "{\"a\":";
         for (int i = 0; i < 100'000; ++i) text += "{\"a\":";
         return assemble(text, s.data);
       },
       {"nested deeper than 64"}},
      {"web_page",
       [](auto&) { return "<!doctype html><html><body>Please log in</body></html>"; },
       {"looks like a web page"}},
      {"web_page_in_capitals", [](auto&) { return "\n <HTML><head>"; }, {"looks like a web page"}},
      {"lfs_pointer",
       [](auto&) {
         return "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, '0') +
                "\nsize 123456\n";
       },
       {"looks like a Git LFS pointer"}},
      {"repeated_key",
       [](auto& s) {
         std::string text = s.header.dump();
         text.back() = ',';
         return assemble(text + OrderedJson(first(s)).dump() + ":{}}", s.data);
       },
       {"repeated key \"transformer.token_embeddings.weight\""}},
      {"repeated_inner_key",
       [](auto& s) { return assemble("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F16\"}}", s.data); },
       {"repeated key \"dtype\""}},
      {"metadata",
       [](auto& s) {
         Safetensors copy = s;
         copy.header["__metadata__"] = {{"format", "mlx"}, {"note", std::string(2000, 'x')}};
         return copy.bytes();
       },
       {}},
      {"metadata_not_object",
       [](auto& s) {
         Safetensors copy = s;
         copy.header["__metadata__"] = 7;
         return copy.bytes();
       },
       {"__metadata__"}},
      {"no_tensors",
       [](auto&) { return assemble("{}", ""); },
       {"token_embeddings.weight", "no tensors"}},
  };
}

std::vector<Variant> offset_variants() {
  return {
      {"overlap",
       [](auto& s) {
         Safetensors copy = s;
         const auto names = s.names();
         const auto offsets = [&](std::size_t i, std::size_t end) {
           return s.header[names[i]]["data_offsets"][end].template get<std::size_t>();
         };
         const std::size_t size = offsets(1, 1) - offsets(1, 0);
         copy.header[names[1]]["data_offsets"] = {offsets(0, 0), offsets(0, 0) + size};
         return copy.bytes();
       },
       {"overlap", "token_embeddings.weight", "qkv_proj.weight"}},
      {"overlap_by_one_byte",
       [](auto& s) {
         Safetensors copy = s;
         for (auto& offset : copy.header[last(s)]["data_offsets"]) {
           offset = offset.template get<std::int64_t>() - 1;
         }
         return copy.bytes();
       },
       {"overlap", "transformer.norm.weight"}},
      {"gap",
       [](auto& s) {
         Safetensors copy = s;
         for (auto& offset : copy.header[last(s)]["data_offsets"]) {
           offset = offset.template get<std::int64_t>() + 64;
         }
         copy.data.append(64, '\0');
         return copy.bytes();
       },
       {"belong to no tensor", "transformer.norm.weight"}},
      {"gap_at_start",
       [](auto& s) {
         Safetensors copy = s;
         for (const auto& name : s.names()) {
           for (auto& offset : copy.header[name]["data_offsets"]) {
             offset = offset.template get<std::int64_t>() + 8;
           }
         }
         copy.data.insert(0, 8, '\0');
         return copy.bytes();
       },
       {"bytes 0 to 8", "belong to no tensor"}},
      {"reversed",
       edit(first, [](OrderedJson& f) { std::swap(f["data_offsets"][0], f["data_offsets"][1]); }),
       {"token_embeddings.weight", "data_offsets", "before the beginning"}},
      {"past_end",
       edit(last,
            [](OrderedJson& f) {
              f["data_offsets"][1] = f["data_offsets"][1].get<std::int64_t>() + (INT64_C(1) << 40);
            }),
       {"transformer.norm.weight", "data_offsets"}},
      {"negative",
       set(last, "data_offsets", {-8, 216}),
       {"transformer.norm.weight", "data_offsets"}},
      {"wrapping",
       set(last, "data_offsets", {UINT64_MAX - 7, 8}),
       {"transformer.norm.weight", "data_offsets"}},
      {"past_64_bits",
       [](auto& s) {
         return assemble(
             "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":"
             "[0,99999999999999999999999]}}",
             s.data);
       },
       {"\"a\"", "data_offsets"}},
      {"fractional", set(last, "data_offsets", {0.5, 224}), {"data_offsets"}},
      {"one_offset", set(last, "data_offsets", {0}), {"data_offsets"}},
      {"three_offsets", set(last, "data_offsets", {0, 1, 2}), {"data_offsets"}},
      {"offsets_as_text", set(last, "data_offsets", "0, 224"), {"data_offsets"}},
      {"no_offsets",
       edit(last, [](OrderedJson& f) { f.erase("data_offsets"); }),
       {"transformer.norm.weight", "data_offsets"}},
  };
}

std::vector<Variant> type_and_shape_variants() {
  std::vector<Variant> variants;
  for (const char* dtype : {"F64", "I32", "F8_E4M3", "f16", "BF17", "U16", ""}) {
    variants.push_back({"dtype_" + std::string(*dtype != '\0' ? dtype : "none"),
                        set(first, "dtype", dtype),
                        {"transformer.token_embeddings.weight", '"' + std::string(dtype) + '"',
                         "F32, F16 or BF16"}});
  }
  const std::vector<Variant> more = {
      {"dtype_of_other_size", set(first, "dtype", "F32"), {"token_embeddings", "F32", "139328"}},
      {"dtype_number", set(first, "dtype", 16), {"token_embeddings", "dtype"}},
      {"no_dtype",
       edit(first, [](OrderedJson& f) { f.erase("dtype"); }),
       {"token_embeddings", "dtype"}},
      {"description_is_a_number",
       [](auto& s) {
         Safetensors copy = s;
         copy.header[last(s)] = 5;
         return copy.bytes();
       },
       {"transformer.norm.weight", "not a JSON object"}},
      {"sides_swapped",
       [](auto& s) {
         Safetensors copy = s;
         auto& shape = copy.header["transformer.layers.0.attn.qkv_proj.weight"]["shape"];
         std::swap(shape[0], shape[1]);
         return copy.bytes();
       },
       {"transformer.layers.0.attn.qkv_proj.weight", "[112, 384]", "[384, 112]"}},
      {"extra_axis",
       set(last, "shape", {1, 112}),
       {"transformer.norm.weight", "[1, 112]", "[112]"}},
      {"twelve_axes",
       set(last, "shape", {112, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
       {"transformer.norm.weight", "[112, 1, 1, 1, 1, 1, 1, 1, ...]", "[112]"}},
      {"flattened",
       set(first, "shape", {311 * 112}),
       {"token_embeddings", "[34832]", "[311, 112]"}},
      {"scalar",
       set(last, "shape", OrderedJson::array()),
       {"transformer.norm.weight", "needs 2 bytes"}},
      {"shape_overflow",
       set(first, "shape", {INT64_C(1) << 62, 4}),
       {"token_embeddings", "overflow"}},
      {"shape_overflow_to_zero",
       set(first, "shape", {INT64_C(1) << 32, INT64_C(1) << 32}),
       {"token_embeddings", "overflow"}},
      {"shape_negative", set(first, "shape", {-311, 112}), {"token_embeddings", "shape"}},
      {"shape_past_63_bits", set(first, "shape", {UINT64_MAX, 1}), {"token_embeddings", "shape"}},
      {"shape_fractional", set(first, "shape", {311.5, 112}), {"token_embeddings", "shape"}},
      {"shape_as_text", set(first, "shape", "311x112"), {"token_embeddings", "shape"}},
      {"no_shape",
       edit(first, [](OrderedJson& f) { f.erase("shape"); }),
       {"token_embeddings", "shape"}},
  };
  variants.insert(variants.end(), more.begin(), more.end());
  return variants;
}

std::vector<Variant> name_variants() {
  return {
      {"missing_last",
       [](auto& s) {
         auto names = s.names();
         names.pop_back();
         return s.subset(names).bytes();
       },
       {"transformer.norm.weight", "missing"}},
      {"missing_in_layer",
       [](auto& s) {
         auto names = s.names();
         std::erase(names, "transformer.layers.2.attn.k_norm.weight");
         return s.subset(names).bytes();
       },
       {"transformer.layers.2.attn.k_norm.weight", "[64]", "missing"}},
      {"prefixed",
       [](auto& s) {
         Safetensors copy{OrderedJson::object(), s.data};
         for (const auto& name : s.names()) copy.header["model." + name] = s.header[name];
         return copy.bytes();
       },
       {"token_embeddings.weight", "missing", "\"model.transformer.token_embeddings.weight\"",
        "31 more"}},
      {"two_spellings",
       [](auto& s) {
         Safetensors copy = s;
         copy.append("norm.weight", "BF16", {112}, 224);
         return copy.bytes();
       },
       {"\"norm.weight\"", "\"transformer.norm.weight\"", "same weights"}},
      {"name_with_line_breaks",
       [](auto& s) {
         Safetensors copy = s;
         copy.append("a\nb\x1b[31m", "F32", {7}, 4);
         return copy.bytes();
       },
       {"\"a\\x0Ab\\x1B[31m\""}},
      {"name_very_long",
       [](auto& s) {
         Safetensors copy = s;
         copy.append(std::string(100'000, 'n'), "F32", {7}, 4);
         return copy.bytes();
       },
       {"nnn...\": F32 of shape [7]"}},
      {"more_layers_than_configured",
       [](auto& s) {
         Safetensors copy = s;
         copy.append("transformer.layers.4.attn_norm.weight", "BF16", {112}, 224);
         return copy.bytes();
       },
       {"transformer.layers.4.attn_norm.weight", "num_transformer_layers", "4"}},
      {"extra_with_bytes_missing",
       [](auto& s) {
         Safetensors copy = s;
         copy.append("extra.lie", "BF16", {1}, 0);
         return copy.bytes();
       },
       {"extra.lie", "needs 2 bytes", "give 0"}},
  };
}

class WeightFile : public testing::TestWithParam<Variant> {};

TEST_P(WeightFile, IsRefusedOrOpened) {
  const ModelFolder model = ModelFolder::load();
  const TempFolder folder;
  model.write(folder.path());
  write_file(folder / "model.safetensors", GetParam().make(model.weights));
  if (GetParam().words.empty()) {
    EXPECT_EQ(error_of(folder.path()), std::nullopt);
  } else {
    std::vector<std::string> words = GetParam().words;
    words.push_back((folder / "model.safetensors").string() + ": ");
    expect_error(folder.path(), words);
  }
}

TEST(WeightFileHeader, IsBounded) {
  const TempFolder folder;
  ModelFolder::load().write(folder.path());
  write_file(folder / "model.safetensors", length_field(100'000'001) + "{}");
  std::filesystem::resize_file(folder / "model.safetensors", 100'000'009);
  expect_error(folder.path(), {"model.safetensors", "header of 100000001 bytes"});
}

std::string name_of(const testing::TestParamInfo<Variant>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Size, WeightFile, testing::ValuesIn(file_size_variants()), name_of);
INSTANTIATE_TEST_SUITE_P(Header, WeightFile, testing::ValuesIn(header_text_variants()), name_of);
INSTANTIATE_TEST_SUITE_P(Offsets, WeightFile, testing::ValuesIn(offset_variants()), name_of);
INSTANTIATE_TEST_SUITE_P(Shapes, WeightFile, testing::ValuesIn(type_and_shape_variants()), name_of);
INSTANTIATE_TEST_SUITE_P(Names, WeightFile, testing::ValuesIn(name_variants()), name_of);

}  // namespace
}  // namespace openelm::test

// Quantised folders: what is in them, that they are read back as the same weights, and that nothing
// is left of one that fails.

#include "runtime/quantize_folder.h"

#include <atomic>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/model_folder.h"
#include "model/weights.h"

namespace openelm::test {
namespace {

namespace fs = std::filesystem;

const fs::path kTiny = fs::path(OPENELM_MODELS) / "openelm-tiny";
const fs::path kCheckpoints = fs::path(OPENELM_TEST_DATA) / "ckpt";

class QuantizeFolder : public testing::Test {
 protected:
  std::optional<QuantizedFolder> write(const fs::path& in, const QuantizeOptions& options,
                                       bool replace = false) {
    return quantize_folder(in, out_, {.quantize = options, .replace = replace}, pool_);
  }

  std::string error_of_writing(const fs::path& in, const QuantizeOptions& options = {4, 32, 8}) {
    return message_of([&] { write(in, options); });
  }

  std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator());
  }

  void expect_nothing_left() const { EXPECT_EQ(entries(), 0); }

  TempFolder folder_;
  const fs::path out_ = folder_ / "out";
  ThreadPool pool_{3};
};

TEST_F(QuantizeFolder, ReadsBackAsTheWeightsThatLoadingQuantises) {
  // All source types, tied and untied heads, one file and shards, rows and widths that fit nothing.
  for (const fs::path& in :
       {kTiny, kCheckpoints / "tiny-mha", kCheckpoints / "tiny-gqa4", kCheckpoints / "tiny-mqa"}) {
    for (const QuantizeOptions& options :
         {QuantizeOptions{4, 32, 8}, QuantizeOptions{8, 64, 8}, QuantizeOptions{8, 128, 4}}) {
      SCOPED_TRACE(in.string() + " " + std::to_string(options.bits));
      const Checkpoint source = open_checkpoint(in);
      if (in == kCheckpoints / "tiny-mha" && options.group_size > 32) continue;  // nothing fits
      ASSERT_TRUE(write(in, options, true));
      const Weights direct = load_weights(source, pool_, {}, options);
      const Weights stored = load_weights(open_checkpoint(out_), pool_, {});
      ASSERT_EQ(direct.matrix_storage.size(), stored.matrix_storage.size());
      EXPECT_EQ(std::memcmp(direct.matrix_storage.data(), stored.matrix_storage.data(),
                            direct.matrix_storage.size()),
                0);
      EXPECT_EQ(entries(), 1);
    }
  }
}

TEST_F(QuantizeFolder, AnyNumberOfThreadsWritesTheSame) {
  write(kTiny, {4, 64, 8});
  const std::string first = read_file(out_ / "model.safetensors");
  ThreadPool one(1);
  quantize_folder(kTiny, out_, {.quantize = {4, 64, 8}, .replace = true}, one);
  EXPECT_EQ(read_file(out_ / "model.safetensors"), first);
}

TEST_F(QuantizeFolder, ConfigurationIsWhatMlxLmWrites) {
  ModelFolder model = ModelFolder::load("tiny-mha");  // 96, 80, 160, 240, ... columns
  model.config["a_note"] = "kept";
  const fs::path in = folder_ / "in";
  fs::create_directory(in);
  model.write(in);
  std::string text = read_file(in / "config.json");
  text.replace(text.find("\"kept\""), 6, "[NaN, -Infinity, \"kept\"]");
  write_file(in / "config.json", text);
  ASSERT_TRUE(write(in, {4, 32, 8}));
  std::string written = read_file(out_ / "config.json");
  for (const char* number : {"NaN", "-Infinity"}) {
    const std::size_t at = written.find(number);
    ASSERT_NE(at, std::string::npos) << number;
    written.replace(at, std::strlen(number), "0");
  }
  const OrderedJson config = OrderedJson::parse(written);
  EXPECT_EQ(config["quantization"], config["quantization_config"]);
  const OrderedJson& quantization = config["quantization"];
  EXPECT_EQ(quantization["bits"], 4);
  EXPECT_EQ(quantization["group_size"], 32);
  EXPECT_EQ(quantization["mode"], "affine");
  EXPECT_EQ(quantization["lm_head"]["bits"], 8);
  EXPECT_EQ(quantization["lm_head"]["group_size"], 32);
  EXPECT_EQ(quantization["transformer.token_embeddings"]["bits"], 8);
  EXPECT_EQ(quantization["transformer.layers.0.attn.out_proj"], false);
  EXPECT_FALSE(quantization.contains("transformer.layers.1.attn.out_proj"));
  for (const auto& [field, value] : model.config.items()) {
    if (field != "a_note") {
      EXPECT_EQ(config[field], value) << field;
    }
  }
}

TEST_F(QuantizeFolder, SummaryAddsUp) {
  const auto summary = write(kTiny, {4, 64, 8});
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->body.bits_per_weight(), 4.5);
  EXPECT_EQ(summary->head.bits_per_weight(), 8.5);
  EXPECT_EQ(summary->head.weights, 4096 * 192);
  EXPECT_EQ(summary->quantized, 33U);
  EXPECT_EQ(summary->kept.size(), 33U);
  EXPECT_FALSE(summary->note);
  EXPECT_EQ(summary->bytes_in, 2U * 3591872);
  EXPECT_EQ(summary->bytes_out, fs::file_size(out_ / "model.safetensors"));
}

TEST_F(QuantizeFolder, FilesOfTheTokenizerGoAlong) {
  write(kTiny, {4, 64, 8});
  for (const char* name : {"tokenizer.model", "tokenizer_config.json", "generation_config.json"}) {
    EXPECT_EQ(read_file(out_ / name), read_file(kTiny / name)) << name;
  }
  EXPECT_FALSE(fs::exists(out_ / "README.md"));
}

TEST_F(QuantizeFolder, PaddingRowsAreLeftOut) {
  ModelFolder model = ModelFolder::load("tiny-mha");
  model.config["vocab_size"] = 250;
  const fs::path in = folder_ / "in";
  fs::create_directory(in);
  model.write(in);
  const auto summary = write(in, {8, 32, 8});
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->warnings.size(), 2U);
  EXPECT_TRUE(open_checkpoint(out_).warnings.empty());
}

TEST_F(QuantizeFolder, CancellingLeavesNothing) {
  std::atomic<bool> cancel = false;
  std::uint64_t last = 0;
  const QuantizeFolderOptions options{.quantize = {4, 64, 8},
                                      .progress =
                                          [&](std::uint64_t done, std::uint64_t total) {
                                            EXPECT_GT(done, last);
                                            EXPECT_LE(done, total);
                                            last = done;
                                            cancel = done > total / 2;
                                          },
                                      .cancel = &cancel};
  EXPECT_FALSE(quantize_folder(kTiny, out_, options, pool_));
  EXPECT_GT(last, 0U);
  expect_nothing_left();
}

TEST_F(QuantizeFolder, WeightsThatCannotBeQuantisedLeaveNothing) {
  ModelFolder model = ModelFolder::load("tiny-mha");
  const std::string name = "transformer.layers.2.ffn.proj_1.weight";
  const auto begin = model.weights.header[name]["data_offsets"][0].get<std::size_t>();
  model.weights.data.replace(begin + (5 * 96 + 11) * 4, 4, std::string("\0\0\xC0\x7F", 4));
  const TempFolder in;
  model.write(in.path());
  const std::string error = error_of_writing(in.path());
  EXPECT_NE(error.find(name), std::string::npos) << error;
  EXPECT_NE(error.find("row 5, column 11 is NaN"), std::string::npos) << error;
  expect_nothing_left();
}

TEST_F(QuantizeFolder, DestinationsAreGuarded) {
  const auto refused = [&](const std::string& words) {
    const std::string error = error_of_writing(kCheckpoints / "tiny-mha");
    EXPECT_NE(error.find(words), std::string::npos) << error;
  };
  write_file(out_, "a file");
  refused("is a file");
  fs::remove(out_);
  fs::create_directory(out_);
  write_file(out_ / "letter.txt", "precious");
  refused("holds other things than a model");
  EXPECT_TRUE(fs::exists(out_ / "letter.txt"));
  write_file(out_ / "config.json", "{}");
  refused("exists already, --force replaces it");
  EXPECT_TRUE(fs::exists(out_ / "letter.txt"));
  ASSERT_TRUE(write(kCheckpoints / "tiny-mha", {4, 32, 8}, true));
  EXPECT_FALSE(fs::exists(out_ / "letter.txt"));
  EXPECT_EQ(entries(), 1);
}

TEST_F(QuantizeFolder, AnEmptyFolderMayBeFilled) {
  fs::create_directory(out_);
  EXPECT_TRUE(write(kCheckpoints / "tiny-mha", {4, 32, 8}));
  EXPECT_TRUE(fs::exists(out_ / "config.json"));
}

TEST_F(QuantizeFolder, TheSourceIsNeverReplaced) {
  ModelFolder::load("tiny-mha").write(folder_.path());
  fs::create_directory_symlink(folder_.path(), folder_ / "link");
  for (const fs::path& out :
       {folder_.path(), folder_.path() / "", folder_ / "link", folder_.path().parent_path()}) {
    EXPECT_THROW(
        quantize_folder(folder_.path(), out, {.quantize = {4, 32, 8}, .replace = true}, pool_),
        UsageError)
        << out;
  }
  EXPECT_FALSE(error_of(folder_.path()));
}

TEST_F(QuantizeFolder, NothingToQuantiseIsAnError) {
  const std::string error = error_of_writing(kCheckpoints / "tiny-mha", {4, 64, 8});
  EXPECT_NE(error.find("nothing to quantise"), std::string::npos) << error;
  EXPECT_NE(error.find("no multiple of 64"), std::string::npos) << error;
  expect_nothing_left();
}

}  // namespace
}  // namespace openelm::test

#include "runtime/model_fingerprint.h"

#include <gtest/gtest.h>

#include "checkpoint/model_folder.h"

namespace openelm {
namespace {

using test::ModelFolder;
using test::TempFolder;

TEST(ModelFingerprint, IsThatOfTheContentsNotOfThePlace) {
  const ModelFolder model = ModelFolder::load();
  const TempFolder a;
  const TempFolder b;
  model.write(a.path());
  model.write(b.path(), "weights.safetensors");
  const std::string fingerprint = model_fingerprint(a.path());
  EXPECT_EQ(fingerprint.size(), 64U);
  EXPECT_EQ(fingerprint.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(model_fingerprint(a.path()), fingerprint);
  EXPECT_EQ(model_fingerprint(b.path()), fingerprint);
}

TEST(ModelFingerprint, TellsConfigurationHeaderAndWeightsApart) {
  const ModelFolder model = ModelFolder::load();
  const TempFolder folder;
  model.write(folder.path());
  const std::string fingerprint = model_fingerprint(folder.path());

  ModelFolder other = model;
  other.config["note"] = 1;
  other.write(folder.path());
  EXPECT_NE(model_fingerprint(folder.path()), fingerprint);

  other = model;
  other.weights.header["__metadata__"]["note"] = "another";
  other.write(folder.path());
  EXPECT_NE(model_fingerprint(folder.path()), fingerprint);

  for (const bool at_end : {false, true}) {
    other = model;
    char& byte = at_end ? other.weights.data.back() : other.weights.data.front();
    byte = static_cast<char>(byte ^ 1);
    other.write(folder.path());
    EXPECT_NE(model_fingerprint(folder.path()), fingerprint) << at_end;
  }
}

TEST(ModelFingerprint, SamplesLargeFilesToTheirEnds) {
  const ModelFolder small = ModelFolder::load();
  ModelFolder model = small;
  model.weights.append("unused", "F32", {1 << 20}, std::size_t{4} << 20);
  const TempFolder folder;
  model.write(folder.path());
  const std::string fingerprint = model_fingerprint(folder.path());
  for (const std::size_t at : {std::size_t{0}, model.weights.data.size() - 1}) {
    ModelFolder other = model;
    other.weights.data[at] = static_cast<char>(other.weights.data[at] ^ 1);
    other.write(folder.path());
    EXPECT_NE(model_fingerprint(folder.path()), fingerprint) << at;
  }
}

TEST(ModelFingerprint, NamesWhatIsMissing) {
  const TempFolder folder;
  EXPECT_NE(test::message_of([&] { model_fingerprint(folder.path()); }).find("config.json"),
            std::string::npos);
}

}  // namespace
}  // namespace openelm

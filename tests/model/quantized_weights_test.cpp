// Weights quantised on the way into memory: the values, whoever packs them, and what is refused.

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/error.h>

#include "base/mapped_file.h"
#include "checkpoint/tensor_source.h"
#include "model/quantize_plan.h"
#include "model/weights.h"
#include "parallel/thread_pool.h"
#include "quant/pack.h"
#include "quant/quantize.h"

namespace openelm {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(OPENELM_MODELS) / "openelm-tiny";

std::string error_of_loading(const Checkpoint& checkpoint, const QuantizeOptions& options) {
  ThreadPool pool(2);
  try {
    load_weights(checkpoint, pool, {}, options);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// The same checkpoint, which must outlive the result, with another view for one of its tensors.
Checkpoint with_view(const Checkpoint& checkpoint, const std::string& name,
                     const TensorView& view) {
  auto tensors = checkpoint.tensors.all();
  tensors.at(name) = view;
  return {checkpoint.config, TensorSource(checkpoint.tensors.origin(), std::move(tensors), {}), {}};
}

class QuantizedWeights : public testing::TestWithParam<QuantizeOptions> {};

TEST_P(QuantizedWeights, RowsAreWhatTheQuantizerMakesOfThem) {
  const Checkpoint checkpoint = open_checkpoint(kFolder);
  ThreadPool pool(3);
  const Weights weights = load_weights(checkpoint, pool, {}, GetParam());
  const auto expect_rows = [&](const std::string& name, const PackedMatrix& packed, bool paired) {
    const TensorView& tensor = checkpoint.tensors.all().at(name);
    ASSERT_EQ(packed.format, planned_format(GetParam(), name, tensor)) << name;
    if (!packed.format.affine()) return;
    const auto k = static_cast<std::size_t>(packed.k);
    const RowMajor source{.format = tensor.format,
                          .data = tensor.data.data(),
                          .n_rows = static_cast<std::int32_t>(tensor.shape[0]),
                          .k = packed.k};
    const auto group = static_cast<std::size_t>(packed.format.group_size);
    std::vector<std::byte> data(k * static_cast<std::size_t>(packed.format.bits) / 8);
    std::vector<std::byte> scales(k / group * 2), biases(k / group * 2);
    std::vector<float> scale(k / group), bias(k / group), row(k);
    for (std::int32_t r = 0; r < source.n_rows; ++r) {
      ASSERT_FALSE(quantize_rows(source, {r, r + 1}, packed.format,
                                 {data.data(), scales.data(), biases.data()}));
      const auto groups = static_cast<std::int64_t>(k / group);
      widen(packed.format.type, scales.data(), groups, scale.data());
      widen(packed.format.type, biases.data(), groups, bias.data());
      // Gate and up tiles take turns.
      const std::int32_t half = source.n_rows / 2;
      const std::int32_t part = r % half;
      const std::int32_t at =
          paired ? part / kTileRows * 2 * kTileRows + (r < half ? 0 : kTileRows) + part % kTileRows
                 : r;
      unpack_row(packed, at, row.data());
      for (std::size_t i = 0; i < k; ++i) {
        const auto byte = std::to_integer<unsigned>(data[packed.format.bits == 8 ? i : i / 2]);
        const unsigned quant = packed.format.bits == 8 ? byte : byte >> (i % 2 * 4) & 15U;
        ASSERT_EQ(row[i], std::fma(static_cast<float>(quant), scale[i / group], bias[i / group]))
            << name << " [" << r << ", " << i << "]";
      }
    }
  };
  expect_rows("token_embeddings.weight", weights.embedding, false);
  for (const std::size_t l : {0U, 5U}) {
    const std::string layer = "layers." + std::to_string(l) + ".";
    expect_rows(layer + "attn.qkv_proj.weight", weights.layers[l].qkv, false);
    expect_rows(layer + "attn.out_proj.weight", weights.layers[l].out, false);
    expect_rows(layer + "ffn.proj_1.weight", weights.layers[l].up, true);
    expect_rows(layer + "ffn.proj_2.weight", weights.layers[l].down, false);
  }
}

TEST_P(QuantizedWeights, AnyNumberOfThreadsPacksTheSame) {
  const Checkpoint checkpoint = open_checkpoint(kFolder);
  ThreadPool one(1);
  ThreadPool five(5);
  const Weights a = load_weights(checkpoint, one, {}, GetParam());
  const Weights b = load_weights(checkpoint, five, {}, GetParam());
  ASSERT_EQ(a.matrix_storage.size(), b.matrix_storage.size());
  EXPECT_EQ(std::memcmp(a.matrix_storage.data(), b.matrix_storage.data(), a.matrix_storage.size()),
            0);
}

INSTANTIATE_TEST_SUITE_P(Options, QuantizedWeights,
                         testing::Values(QuantizeOptions{8, 32, 8}, QuantizeOptions{4, 64, 8},
                                         QuantizeOptions{4, 128, 4}),
                         [](const auto& info) {
                           return "q" + std::to_string(info.param.bits) + "g" +
                                  std::to_string(info.param.group_size);
                         });

TEST(QuantizePlan, WhatStaysIsNamed) {
  const Checkpoint checkpoint = open_checkpoint(kFolder);
  EXPECT_EQ(describe_kept({4, 64, 8}, checkpoint.tensors), std::nullopt);
  const auto kept = describe_kept({4, 128, 8}, checkpoint.tensors);
  ASSERT_TRUE(kept);
  EXPECT_NE(kept->find("of 33 matrices are not quantised"), std::string::npos) << *kept;
  EXPECT_NE(kept->find("no multiple of 128"), std::string::npos) << *kept;
  EXPECT_NE(kept->find("[192, 192]"), std::string::npos) << *kept;
  const auto& norms = checkpoint.tensors.all().at("norm.weight");
  EXPECT_EQ(planned_format({4, 64, 8}, "norm.weight", norms), norms.format);
}

TEST(QuantizePlan, NanIsNamedWithTensorAndRow) {
  const Checkpoint checkpoint = open_checkpoint(kFolder);
  const std::string name = "layers.2.ffn.proj_2.weight";
  TensorView view = checkpoint.tensors.all().at(name);
  std::vector<std::byte> bytes(view.data.begin(), view.data.end());
  const auto at = static_cast<std::size_t>(7 * view.shape[1] + 3) * 2;
  bytes[at] = std::byte{0xC0};
  bytes[at + 1] = std::byte{0x7F};
  view.data = bytes;
  const std::string error = error_of_loading(with_view(checkpoint, name, view), {4, 64, 8});
  EXPECT_NE(error.find("model.safetensors: tensor \"transformer.layers.2.ffn.proj_2.weight\""),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("row 7, column 3 is NaN or infinite"), std::string::npos) << error;
}

TEST(QuantizePlan, QuantisedModelsAreRefused) {
  const Checkpoint checkpoint = open_checkpoint(kFolder);
  const std::string name = "layers.2.ffn.proj_2.weight";
  TensorView view = checkpoint.tensors.all().at(name);
  view.format = {WeightType::bf16, 4, 64};
  const std::string error = error_of_loading(with_view(checkpoint, name, view), {4, 64, 8});
  EXPECT_NE(error.find("is quantised already (q4_g64)"), std::string::npos) << error;
}

TEST(QuantizePlan, OptionsAreChecked) {
  EXPECT_NE(error_of_loading(open_checkpoint(kFolder), {6, 64, 8}).find("got 6"),
            std::string::npos);
}

}  // namespace
}  // namespace openelm

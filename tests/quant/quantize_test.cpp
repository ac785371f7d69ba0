// Quantising: exact where it can be, never worse than plain rounding, clearly better on weights as
// models have them, the same bits everywhere.

#include "quant/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/error.h>

#include "base/float16.h"
#include "quant/quantized_format.h"

namespace openelm {
namespace {

constexpr WeightType kTypes[] = {WeightType::f32, WeightType::f16, WeightType::bf16};

std::vector<std::byte> store(WeightType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == WeightType::f32) {
      std::memcpy(&bytes[i * 4], &values[i], 4);
      continue;
    }
    const std::uint16_t bits =
        type == WeightType::f16 ? f32_to_f16(values[i]) : f32_to_bf16(values[i]);
    std::memcpy(&bytes[i * 2], &bits, 2);
  }
  return bytes;
}

std::vector<float> load(WeightType type, const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / size_of(type));
  widen(type, bytes.data(), static_cast<std::int64_t>(values.size()), values.data());
  return values;
}

float rounded(WeightType type, float value) { return load(type, store(type, {value}))[0]; }

/// A plain matrix and what it was quantised to.
struct Quantized {
  Quantized(WeightType type, const std::vector<float>& values, std::int32_t width,
            const QuantizeOptions& options)
      : stored(store(type, values)),
        weights(load(type, stored)),
        format(quantized_format(options, false, type, width)),
        source{.format = {.type = type},
               .data = stored.data(),
               .n_rows = static_cast<std::int32_t>(values.size()) / width,
               .k = width},
        data(values.size() * static_cast<std::size_t>(format.bits) / 8),
        scales(values.size() / group() * size_of(format.type)),
        biases(scales.size()) {
    fault = quantize_rows(source, {0, source.n_rows}, format,
                          {data.data(), scales.data(), biases.data()});
  }

  std::size_t group() const { return static_cast<std::size_t>(format.group_size); }

  std::size_t quant(std::size_t i) const {
    const auto byte = std::to_integer<std::size_t>(data[format.bits == 8 ? i : i / 2]);
    return format.bits == 8 ? byte : byte >> (i % 2 * 4) & 15;
  }

  std::vector<float> values() const {
    const std::vector<float> scale = load(format.type, scales);
    const std::vector<float> bias = load(format.type, biases);
    std::vector<float> out(weights.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = static_cast<float>(quant(i)) * scale[i / group()] + bias[i / group()];
    }
    return out;
  }

  std::vector<std::byte> stored;
  std::vector<float> weights;
  WeightFormat format;
  RowMajor source;
  std::vector<std::byte> data, scales, biases;
  std::optional<std::int64_t> fault;
};

double squared_error(const std::vector<float>& a, const std::vector<float>& b, std::size_t begin,
                     std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const double miss = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    sum += miss * miss;
  }
  return sum;
}

/// The plain way: the range cut into equal steps.
std::vector<float> round_to_range(const Quantized& q) {
  const float top = static_cast<float>((1 << q.format.bits) - 1);
  std::vector<float> out(q.weights.size());
  for (std::size_t begin = 0; begin < out.size(); begin += q.group()) {
    const auto first = q.weights.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto [low, high] = std::minmax_element(first, first + q.format.group_size);
    const float scale = rounded(q.format.type, (*high - *low) / top);
    const float bias = rounded(q.format.type, *low);
    for (std::size_t i = begin; i < begin + q.group(); ++i) {
      const float level = scale > 0 ? std::nearbyint((q.weights[i] - bias) / scale) : 0.0F;
      out[i] = std::clamp(level, 0.0F, top) * scale + bias;
    }
  }
  return out;
}

/// The same numbers from every standard library.
class Random {
 public:
  float uniform() { return static_cast<float>(engine_()) / 4294967296.0F; }
  float gaussian() {
    float sum = -6.0F;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

 private:
  std::mt19937 engine_{7};
};

std::vector<float> filled(std::size_t n, const std::function<float()>& next) {
  std::vector<float> values(n);
  std::generate(values.begin(), values.end(), next);
  return values;
}

template <typename Body>
void for_every_format(const Body& body) {
  for (const WeightType type : kTypes) {
    for (const std::int32_t bits : {4, 8}) {
      for (const std::int32_t group_size : {32, 64, 128}) {
        SCOPED_TRACE(std::string(to_string(type)) + " " + std::to_string(bits) +
                     " bits, groups of " + std::to_string(group_size));
        body(type, QuantizeOptions{.bits = bits, .group_size = group_size, .head_bits = 8});
      }
    }
  }
}

TEST(Quantize, NeverWorseThanRoundingToTheRange) {
  Random random;
  const std::vector<std::pair<const char*, std::function<float()>>> kinds = {
      {"gaussian", [&] { return 0.02F * random.gaussian(); }},
      {"uniform", [&] { return random.uniform() - 0.5F; }},
      {"outliers", [&] { return random.gaussian() * (random.uniform() < 0.02F ? 20.0F : 1.0F); }},
      {"far from zero", [&] { return 100.0F + random.gaussian(); }},
      {"positive", [&] { return random.uniform() * random.uniform(); }},
      {"sparse", [&] { return random.uniform() < 0.9F ? 0.0F : random.gaussian(); }},
      {"two values", [&] { return random.uniform() < 0.5F ? -1.0F : 3.0F; }},
      {"few values", [&] { return std::floor(5.0F * random.uniform()) - 2.0F; }},
      {"tiny", [&] { return 1e-6F * random.gaussian(); }},
      {"large", [&] { return 3000.0F * random.gaussian(); }},
  };
  for_every_format([&](WeightType type, const QuantizeOptions& options) {
    for (const auto& [name, next] : kinds) {
      const Quantized q(type, filled(40 * 256, next), 256, options);
      ASSERT_FALSE(q.fault) << name;
      const std::vector<float> ours = q.values();
      const std::vector<float> plain = round_to_range(q);
      for (std::size_t begin = 0; begin < ours.size(); begin += q.group()) {
        const std::size_t end = begin + q.group();
        ASSERT_LE(squared_error(ours, q.weights, begin, end),
                  squared_error(plain, q.weights, begin, end))
            << name << ", group " << begin / q.group();
      }
    }
  });
}

TEST(Quantize, FourBitsAreClearlyBetterOnGaussianWeights) {
  Random random;
  for (const WeightType type : kTypes) {
    for (const std::int32_t group_size : {32, 64, 128}) {
      const auto values = filled(200 * 256, [&] { return 0.02F * random.gaussian(); });
      const Quantized q(type, values, 256, {.bits = 4, .group_size = group_size, .head_bits = 8});
      const double ours = squared_error(q.values(), q.weights, 0, values.size());
      EXPECT_LT(ours, 0.84 * squared_error(round_to_range(q), q.weights, 0, values.size()));
    }
  }
}

TEST(Quantize, ConstantGroupsAreExact) {
  for_every_format([](WeightType type, const QuantizeOptions& options) {
    for (const float value : {0.0F, 1.0F, -0.3125F, 1024.0F, 6e-8F}) {
      const float kept = rounded(type == WeightType::f32 ? WeightType::f16 : type, value);
      const Quantized q(type, std::vector<float>(256, kept), 128, options);
      ASSERT_FALSE(q.fault);
      EXPECT_EQ(q.values(), q.weights) << value;
    }
  });
}

TEST(Quantize, EveryFiniteFloat16IsReadRight) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bool finite = (bits & 0x7C00) != 0x7C00;
    const float value = f16_to_f32(static_cast<std::uint16_t>(bits));
    const Quantized q(WeightType::f16, std::vector<float>(32, value), 32, {4, 32, 8});
    ASSERT_EQ(q.fault.has_value(), !finite) << bits;
    if (finite) {
      ASSERT_EQ(q.values()[0], value) << bits;
    }
  }
}

TEST(Quantize, GridsOfTheFormatAreKept) {
  // Weights that lie on a grid from end to end come back as they were.
  for_every_format([](WeightType type, const QuantizeOptions& options) {
    const std::size_t top = options.bits == 4 ? 15 : 127;
    std::vector<float> values(128);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.25F * static_cast<float>(i % 32 * top / 31) - 2.0F;
    }
    if (options.bits == 8) values[0] = values[32] = values[64] = values[96] = -2.0F;
    const Quantized q(type, values, 128, options);
    if (options.bits == 4) {
      EXPECT_EQ(q.values(), values);
    } else {
      EXPECT_LT(squared_error(q.values(), values, 0, 128) / 128, 0.125 * 0.125 / 3);
    }
  });
}

TEST(Quantize, RowsStandAlone) {
  Random random;
  for_every_format([&](WeightType type, const QuantizeOptions& options) {
    const Quantized q(type, filled(9 * 256, [&] { return random.gaussian(); }), 256, options);
    const std::size_t data_row = q.data.size() / 9;
    const std::size_t scale_row = q.scales.size() / 9;
    std::vector<std::byte> data(4 * data_row), scales(4 * scale_row), biases(4 * scale_row);
    ASSERT_FALSE(
        quantize_rows(q.source, {3, 7}, q.format, {data.data(), scales.data(), biases.data()}));
    const auto same = [](const auto& part, const auto& whole, std::size_t row) {
      return std::equal(part.begin(), part.end(),
                        whole.begin() + static_cast<std::ptrdiff_t>(3 * row));
    };
    EXPECT_TRUE(same(data, q.data, data_row));
    EXPECT_TRUE(same(scales, q.scales, scale_row));
    EXPECT_TRUE(same(biases, q.biases, scale_row));
  });
}

TEST(Quantize, WeightsThatAreNotFiniteAreFound) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for_every_format([&](WeightType type, const QuantizeOptions& options) {
    for (const float value : {std::nanf(""), kInfinity, -kInfinity}) {
      for (const std::size_t column : {0U, 77U, 255U}) {
        std::vector<float> values(5 * 256, 0.5F);
        values[3 * 256 + column] = value;
        const Quantized q(type, values, 256, options);
        ASSERT_EQ(q.fault, 3);
        EXPECT_EQ(unquantizable_reason(q.source, 3),
                  "row 3, column " + std::to_string(column) + " is NaN or infinite");
      }
    }
  });
}

TEST(Quantize, WeightsPastTheRangeOfTheScalesAreFound) {
  std::vector<float> values(3 * 64, 0.5F);
  values[64 + 9] = 1e6F;  // fits f32, and no f16 bias or scale leads there
  const Quantized narrow(WeightType::f32, values, 64, {8, 64, 8});
  ASSERT_EQ(narrow.fault, std::nullopt);  // 255 scales of f16 do
  values[64 + 9] = -1e6F;
  const Quantized bias(WeightType::f32, values, 64, {8, 64, 8});
  ASSERT_EQ(bias.fault, 1);
  EXPECT_NE(unquantizable_reason(bias.source, 1).find("row 1 holds weights too large"),
            std::string::npos);
  values[64 + 9] = -3e38F;
  values[64 + 10] = 3e38F;
  EXPECT_EQ(Quantized(WeightType::bf16, values, 64, {4, 64, 8}).fault, 1);
}

TEST(Quantize, BitsAreTheSameEverywhere) {
  Random random;
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for_every_format([&](WeightType type, const QuantizeOptions& options) {
    const Quantized q(type, filled(16 * 256, [&] { return 0.02F * random.gaussian(); }), 256,
                      options);
    for (const auto* part : {&q.data, &q.scales, &q.biases}) {
      for (const std::byte byte : *part) {
        hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 1099511628211U;
      }
    }
  });
  EXPECT_EQ(hash, 6082596310619759596U);
}

TEST(QuantizedFormat, BodyAndVocabulary) {
  const QuantizeOptions options{.bits = 4, .group_size = 64, .head_bits = 8};
  const auto format = [&](bool vocabulary, WeightType type, std::int64_t k) {
    return to_string(quantized_format(options, vocabulary, type, k));
  };
  EXPECT_EQ(format(false, WeightType::bf16, 1280), "q4_g64");
  EXPECT_EQ(format(true, WeightType::bf16, 1280), "q8_g64");
  EXPECT_EQ(format(false, WeightType::bf16, 1248), "bf16");
  EXPECT_EQ(format(false, WeightType::f32, 100), "f32");
  EXPECT_EQ(quantized_format(options, false, WeightType::f32, 64).type, WeightType::f16);
  EXPECT_EQ(quantized_format(options, false, WeightType::f16, 64).type, WeightType::f16);
  EXPECT_EQ(quantized_format(options, false, WeightType::bf16, 64).type, WeightType::bf16);
}

TEST(QuantizedFormat, OptionsAreChecked) {
  EXPECT_NO_THROW(check_quantize_options({4, 128, 8}));
  EXPECT_THROW(check_quantize_options({5, 64, 8}), UsageError);
  EXPECT_THROW(check_quantize_options({8, 64, 0}), UsageError);
  EXPECT_THROW(check_quantize_options({8, 16, 8}), UsageError);
}

}  // namespace
}  // namespace openelm

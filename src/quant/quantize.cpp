#include "quant/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/float16.h"

namespace openelm {
namespace {

constexpr std::int32_t kLargestGroup = 128;
// Partial sums: as many chains of additions, so that a vector register holds several and the order,
// hence the result, is the same for any width of register.
constexpr std::size_t kLanes = 16;
constexpr int kRefinements = 4;
// A smaller error must not be one by the rounding of sums alone.
constexpr double kClearlyLess = 1.0 - 1e-5;

/// How finely the search goes: the range of the grid is begun at [min + a R, max - b R] for `steps`
/// values of a and of b from 0 to `shrink`. With 4 bits a few outliers are worth clipping; with 8
/// bits there is next to nothing to gain.
struct Search {
  int steps;
  float shrink;
};
constexpr Search kSearch4{4, 0.1F};
constexpr Search kSearch8{1, 0.0F};

/// The weights of a group. `from_low` are distances from the least, exact enough for sums of
/// products even if all weights lie far from 0.
struct Group {
  std::size_t size = 0;
  float top = 0;  // the largest quant, 2^bits - 1
  float low = 0;
  float high = 0;
  double sum = 0;  // of from_low
  alignas(64) float weights[kLargestGroup];
  alignas(64) float from_low[kLargestGroup];
};

/// Sums over a group: of the quants q, their squares, and their products with from_low.
struct Sums {
  double q = 0;
  double qq = 0;
  double vq = 0;
};

/// A grid of values scale * q + bias.
struct Grid {
  float scale = 0;
  float bias = 0;
};

struct Trial {
  Grid grid;
  double error = 0;  // sum of squares
  Sums sums;
};

double fold(const float (&lanes)[kLanes]) noexcept {
  double sum = 0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

/// The nearest whole number in [0, top]: adding 1.5 * 2^23 leaves no room for a fraction.
float nearest_quant(float value, float top) noexcept {
  constexpr float kNoFraction = 12582912.0F;
  const float not_negative = value > 0.0F ? value : 0.0F;
  const float clamped = not_negative < top ? not_negative : top;
  return (clamped + kNoFraction) - kNoFraction;
}

/// 1 / scale; 0, so that every quant is 0, where the quotient would overflow.
float inverse(float scale) noexcept {
  return scale >= std::numeric_limits<float>::min() ? 1.0F / scale : 0.0F;
}

/// Chooses quants for a grid that begins `offset` above the least weight.
Sums sums_of(const Group& group, float scale, float offset) noexcept {
  const float factor = inverse(scale);
  float q[kLanes] = {};
  float qq[kLanes] = {};
  float vq[kLanes] = {};
  for (std::size_t i = 0; i < group.size; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const float v = group.from_low[i + l];
      const float quant = nearest_quant((v - offset) * factor, group.top);
      q[l] += quant;
      qq[l] += quant * quant;
      vq[l] += v * quant;
    }
  }
  return {fold(q), fold(qq), fold(vq)};
}

/// Chooses quants for a grid, writes them to quants[group.size], and measures the error.
Trial try_grid(const Group& group, const Grid& grid, float* quants) noexcept {
  const float factor = inverse(grid.scale);
  float q[kLanes] = {};
  float qq[kLanes] = {};
  float vq[kLanes] = {};
  float error[kLanes] = {};
  for (std::size_t i = 0; i < group.size; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const float weight = group.weights[i + l];
      const float quant = nearest_quant((weight - grid.bias) * factor, group.top);
      const float miss = weight - (quant * grid.scale + grid.bias);
      quants[i + l] = quant;
      q[l] += quant;
      qq[l] += quant * quant;
      vq[l] += group.from_low[i + l] * quant;
      error[l] += miss * miss;
    }
  }
  return {grid, fold(error), {fold(q), fold(qq), fold(vq)}};
}

/// The scale that suits given quants best, by least squares.
double best_scale(const Group& group, const Sums& sums) noexcept {
  const auto n = static_cast<double>(group.size);
  const double spread = n * sums.qq - sums.q * sums.q;
  return spread > 0 ? (n * sums.vq - sums.q * group.sum) / spread : 0.0;
}

/// The offset from the least weight that suits quants and scale best.
double best_offset(const Group& group, const Sums& sums, double scale) noexcept {
  return (group.sum - scale * sums.q) / static_cast<double>(group.size);
}

/// What the sum of squared weights is lessened by with the best scale and offset.
double explained(const Group& group, const Sums& sums) noexcept {
  const double scale = best_scale(group, sums);
  return scale * sums.vq + best_offset(group, sums, scale) * group.sum;
}

template <WeightType type>
std::uint16_t stored_bits(float value) noexcept {
  return type == WeightType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
}

/// `value` as the type can hold it.
template <WeightType type>
float stored(double value) noexcept {
  const auto narrow = static_cast<float>(value);
  if constexpr (type == WeightType::f16) return f16_to_f32(f32_to_f16(narrow));
  if constexpr (type == WeightType::bf16) return bf16_to_f32(f32_to_bf16(narrow));
  return narrow;
}

template <WeightType type>
Grid stored_grid(const Group& group, const Sums& sums) noexcept {
  const float scale = stored<type>(best_scale(group, sums));
  const double offset = best_offset(group, sums, static_cast<double>(scale));
  return {scale, stored<type>(static_cast<double>(group.low) + offset)};
}

/// The quants of the most promising range, without regard to the rounding of scale and bias.
Sums search(const Group& group, const Search& search) noexcept {
  const float range = group.high - group.low;
  Sums best;
  double most = -std::numeric_limits<double>::infinity();
  for (int a = 0; a < search.steps; ++a) {
    for (int b = 0; b < search.steps; ++b) {
      const float step = range * search.shrink / static_cast<float>(std::max(search.steps - 1, 1));
      const float offset = step * static_cast<float>(a);
      const float scale = (range - offset - step * static_cast<float>(b)) / group.top;
      const Sums sums = sums_of(group, scale, offset);
      const double score = explained(group, sums);
      if (score > most) {
        most = score;
        best = sums;
      }
    }
  }
  return best;
}

/// Finds the grid of a group and writes the quants to quants[group.size].
template <WeightType type>
Grid fit_group(const Group& group, const Search& effort, float* quants) noexcept {
  const float range = group.high - group.low;
  if (range < std::numeric_limits<float>::min()) {  // all alike, but for subnormals
    std::fill_n(quants, group.size, 0.0F);
    return {0.0F, stored<type>(static_cast<double>(group.low))};
  }
  const Grid plain{stored<type>(static_cast<double>(range / group.top)),
                   stored<type>(static_cast<double>(group.low))};
  // A search could still find a grid that is finite, and far from the largest weights.
  if (!std::isfinite(plain.scale) || !std::isfinite(plain.bias)) return plain;
  Trial best = try_grid(group, plain, quants);
  Sums sums = effort.steps > 1 ? search(group, effort) : best.sums;
  for (int i = 0; i < kRefinements; ++i) {
    alignas(64) float refined[kLargestGroup];
    const Trial trial = try_grid(group, stored_grid<type>(group, sums), refined);
    if (!(trial.error < best.error * kClearlyLess)) break;
    best = trial;
    sums = trial.sums;
    std::copy_n(refined, group.size, quants);
  }
  return best.grid;
}

/// A stored number as float32, NaN if it is not finite. Without branches, so that loops vectorise.
float widen_number(WeightType type, const std::byte* p) noexcept {
  if (type == WeightType::f32) {
    float value;
    std::memcpy(&value, p, sizeof value);
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  if (type == WeightType::bf16) return bf16_to_f32(bits);
  // The exponent's bias differs by 112; the product is exact, for subnormals too.
  const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7FFFU) << 13;
  const float value = std::bit_cast<float>(magnitude) * 0x1p112F;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t special = (bits & 0x7C00U) == 0x7C00U ? 0x7FC00000U : 0U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign | special);
}

/// Reads a group. Returns whether all its weights are finite.
template <WeightType type>
bool read_group(const std::byte* data, Group& group) noexcept {
  for (std::size_t i = 0; i < group.size; ++i) {
    group.weights[i] = widen_number(type, data + i * size_of(type));
  }
  float low[kLanes];
  float high[kLanes];
  float faults[kLanes] = {};  // stay 0 unless there is a NaN or an infinity
  for (std::size_t l = 0; l < kLanes; ++l) low[l] = high[l] = group.weights[l];
  for (std::size_t i = 0; i < group.size; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      const float weight = group.weights[i + l];
      low[l] = weight < low[l] ? weight : low[l];
      high[l] = weight > high[l] ? weight : high[l];
      faults[l] += weight - weight;
    }
  }
  if (!(fold(faults) == 0.0)) return false;
  group.low = *std::min_element(low, low + kLanes);
  group.high = *std::max_element(high, high + kLanes);
  float sum[kLanes] = {};
  for (std::size_t i = 0; i < group.size; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) {
      group.from_low[i + l] = group.weights[i + l] - group.low;
      sum[l] += group.from_low[i + l];
    }
  }
  group.sum = fold(sum);
  return true;
}

/// Little-endian bit fields, the first quant lowest.
void write_quants(const float* quants, std::size_t n, std::int32_t bits, std::byte* out) noexcept {
  std::uint8_t bytes[kLargestGroup];
  for (std::size_t i = 0; i < n; ++i) {
    bytes[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(quants[i]));
  }
  if (bits == 4) {
    n /= 2;
    for (std::size_t i = 0; i < n; ++i) {
      bytes[i] = static_cast<std::uint8_t>(bytes[2 * i] | bytes[2 * i + 1] << 4);
    }
  }
  std::memcpy(out, bytes, n);
}

template <WeightType type>
void write_number(float value, std::byte* out) noexcept {
  if constexpr (type == WeightType::f32) {
    std::memcpy(out, &value, sizeof value);
  } else {
    const std::uint16_t bits = stored_bits<type>(value);
    std::memcpy(out, &bits, sizeof bits);
  }
}

/// A loop over groups with the types known to the compiler.
template <WeightType from, WeightType to>
std::optional<std::int64_t> quantize_typed(const RowMajor& source, Range rows,
                                           const WeightFormat& format, AffineRows out) noexcept {
  Group group;
  group.size = static_cast<std::size_t>(format.group_size);
  group.top = static_cast<float>((1 << format.bits) - 1);
  const Search& effort = format.bits == 4 ? kSearch4 : kSearch8;
  const auto n_groups = static_cast<std::size_t>(source.k / format.group_size);
  const std::byte* data =
      source.data + static_cast<std::size_t>(rows.begin * source.k) * size_of(from);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::size_t g = 0; g < n_groups; ++g) {
      if (!read_group<from>(data, group)) return row;
      alignas(64) float quants[kLargestGroup];
      const Grid grid = fit_group<to>(group, effort, quants);
      if (!std::isfinite(grid.scale) || !std::isfinite(grid.bias)) return row;
      write_quants(quants, group.size, format.bits, out.data);
      write_number<to>(grid.scale, out.scales);
      write_number<to>(grid.bias, out.biases);
      data += group.size * size_of(from);
      out.data += group.size * static_cast<std::size_t>(format.bits) / 8;
      out.scales += size_of(to);
      out.biases += size_of(to);
    }
  }
  return std::nullopt;
}

}  // namespace

void AffineBuffers::resize(const WeightFormat& format, std::size_t n_weights) {
  data.resize(n_weights * static_cast<std::size_t>(format.bits) / 8);
  scales.resize(n_weights / static_cast<std::size_t>(format.group_size) * size_of(format.type));
  biases.resize(scales.size());
}

std::optional<std::int64_t> quantize_rows(const RowMajor& source, Range rows,
                                          const WeightFormat& format,
                                          const AffineRows& out) noexcept {
  switch (source.format.type) {
    case WeightType::f32:
      return quantize_typed<WeightType::f32, WeightType::f16>(source, rows, format, out);
    case WeightType::f16:
      return quantize_typed<WeightType::f16, WeightType::f16>(source, rows, format, out);
    case WeightType::bf16:
      return quantize_typed<WeightType::bf16, WeightType::bf16>(source, rows, format, out);
  }
  return std::nullopt;
}

std::string unquantizable_reason(const RowMajor& source, std::int64_t row) {
  const std::size_t number = size_of(source.format.type);
  const std::byte* const data = source.data + static_cast<std::size_t>(row * source.k) * number;
  for (std::int32_t column = 0; column < source.k; ++column) {
    const std::byte* const weight = data + static_cast<std::size_t>(column) * number;
    if (std::isfinite(widen_number(source.format.type, weight))) continue;
    return "row " + std::to_string(row) + ", column " + std::to_string(column) +
           " is NaN or infinite";
  }
  return "row " + std::to_string(row) + " holds weights too large for 16-bit scales and biases";
}

}  // namespace openelm

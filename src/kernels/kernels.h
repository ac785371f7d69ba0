#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/packed_matrix.h"

/// Every hot loop of the engine, as a table of functions that each instruction set fills in.
///
/// All variants give the same bits (a NaN may be any NaN). Each function's comment states its
/// *canonical order*: which float operations are done, in which order, and where they are fused
/// (fma). Lanes are rows (or positions, or values of a head), so the order does not depend on the
/// vector width; sums across a vector use 16 interleaved partial sums (element i goes to partial
/// sum i mod 16, by fma or add in ascending i) that are then folded by halves: s[i] += s[i+8], s[i]
/// += s[i+4], s[i] += s[i+2], s[0] + s[1]. src/kernels/ref holds the readable form of every kernel,
/// which is also its oracle.
///
/// Kernels see pointers, sizes and strides; strides count elements unless said otherwise. They do
/// not allocate, lock, throw, or read beyond what their comment states.
namespace openelm::kernels {

/// What happens to the dot products of a tile.
enum class Epilogue {
  store,   ///< y = W x
  add,     ///< y += W x, one addition after the whole dot product
  swiglu,  ///< tiles 2t and 2t+1 are gate and up rows: y = silu(gate x) * (up x)
  silu,    ///< y = silu(W x)
};

/// Rows of the table of matrix products: the plain types, then affine weights of 8 and 4 bits.
constexpr std::size_t kMatmulKinds = 5;
constexpr std::size_t matmul_kind(const WeightFormat& format) noexcept {
  return format.affine() ? (format.bits == 8 ? 3 : 4) : static_cast<std::size_t>(format.type);
}

/// Y = epilogue(X Wᵀ) for tiles [tile_begin, tile_end) of W and all m tokens.
struct MatmulArgs {
  const PackedMatrix* w = nullptr;
  Epilogue epilogue = Epilogue::store;
  const float* x = nullptr;  ///< plain W: [m, w->k_padded], row stride x_stride; values past k are
                             ///< finite
  std::int64_t x_stride = 0;
  /// Affine W: m rows as `quantise` writes them for W's group size and x_block. Plain bf16 W with
  /// bf16_activations: [m, w->k_padded] bf16 as `narrow` writes them.
  const std::byte* xq = nullptr;
  std::int64_t xq_stride = 0;  ///< bytes
  std::int32_t m = 0;
  float* y = nullptr;  ///< [m, 16 * tiles] (swiglu: 8 * tiles), row stride y_stride; indexed by
                       ///< absolute row of W, whole tiles are written
  std::int64_t y_stride = 0;
  std::int32_t tile_begin = 0;  ///< swiglu: both are even
  std::int32_t tile_end = 0;
  float* scratch =
      nullptr;  ///< matmul_scratch_floats(m) floats, 64-byte aligned, this thread's own
};

/// Scratch that any matmul variant may use for m tokens.
std::size_t matmul_scratch_floats(std::int32_t m) noexcept;

/// Stored keys of one head: tiles of 16 positions, for each d of head_dim the 16 positions' values.
/// Stored values of one head: position-major rows of v_stride(head_dim) values.
constexpr std::int32_t kKvTile = 16;
constexpr std::int32_t v_stride(std::int32_t head_dim) noexcept {
  return (head_dim + 15) / 16 * 16;
}

/// Scores of a run of key tiles: s[r][p] = Σ_d q[r][d] K[p][d], one fma chain in ascending d from
/// 0.
struct ScoresArgs {
  const float* q = nullptr;  ///< [rows, head_dim], already scaled by 1/sqrt(head_dim)
  std::int64_t q_stride = 0;
  std::int32_t rows = 0;
  const void* k = nullptr;  ///< [n_tiles][head_dim][16] of the cache's type
  std::int32_t n_tiles = 0;
  std::int32_t head_dim = 0;
  float* s = nullptr;  ///< [rows, 16 * n_tiles]
  std::int64_t s_stride = 0;
};

/// Weighted sums of a run of value rows: o[r][d] = Σ_p s[r][p] V[p][d], one fma chain in ascending
/// p, from 0 or (accumulate) from the o found.
struct ValuesArgs {
  const float* p = nullptr;  ///< [rows, n]
  std::int64_t p_stride = 0;
  std::int32_t rows = 0;
  const void* v = nullptr;  ///< [n][v_stride(head_dim)] of the cache's type; pads are finite
  std::int32_t n = 0;
  std::int32_t head_dim = 0;
  float* o = nullptr;  ///< [rows, v_stride(head_dim)]
  std::int64_t o_stride = 0;
  bool accumulate = false;
};

/// Blocks of activations below this are zero: 127 / max|x| stays finite.
constexpr float kQuantiseLeast = 1e-30F;

/// What precedes a block's whole numbers in a quantised row.
struct QuantisedBlock {
  float scale;       ///< scale_x
  float total;       ///< total_x of the group that begins here; 0 in a group's later blocks
  std::int32_t sum;  ///< Σ xq
  std::int32_t unused;
};

/// The kernels of one instruction set. Index arrays by static_cast<int>(WeightType or KvType).
struct KernelTable {
  const char* name;

  /// Plain W: one fma chain per output in ascending k from 0 (over k_padded; the pad adds exact
  /// zeros). Affine W: for each group g in ascending order, from sum = 0,
  ///   dot = 0;  for each block b of g: dot = fma(float(Σ q xq), scale_x, dot)
  ///   sum = fma(dot, scale_w, sum);  sum = fma(bias_w, total_x, sum)
  /// with a block's Σ q xq over its quants and whole-number activations exact in int32.
  /// Then the epilogue: add: one addition; swiglu: silu(g) * u.
  /// silu(z) = z / (1 + exp(-z)) with the exp below and IEEE addition and division.
  void (*matmul[kMatmulKinds])(const MatmulArgs& args);  // [matmul_kind]

  /// One row of activations for affine weights, in blocks of `block` (16 or 32): whole numbers
  /// xq[i] = x[i] * (127 / max|x|) to nearest even and scale_x = max|x| / 127, so that
  /// x ~ scale_x * xq. total_x of a group of `group_size`, the weights', is a chain over its blocks
  /// from 0: total = fma(scale_x, float(Σ xq), total). A block that is all but zero (max|x| <
  /// kQuantiseLeast) becomes zero; one that holds an infinity or NaN has NaN for scale. Writes
  /// quantised_row_bytes(*this, k, block) bytes, 16-byte aligned; the arrangement is the table's
  /// own: for each block a QuantisedBlock, then the whole numbers.
  void (*quantise)(const float* x, std::int32_t k, std::int32_t group_size, std::int32_t block,
                   std::byte* xq);
  std::int32_t quantised_value_bytes;  ///< of one whole number

  /// matmul of plain bf16 weights takes activations rounded to bf16 and adds in the CPU's own way:
  /// faster, less exact, and not the same bits as other tables. See Compute::fast.
  bool bf16_activations = false;

  /// Type q8: the signed bytes as they are; scales are the caller's affair (see multiply).
  void (*scores[4])(const ScoresArgs& args);  // [KvType]
  void (*values[4])(const ValuesArgs& args);  // [KvType]

  /// One row of attention scores over n positions (n >= 1), of which the first `valid` (1..n)
  /// count: returns their maximum (NaN passed over, a zero as +0), writes p[i] = exp(s[i] - max)
  /// for i < valid and 0 for the rest, in place, and *sum = Σ p over i < valid in the canonical sum
  /// order (partial sums by addition).
  float (*softmax_row)(float* s, std::int32_t n, std::int32_t valid, float* sum);

  /// Online softmax: folds the next chunk (m2, l2, o2[n]) into the running (m, l, o[n]):
  /// m' = m2 > m ? m2 : m; a = exp(m - m'); b = exp(m2 - m'); l = fma(l, a, l2 * b);
  /// o[i] = fma(o[i], a, o2[i] * b).
  void (*softmax_merge)(float* m, float* l, float* o, float m2, float l2, const float* o2,
                        std::int32_t n);

  /// y[i] = x[i] / divisor.
  void (*divide)(const float* x, float divisor, std::int32_t n, float* y);

  /// y[i] = (x[i] * r) * weight[i], r = 1 / sqrt(ss / n + eps), ss = Σ x[i]² by fma in the
  /// canonical sum order. y may be x. Source: RMSNorm, Zhang and Sennrich 2019.
  void (*rms_norm)(const float* x, const float* weight, std::int32_t n, float eps, float* y);

  /// Rotates pairs (x[i], x[i + half]) in place: x0' = fma(x0, cos, -(x1 * sin)),
  /// x1' = fma(x1, cos, x0 * sin), with cos[half], sin[half]. Split-half RoPE, Su et al. 2021.
  void (*rope)(float* x, const float* cos, const float* sin, std::int32_t half);

  /// x[i] *= factor.
  void (*scale)(float* x, float factor, std::int32_t n);

  /// x[i] *= by[i].
  void (*multiply)(float* x, const float* by, std::int32_t n);

  /// y[i] = x[i] rounded to the cache's type, to nearest even (f32: a copy); returns 1. Type q8:
  /// y[i] = x[i] * (127 / max|x|) as a signed byte; returns max|x| / 127, or 0 and zeros when
  /// max|x| < kQuantiseLeast, or NaN and zeros when some x[i] is not finite.
  float (*narrow[4])(const float* x, std::int32_t n, void* y);  // [KvType]
};

constexpr std::size_t quantised_row_bytes(const KernelTable& table, std::int32_t k,
                                          std::int32_t block) noexcept {
  return static_cast<std::size_t>(k / block) * sizeof(QuantisedBlock) +
         static_cast<std::size_t>(k * table.quantised_value_bytes);
}

/// exp, for any argument: x is clamped to [-104, 89], whose ends give 0 and infinity;
/// n = round-to-nearest-even(x * log2 e); r = fma(n, -ln2_hi, x); r = fma(n, -ln2_lo, r);
/// p = a polynomial in r of degree 6 by Horner with fma; the result is p * 2^n, multiplied by the
/// two halves of the power so that only the second product can round. Within 1 ulp, subnormal
/// results included; NaN gives NaN. Constants: src/kernels/exp_constants.h.

/// Kernel variants compiled into this program, best first; "scalar" is always the last.
struct Variant {
  const char* name;
  const KernelTable* table;  ///< null: known by name, not compiled for this architecture
  bool supported;            ///< by this CPU and its operating system
};
struct VariantList {
  const Variant* begin_;
  const Variant* end_;
  const Variant* begin() const noexcept { return begin_; }
  const Variant* end() const noexcept { return end_; }
};
VariantList variants() noexcept;

/// The variant called `name`; "auto" takes OPENELM_ISA if set, else the best supported one. Throws
/// UsageError naming the variants that would work when `name` is unknown, not compiled in, or not
/// supported by this CPU.
///
/// Compute::fast: on CPUs whose bf16 dot product is known to outrun fma (or where "avx512bf16" is
/// asked for by name), a table with bf16_activations; elsewhere the same as exact.
const KernelTable& select(const char* name, Compute compute = Compute::exact);

}  // namespace openelm::kernels

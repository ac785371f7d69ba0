#pragma once

namespace openelm::kernels {

/// What this CPU can do and its operating system lets programs do (wide registers must be saved on
/// a context switch). Features of other architectures are false.
struct CpuFeatures {
  bool avx2 = false;          ///< AVX2, FMA and F16C
  bool avxvnni = false;       ///< the avx2 set, and AVX-VNNI
  bool avx512 = false;        ///< the avx2 set, and AVX-512 F, BW, DQ, VL and VNNI
  bool avx512bf16 = false;    ///< the avx512 set, and AVX512-BF16
  bool fast_bf16 = false;     ///< whose dot product is known to do more than fma
  bool neon = false;          ///< AArch64's Advanced SIMD
  bool neon_dotprod = false;  ///< and the dot-product extension
  bool neon_i8mm = false;     ///< and the 8-bit matrix-multiply extension
};

CpuFeatures detect_cpu_features() noexcept;

}  // namespace openelm::kernels

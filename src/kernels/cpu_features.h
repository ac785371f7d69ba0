#pragma once

namespace openelm::kernels {

/// What this CPU can do and its operating system lets programs do (wide registers must be saved on
/// a context switch). Features of other architectures are false.
struct CpuFeatures {
  bool avx2 = false;    ///< AVX2, FMA and F16C
  bool avx512 = false;  ///< the avx2 set, and AVX-512 F, BW, DQ and VL
  bool neon = false;    ///< AArch64's Advanced SIMD
};

CpuFeatures detect_cpu_features() noexcept;

}  // namespace openelm::kernels

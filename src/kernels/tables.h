#pragma once

#include "kernels/kernels.h"

/// The tables that this architecture's build can hold; each is the only symbol of its folder.
namespace openelm::kernels {

extern const KernelTable scalar_table;
extern const KernelTable avx2_table;
extern const KernelTable avxvnni_table;
extern const KernelTable avx512_table;
extern const KernelTable neon_table;
extern const KernelTable neon_dotprod_table;
extern const KernelTable neon_i8mm_table;

/// What AVX512-BF16 adds to avx512_table for `Compute::fast`.
struct Bf16Kernels {
  void (*matmul)(const MatmulArgs& args);  ///< plain bf16 W; args.xq: rows of k_padded bf16
};
extern const Bf16Kernels avx512bf16_table;

}  // namespace openelm::kernels

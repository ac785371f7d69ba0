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

}  // namespace openelm::kernels

#include "kernels/generic/table.h"
#include "kernels/neon/vec.h"
#include "kernels/neon_i8mm/ints.h"
#include "kernels/tables.h"

namespace openelm::kernels {

constinit const KernelTable neon_i8mm_table = make_table<NeonVec, NeonI8mmInts>("neon_i8mm");

}  // namespace openelm::kernels

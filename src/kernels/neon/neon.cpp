#include "kernels/generic/table.h"
#include "kernels/neon/ints.h"
#include "kernels/neon/vec.h"
#include "kernels/tables.h"

namespace openelm::kernels {

constinit const KernelTable neon_table = make_table<NeonVec, NeonInts>("neon");

}  // namespace openelm::kernels

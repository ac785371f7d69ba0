#include "kernels/generic/table.h"
#include "kernels/neon/vec.h"
#include "kernels/neon_dotprod/ints.h"
#include "kernels/tables.h"

namespace openelm::kernels {

constinit const KernelTable neon_dotprod_table =
    make_table<NeonVec, NeonDotprodInts>("neon_dotprod");

}  // namespace openelm::kernels

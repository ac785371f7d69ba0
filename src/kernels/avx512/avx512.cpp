#include "kernels/avx512/vec.h"
#include "kernels/generic/table.h"
#include "kernels/tables.h"

namespace openelm::kernels {

constinit const KernelTable avx512_table = make_table<Avx512Vec>("avx512");

}  // namespace openelm::kernels

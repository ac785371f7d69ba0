#include "kernels/avx512/ints.h"
#include "kernels/avx512/vec.h"
#include "kernels/generic/table.h"
#include "kernels/tables.h"

namespace openelm::kernels {

constinit const KernelTable avx512_table = make_table<Avx512Vec, Avx512Ints>("avx512");

}  // namespace openelm::kernels

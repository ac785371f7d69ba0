#include "kernels/avx2/ints.h"
#include "kernels/avx2/vec.h"
#include "kernels/generic/table.h"
#include "kernels/tables.h"

namespace openelm::kernels {

constinit const KernelTable avx2_table = make_table<Avx2Vec, Avx2Ints>("avx2");

}  // namespace openelm::kernels

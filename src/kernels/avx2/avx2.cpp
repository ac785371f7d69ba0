#include "kernels/avx2/vec.h"
#include "kernels/generic/table.h"
#include "kernels/tables.h"

namespace openelm::kernels {

constinit const KernelTable avx2_table = make_table<Avx2Vec>("avx2");

}  // namespace openelm::kernels

#include "kernels/avx2/vec.h"
#include "kernels/avxvnni/ints.h"
#include "kernels/generic/table.h"
#include "kernels/tables.h"

namespace openelm::kernels {

constinit const KernelTable avxvnni_table = make_table<Avx2Vec, AvxVnniInts>("avxvnni");

}  // namespace openelm::kernels

#include "kernels/avx512bf16/matmul.h"
#include "kernels/tables.h"

namespace openelm::kernels {

constinit const Bf16Kernels avx512bf16_table = {.matmul = bf16_matmul};

}  // namespace openelm::kernels

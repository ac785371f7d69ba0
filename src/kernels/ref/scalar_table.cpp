#include "kernels/ref/ref.h"
#include "kernels/tables.h"

namespace openelm::kernels {

constinit const KernelTable scalar_table = {
    .name = "scalar",
    .matmul = {ref::matmul<WeightType::f32>, ref::matmul<WeightType::f16>,
               ref::matmul<WeightType::bf16>, ref::affine_matmul<8>, ref::affine_matmul<4>},
    .quantise = ref::quantise,
    .quantised_value_bytes = 1,
    .scores = {ref::scores<KvType::f32>, ref::scores<KvType::f16>, ref::scores<KvType::bf16>,
               ref::scores<KvType::q8>},
    .values = {ref::values<KvType::f32>, ref::values<KvType::f16>, ref::values<KvType::bf16>,
               ref::values<KvType::q8>},
    .softmax_row = ref::softmax_row,
    .softmax_merge = ref::softmax_merge,
    .divide = ref::divide,
    .rms_norm = ref::rms_norm,
    .rope = ref::rope,
    .scale = ref::scale,
    .multiply = ref::multiply,
    .narrow = {ref::narrow<KvType::f32>, ref::narrow<KvType::f16>, ref::narrow<KvType::bf16>,
               ref::narrow_q8},
};

}  // namespace openelm::kernels

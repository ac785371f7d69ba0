#include <cmath>

#include "kernels/ref/ref.h"
#include "kernels/ref/stored.h"

namespace openelm::kernels::ref {

template <KvType Type>
void scores(const ScoresArgs& args) {
  for (std::int32_t row = 0; row < args.rows; ++row) {
    const float* q = args.q + row * args.q_stride;
    float* s = args.s + row * args.s_stride;
    for (std::int32_t position = 0; position < args.n_tiles * kKvTile; ++position) {
      const std::int32_t tile = position / kKvTile;
      const std::int32_t lane = position % kKvTile;
      float sum = 0.0F;
      for (std::int32_t d = 0; d < args.head_dim; ++d) {
        const auto at = static_cast<std::size_t>((tile * args.head_dim + d) * kKvTile + lane);
        sum = std::fma(load_stored<Type>(args.k, at), q[d], sum);
      }
      s[position] = sum;
    }
  }
}

template <KvType Type>
void values(const ValuesArgs& args) {
  const std::int32_t stride = v_stride(args.head_dim);
  for (std::int32_t row = 0; row < args.rows; ++row) {
    const float* p = args.p + row * args.p_stride;
    float* o = args.o + row * args.o_stride;
    for (std::int32_t d = 0; d < stride; ++d) {
      float sum = args.accumulate ? o[d] : 0.0F;
      for (std::int32_t position = 0; position < args.n; ++position) {
        const auto at = static_cast<std::size_t>(position * stride + d);
        sum = std::fma(load_stored<Type>(args.v, at), p[position], sum);
      }
      o[d] = sum;
    }
  }
}

template void scores<KvType::f32>(const ScoresArgs&);
template void scores<KvType::f16>(const ScoresArgs&);
template void scores<KvType::bf16>(const ScoresArgs&);
template void scores<KvType::q8>(const ScoresArgs&);
template void values<KvType::f32>(const ValuesArgs&);
template void values<KvType::f16>(const ValuesArgs&);
template void values<KvType::bf16>(const ValuesArgs&);
template void values<KvType::q8>(const ValuesArgs&);

}  // namespace openelm::kernels::ref

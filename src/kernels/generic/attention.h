#pragma once

#include "kernels/generic/microkernel.h"
#include "kernels/generic/sources.h"
#include "kernels/kernels.h"

namespace openelm::kernels {
namespace {

/// Lanes are positions: a tile of keys is a tile of weights whose k is the place in the head.
template <class V, KvType Type>
void scores(const ScoresArgs& args) {
  const Strip strip{
      .w = static_cast<const std::byte*>(args.k),
      .w_tile = kRowBytes<Type> * args.head_dim,
      .prefetch = 0,
      .x = args.q,
      .x_token = args.q_stride,
      .y = args.s,
      .y_tile = kKvTile,
      .y_token = args.s_stride,
      .k = args.head_dim,
      .resume = false,
  };
  accumulate_all<V>(Rows<V, Type>{}, strip, args.n_tiles, args.rows);
}

/// Lanes are places in the head: 16 columns of the values are a tile whose k is the position.
template <class V, KvType Type>
void values(const ValuesArgs& args) {
  const std::int32_t n_tiles = (args.head_dim + 15) / 16;
  const Strip strip{
      .w = static_cast<const std::byte*>(args.v),
      .w_tile = kRowBytes<Type>,
      .prefetch = 0,
      .x = args.p,
      .x_token = args.p_stride,
      .y = args.o,
      .y_tile = 16,
      .y_token = args.o_stride,
      .k = args.n,
      .resume = args.accumulate,
  };
  accumulate_all<V>(StridedRows<V, Type>{kRowBytes<Type> * n_tiles}, strip, n_tiles, args.rows);
}

}  // namespace
}  // namespace openelm::kernels

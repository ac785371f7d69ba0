#pragma once

#include "kernels/kernels.h"
#include "parallel/thread_pool.h"

namespace openelm {

/// What a forward pass runs on. No globals: several engines may live in one process.
struct ExecContext {
  const kernels::KernelTable& kernels;
  ThreadPool& pool;
};

}  // namespace openelm

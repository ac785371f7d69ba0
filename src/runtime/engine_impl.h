#pragma once

#include <openelm/engine.h>

#include "model/exec_context.h"
#include "model/forward.h"

namespace openelm {

struct Engine::Impl {
  const kernels::KernelTable& kernels;
  mutable ThreadPool pool;
  Model model;

  ExecContext context() const noexcept { return {kernels, pool}; }
};

}  // namespace openelm

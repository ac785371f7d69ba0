#pragma once

#include <cstdint>

namespace openelm {

/// Bytes that the process can take without pushing anything out, as the system estimates them and
/// the container's limit allows; where neither is known, half of the machine's memory.
std::uint64_t available_memory();

}  // namespace openelm

#pragma once

#include <string_view>

namespace openelm {

/// Writes all of `bytes` to the descriptor, however many calls that takes. Returns 0, or the errno
/// of the call that failed; part of the bytes may be written then.
int write_all(int descriptor, std::string_view bytes) noexcept;

}  // namespace openelm

#pragma once

#include <stdexcept>
#include <string>

namespace openelm {

/// A failure the user can act on. The text is one line: what is wrong, where (file, tensor, byte),
/// what was expected and what was found.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A request that can never work, whatever the files hold: an unknown option value, a number out of
/// range. The command line answers it with exit code 2 instead of 1.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace openelm

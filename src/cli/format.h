#pragma once

#include <cstdint>
#include <string>

namespace openelm::cli {

/// Parameters as people say them: "271.5M", "1.08B", "312".
std::string format_count(std::int64_t count);

/// Memory in powers of 1024: "7.0 MiB", "1.01 GiB".
std::string format_bytes(std::uint64_t bytes);

/// `count` a `seconds`; 0 when no time has passed.
double per_second(double count, double seconds);

}  // namespace openelm::cli

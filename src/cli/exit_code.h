#pragma once

namespace openelm::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitRecordsFailed = 3;
inline constexpr int kExitInterrupted = 130;

}  // namespace openelm::cli

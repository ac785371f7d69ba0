#pragma once

#include <cstdint>

#include "checkpoint/json_fields.h"

/// Bounds of what a configuration may say. They lie far above any OpenELM and low enough that no
/// product of two sizes overflows and nothing absurd is allocated on a damaged file's word.
namespace openelm::limits {

inline constexpr JsonFields::Range kVocabulary{3, 4'194'304};  // <unk>, <s> and </s> at least
inline constexpr JsonFields::Range kLayers{1, 10'000};
inline constexpr JsonFields::Range kHeads{1, 65'536};
inline constexpr JsonFields::Range kHeadDim{8, 4'096};
inline constexpr JsonFields::Range kWidth{1, 1'048'576};
inline constexpr JsonFields::Range kContext{1, 16'777'216};
inline constexpr double kLargestMultiplier = 1000.0;

/// Query width or FFN width of a layer.
inline constexpr std::int64_t kWidest = 4'194'304;

}  // namespace openelm::limits

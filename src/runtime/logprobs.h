#pragma once

#include <cstddef>
#include <span>

#include <openelm/generation.h>

namespace openelm {

/// Log-probabilities under the model's own distribution, softmax(logits): of the token `chosen`,
/// and of the `count` best (all, if the vocabulary is smaller), ties to the lower id. Penalties,
/// bias and temperature have no part in it. Throws Error when `chosen` is outside of `logits`.
TokenLogprobs token_logprobs(std::span<const float> logits, TokenId chosen, std::size_t count);

}  // namespace openelm

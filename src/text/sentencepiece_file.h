#pragma once

#include <string>
#include <string_view>

namespace openelm {

/// Checks that `bytes` are one whole SentencePiece ModelProto before the library sees them, so that
/// a wrong or cut file is named for what it is. Throws Error "<where>: ..." when it is empty, a Git
/// LFS pointer, a web page, JSON, cut short, or anything else.
///
/// The library alone would not do: a model cut between two pieces parses well, and then encodes
/// with another algorithm, because the trainer's settings come last in the file.
void require_sentencepiece_model(std::string_view bytes, const std::string& where);

}  // namespace openelm

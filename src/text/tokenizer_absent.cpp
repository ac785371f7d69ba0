#include <openelm/error.h>
#include <openelm/tokenizer.h>

namespace openelm {

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::filesystem::path& file) {
  throw Error(file.string() + ": this build has no tokenizer (OPENELM_TOKENIZER=OFF)");
}

}  // namespace openelm

// Continues a text with an OpenELM model: storyteller MODEL_FOLDER TEXT
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include <openelm/engine.h>
#include <openelm/generation.h>
#include <openelm/session.h>
#include <openelm/tokenizer.h>

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: storyteller MODEL_FOLDER TEXT\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const auto engine = openelm::Engine::load(folder);
  const auto tokenizer = openelm::Tokenizer::load(folder / "tokenizer.model");

  std::vector<openelm::TokenId> prompt = tokenizer->encode(argv[2]);
  prompt.insert(prompt.begin(), engine->config().bos_id);

  openelm::GenerationOptions options;
  options.max_tokens = 100;
  options.sampling.seed = 7;

  openelm::Session session(engine);
  openelm::generate(session, tokenizer.get(), prompt, options, [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return std::fflush(stdout) == 0;
  });
  std::putchar('\n');
} catch (const std::exception& error) {
  std::fprintf(stderr, "storyteller: %s\n", error.what());
  return 1;
}

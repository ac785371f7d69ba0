#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/error.h>

#include "kernels/kernels.h"
#include "kernels/tables.h"

namespace openelm::test {
namespace {

using kernels::Variant;

/// OPENELM_ISA as the test wants it, and as it was when the test is over.
class IsaVariable {
 public:
  explicit IsaVariable(const char* value) {
    if (const char* old = std::getenv("OPENELM_ISA")) old_ = old;
    set(value);
  }
  ~IsaVariable() { set(old_.empty() ? nullptr : old_.c_str()); }
  IsaVariable(const IsaVariable&) = delete;
  IsaVariable& operator=(const IsaVariable&) = delete;

 private:
  static void set(const char* value) {
    if (value == nullptr) {
      unsetenv("OPENELM_ISA");
    } else {
      setenv("OPENELM_ISA", value, 1);
    }
  }
  std::string old_;
};

std::string error_of_selecting(const char* name) {
  try {
    kernels::select(name);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Dispatch, ListsEveryKnownVariantBestFirst) {
  std::vector<std::string> names;
  for (const Variant& v : kernels::variants()) names.emplace_back(v.name);
  EXPECT_EQ(names, (std::vector<std::string>{"avx512bf16", "avx512", "avxvnni", "avx2", "neon_i8mm",
                                             "neon_dotprod", "neon", "scalar"}));
}

TEST(Dispatch, ScalarAlwaysWorks) { EXPECT_EQ(&kernels::select("scalar"), &kernels::scalar_table); }

TEST(Dispatch, SelectsWhatIsListedAsSupported) {
  for (const Variant& v : kernels::variants()) {
    if (v.table != nullptr && v.supported) {
      EXPECT_EQ(&kernels::select(v.name), v.table);
      // Its exact kernels are those of avx512.
      const bool adds_fast_ones = v.name == std::string("avx512bf16");
      EXPECT_STREQ(v.table->name, adds_fast_ones ? "avx512" : v.name);
    } else {
      const std::string error = error_of_selecting(v.name);
      EXPECT_TRUE(contains(error, std::string("'") + v.name + "'")) << error;
      EXPECT_TRUE(contains(
          error, v.table == nullptr ? "not available in this build" : "not supported by this CPU"))
          << error;
      EXPECT_TRUE(contains(error, "expected one of auto, ")) << error;
    }
  }
}

TEST(Dispatch, AutoTakesTheBestSupported) {
  const IsaVariable unset(nullptr);
  for (const Variant& v : kernels::variants()) {
    if (v.table == nullptr || !v.supported) continue;
    EXPECT_EQ(&kernels::select("auto"), v.table);
    break;
  }
}

TEST(Dispatch, EveryArchitectureHasItsBaseline) {
  const IsaVariable unset(nullptr);
#if defined(__aarch64__)
  EXPECT_TRUE(std::string(kernels::select("auto").name).starts_with("neon"));
#elif defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vnni")) {
    EXPECT_STREQ(kernels::select("auto").name, "avx512");
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    EXPECT_TRUE(std::string(kernels::select("auto").name).starts_with("avx"));
  }
#endif
}

TEST(Dispatch, AutoHonoursTheEnvironment) {
  const IsaVariable forced("scalar");
  EXPECT_EQ(&kernels::select("auto"), &kernels::scalar_table);
}

TEST(Dispatch, AnExplicitNameWinsOverTheEnvironment) {
  const IsaVariable forced("no-such-isa");
  EXPECT_EQ(&kernels::select("scalar"), &kernels::scalar_table);
}

TEST(Dispatch, EmptyAndAutoInTheEnvironmentAreNoChoice) {
  const kernels::KernelTable* best = nullptr;
  {
    const IsaVariable unset(nullptr);
    best = &kernels::select("auto");
  }
  const IsaVariable empty("");
  EXPECT_EQ(&kernels::select("auto"), best);
  const IsaVariable automatic("auto");
  EXPECT_EQ(&kernels::select("auto"), best);
}

TEST(Dispatch, ABadEnvironmentIsAnErrorThatNamesTheVariable) {
  const IsaVariable forced("sse9");
  const std::string error = error_of_selecting("auto");
  EXPECT_TRUE(contains(error, "OPENELM_ISA")) << error;
  EXPECT_TRUE(contains(error, "'sse9'")) << error;
  EXPECT_TRUE(contains(error, "scalar")) << error;
}

TEST(Dispatch, AnUnknownNameIsAnError) {
  for (const char* name : {"", "AVX2", "avx", "avx2 ", "nonsense"}) {
    EXPECT_TRUE(contains(error_of_selecting(name), "no such instruction set")) << name;
  }
}

TEST(Dispatch, ScratchGrowsWithTokens) {
  EXPECT_GT(kernels::matmul_scratch_floats(1), 0U);
  EXPECT_GT(kernels::matmul_scratch_floats(512), kernels::matmul_scratch_floats(511));
}

}  // namespace
}  // namespace openelm::test

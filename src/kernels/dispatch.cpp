#include <cstdlib>
#include <string>
#include <string_view>

#include <openelm/error.h>

#include "kernels/blocking.h"
#include "kernels/cpu_features.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"

namespace openelm::kernels {
namespace {

constexpr const char* kIsaVariable = "OPENELM_ISA";

#if defined(__x86_64__)
constexpr const KernelTable* kAvx2 = &avx2_table;
constexpr const KernelTable* kAvxVnni = &avxvnni_table;
constexpr const KernelTable* kAvx512 = &avx512_table;
#else
constexpr const KernelTable* kAvx2 = nullptr;
constexpr const KernelTable* kAvxVnni = nullptr;
constexpr const KernelTable* kAvx512 = nullptr;
#endif
#if defined(__aarch64__)
constexpr const KernelTable* kNeon = &neon_table;
constexpr const KernelTable* kNeonDotprod = &neon_dotprod_table;
constexpr const KernelTable* kNeonI8mm = &neon_i8mm_table;
#else
constexpr const KernelTable* kNeon = nullptr;
constexpr const KernelTable* kNeonDotprod = nullptr;
constexpr const KernelTable* kNeonI8mm = nullptr;
#endif

const CpuFeatures& cpu() {
  static const CpuFeatures features = detect_cpu_features();
  return features;
}

bool usable(const Variant& variant) { return variant.table != nullptr && variant.supported; }

std::string usable_names() {
  std::string names = "auto";
  for (const Variant& variant : variants()) {
    if (usable(variant)) names += std::string(", ") + variant.name;
  }
  return names;
}

/// `subject` opens the message: what was asked for, and where.
const KernelTable& select_by_name(std::string_view name, const std::string& subject) {
  const char* reason = "no such instruction set";
  for (const Variant& variant : variants()) {
    if (name != variant.name) continue;
    if (usable(variant)) return *variant.table;
    reason = variant.table == nullptr ? "not available in this build" : "not supported by this CPU";
  }
  throw UsageError(subject + ": " + reason + "; expected one of " + usable_names());
}

const KernelTable& best_table() {
  for (const Variant& variant : variants()) {
    if (usable(variant)) return *variant.table;
  }
  return scalar_table;
}

/// The table for Compute::fast where `table` was chosen as `wanted`: another one where that pays.
const KernelTable& fast_table(std::string_view wanted, const KernelTable& table) {
#if defined(__x86_64__)
  static const KernelTable with_bf16 = [] {
    KernelTable fast = avx512_table;
    fast.name = "avx512bf16";
    fast.matmul[static_cast<std::size_t>(WeightType::bf16)] = avx512bf16_table.matmul;
    fast.bf16_activations = true;
    return fast;
  }();
  const bool pays = wanted == "avx512bf16" || (wanted == "auto" && cpu().fast_bf16);
  if (pays && &table == kAvx512) return with_bf16;
#else
  static_cast<void>(wanted);
#endif
  return table;
}

}  // namespace

std::size_t matmul_scratch_floats(std::int32_t m) noexcept {
  return static_cast<std::size_t>(m) * kMatmulGroupTiles * kTileRows +
         kAffineWidenedBytes / sizeof(float);
}

VariantList variants() noexcept {
  static const Variant list[] = {
      {"avx512bf16", kAvx512, cpu().avx512bf16},
      {"avx512", kAvx512, cpu().avx512},
      {"avxvnni", kAvxVnni, cpu().avxvnni},
      {"avx2", kAvx2, cpu().avx2},
      {"neon_i8mm", kNeonI8mm, cpu().neon_i8mm},
      {"neon_dotprod", kNeonDotprod, cpu().neon_dotprod},
      {"neon", kNeon, cpu().neon},
      {"scalar", &scalar_table, true},
  };
  return {std::begin(list), std::end(list)};
}

const KernelTable& select(const char* name, Compute compute) {
  std::string_view wanted = name;
  std::string subject = "instruction set '" + std::string(name) + "'";
  const char* forced = std::getenv(kIsaVariable);
  if (wanted == "auto" && forced != nullptr && *forced != '\0') {
    wanted = forced;
    subject = std::string("environment variable ") + kIsaVariable + "='" + forced + "'";
  }
  const KernelTable& table = wanted == "auto" ? best_table() : select_by_name(wanted, subject);
  return compute == Compute::fast ? fast_table(wanted, table) : table;
}

}  // namespace openelm::kernels

#include "kernels/cpu_features.h"

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace openelm::kernels {

#if defined(__x86_64__)
namespace {

struct CpuidResult {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

/// All zeros for a leaf that the CPU does not have.
CpuidResult cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) noexcept {
  CpuidResult r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

/// Register sets that the operating system saves (XCR0).
std::uint64_t enabled_register_sets() noexcept {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

bool is_amd() noexcept {
  const CpuidResult vendor = cpuid(0);
  return vendor.ebx == signature_AMD_ebx && vendor.ecx == signature_AMD_ecx &&
         vendor.edx == signature_AMD_edx;
}

constexpr bool has_all(std::uint64_t bits, std::uint64_t wanted) noexcept {
  return (bits & wanted) == wanted;
}

}  // namespace

CpuFeatures detect_cpu_features() noexcept {
  constexpr std::uint64_t kYmmState = 0x06;  // SSE and AVX registers
  constexpr std::uint64_t kZmmState = 0xE6;  // and the masks, ZMM0-15's upper halves, ZMM16-31

  CpuFeatures features;
  const CpuidResult basic = cpuid(1);
  if (!has_all(basic.ecx, bit_OSXSAVE)) return features;
  const std::uint64_t enabled = enabled_register_sets();
  const CpuidResult extended = cpuid(7);

  features.avx2 = has_all(enabled, kYmmState) &&
                  has_all(basic.ecx, std::uint64_t{bit_AVX} | bit_FMA | bit_F16C) &&
                  has_all(extended.ebx, bit_AVX2);
  constexpr std::uint64_t kAvxVnni = 1U << 4;
  features.avxvnni = features.avx2 && has_all(cpuid(7, 1).eax, kAvxVnni);
  features.avx512 = features.avx2 && has_all(enabled, kZmmState) &&
                    has_all(extended.ebx, std::uint64_t{bit_AVX512F} | bit_AVX512BW | bit_AVX512DQ |
                                              bit_AVX512VL) &&
                    has_all(extended.ecx, bit_AVX512VNNI);
  constexpr std::uint64_t kAvx512Bf16 = 1U << 5;
  features.avx512bf16 = features.avx512 && has_all(cpuid(7, 1).eax, kAvx512Bf16);
  // AMD's do twice the work of fma (measured on Zen 5); Intel's have been measured at half of it.
  features.fast_bf16 = features.avx512bf16 && is_amd();
  return features;
}

#elif defined(__aarch64__)

CpuFeatures detect_cpu_features() noexcept {
  CpuFeatures features;
#if defined(__linux__)
  const unsigned long basic = getauxval(AT_HWCAP);
  features.neon = (basic & HWCAP_ASIMD) != 0;
  features.neon_dotprod = features.neon && (basic & HWCAP_ASIMDDP) != 0;
  features.neon_i8mm = features.neon && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
#else
  features.neon = true;          // every other AArch64 system requires it
#if defined(__APPLE__)
  features.neon_dotprod = true;  // in all of Apple's computers
#endif
#endif
  return features;
}

#else

CpuFeatures detect_cpu_features() noexcept { return {}; }

#endif

}  // namespace openelm::kernels

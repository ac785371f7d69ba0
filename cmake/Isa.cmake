# Instruction sets are compiled one folder each, with that folder's flags; the rest of the program
# keeps the architecture's baseline, so that it starts on any CPU.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(OPENELM_ARCH x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(OPENELM_ARCH arm)
else()
  set(OPENELM_ARCH other)
endif()

set(OPENELM_AVX2_FLAGS -mavx2 -mfma -mf16c)
set(OPENELM_AVXVNNI_FLAGS ${OPENELM_AVX2_FLAGS} -mavxvnni)
set(OPENELM_AVX512_FLAGS ${OPENELM_AVX2_FLAGS} -mavx512f -mavx512bw -mavx512vl -mavx512dq
  -mavx512vnni)
# GCC's own AVX-512 headers trip these warnings (its bug 105593).
foreach(warning uninitialized maybe-uninitialized)
  list(APPEND OPENELM_AVX512_FLAGS $<$<CXX_COMPILER_ID:GNU>:-Wno-${warning}>)
endforeach()

# openelm_isa_source(target source flags...): adds a source of an instruction set's folder. Kernels
# do not throw; without exceptions their objects need no (weak) reference to the handler either.
# UBSan's checks around every intrinsic cost GCC minutes a file; AddressSanitizer stays on.
function(openelm_isa_source target source)
  cmake_path(ABSOLUTE_PATH source)
  target_sources(${target} PRIVATE ${source})
  set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES
    COMPILE_OPTIONS "${ARGN};-fno-exceptions;-fno-sanitize=undefined")
endfunction()

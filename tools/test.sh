#!/usr/bin/env bash
# Installs what the tests need, builds, and runs them: `tools/test.sh [part...]`. Parts:
#   native    Release build, all tests
#   asan      AddressSanitizer and UndefinedBehaviorSanitizer, all tests of library and program
#   neon      ARM64 cross build, its tests under qemu (x86-64 Debian and Ubuntu)
#   clang     clang++ builds everything, warnings are errors
#   coverage  line and branch coverage (not part of the default)
# Without arguments: native, asan, neon and clang, as far as this machine has the tools.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd -P)
cd "$root"
exec </dev/null

have() { command -v "$1" >/dev/null 2>&1; }

for part; do
  case $part in
    native | asan | neon | clang | coverage) ;;
    *) sed -n '2,8s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
  esac
done

tools/setup.sh tests
jobs=$(getconf _NPROCESSORS_ONLN)
if have ninja; then export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}; fi

if [ $# -eq 0 ]; then
  set -- native asan
  if have aarch64-linux-gnu-g++ && have qemu-aarch64; then
    set -- "$@" neon
  else
    echo "tools/test.sh: no ARM64 cross compiler or no qemu-aarch64: NEON is not tested here"
  fi
  if have clang++; then
    set -- "$@" clang
  else
    echo "tools/test.sh: no clang++: the clang build is left out"
  fi
fi

# build(preset, option...): configures and builds in the preset's folder.
build() {
  cmake --preset "$1" -DOPENELM_TESTS=ON -DOPENELM_WERROR=ON "${@:2}" >/dev/null &&
    cmake --build --preset "$1" --parallel "$jobs"
}

run_native() { build release && ctest --preset release; }
run_asan() {
  # Sanitizers add weak symbols of their own, so objects are not checked for them here, and make GCC
  # warn of variables that are never read uninitialised, so warnings are no errors here.
  build asan -DOPENELM_WERROR=OFF &&
    ctest --preset asan --label-exclude 'slow|style|tools' --exclude-regex isa_symbols
}
run_neon() { build aarch64-cross && ctest --preset aarch64-cross --parallel "$jobs"; }
# Nothing is run here, and warnings do not need the optimiser.
run_clang() { build clang -DCMAKE_BUILD_TYPE=Debug; }
run_coverage() { tools/coverage.sh; }

summary=""
for part; do
  echo "== $part"
  start=$SECONDS
  if "run_$part"; then
    summary+="$part: passed in $((SECONDS - start)) s"$'\n'
  else
    printf '== summary\n%s%s: FAILED after %s s\n' "$summary" "$part" $((SECONDS - start))
    exit 1
  fi
done
printf '== summary\n%sall passed in %s s\n' "$summary" "$SECONDS"

#!/usr/bin/env bash
# Line and branch coverage of src by the tests: `tools/coverage.sh [--html FOLDER]`.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd -P)
cd "$root"
if [ $# -eq 2 ] && [ "$1" = --html ]; then
  mkdir -p "$2"
  pages=(--html-details "$2/index.html")
elif [ $# -ne 0 ]; then
  echo "usage: tools/coverage.sh [--html FOLDER]" >&2
  exit 2
fi

build=build-coverage
if command -v ninja >/dev/null; then export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}; fi
cmake --preset coverage -DOPENELM_TESTS=ON >/dev/null
cmake --build --preset coverage --parallel "$(getconf _NPROCESSORS_ONLN)"
find "$build" -name '*.gcda' -delete
ctest --preset coverage

# Branches that only an exception would take out of an expression are the compiler's, not ours.
gcovr --root . --filter src/ --object-directory "$build" --exclude-throw-branches \
  --print-summary ${pages[@]+"${pages[@]}"}

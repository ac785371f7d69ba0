#!/usr/bin/env bash
# Runs openelm with the arguments given, after installing what its build needs and building what
# changed. Standard input and output are the program's own; messages of the build go to stderr,
# on a terminal as they come, elsewhere only when the build fails.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd -P)
build=$root/build

# Runs one step of the build.
step() {
  if [ -t 2 ]; then
    "$@" </dev/null 2>&1 |
      { grep --line-buffered -v -e '^ninja: no work' -e 'Built target' || true; } >&2
  elif ! "$@" </dev/null >"$build/last-step.log" 2>&1; then
    cat "$build/last-step.log" >&2
    return 1
  fi
}

configure() {
  echo "openelm: building (the first time takes a minute or two)" >&2
  if command -v ninja >/dev/null; then export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}; fi
  step cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DOPENELM_TESTS=OFF
}

build_program() {
  if [ ! -f "$build/build.ninja" ] && [ ! -f "$build/Makefile" ]; then configure || return; fi
  step cmake --build "$build" --target openelm-cli --parallel "$(getconf _NPROCESSORS_ONLN)"
}

# Two runs at once must not build in each other's way; the lock ends with this descriptor.
mkdir -p "$build"
if command -v flock >/dev/null; then
  exec 9>"$build/.lock"
  flock 9
fi
"$root/tools/setup.sh" build </dev/null >&2
if ! build_program; then
  echo "openelm: the build failed" >&2
  exit 1
fi
exec 9>&-
exec "$build/openelm" "$@"

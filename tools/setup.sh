#!/usr/bin/env bash
# Installs what is missing to build openelm: `tools/setup.sh [build|tests]` (default: build).
# Says nothing and touches nothing when all is there. OPENELM_NO_INSTALL=1 leaves everything to you.
set -euo pipefail

wanted=${1:-build}
case $wanted in
  build | tests) ;;
  *) echo "usage: tools/setup.sh [build|tests]" >&2; exit 2 ;;
esac
if [ "${OPENELM_NO_INSTALL:-0}" != 0 ]; then exit 0; fi

have() { command -v "$1" >/dev/null 2>&1; }

# Runs a command as root, or says what to run. Standard input is closed: nothing may ask.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@" </dev/null >&2
  elif have sudo && { sudo -n true 2>/dev/null || [ -t 2 ]; }; then
    sudo "$@" >&2
  else
    echo "openelm: needs packages that only root can install. Please run:  sudo $*" >&2
    echo "openelm: (or set OPENELM_NO_INSTALL=1 if the libraries are installed in another way)" >&2
    exit 1
  fi
}

# Prints those of the packages given that are not installed.
missing_deb() {
  local installed
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  local package
  for package; do
    case $'\n'$installed$'\n' in
      *$'\n'"$package installed"$'\n'*) ;;
      *) echo "$package" ;;
    esac
  done
}
missing_rpm() {
  local package
  for package; do rpm -q --whatprovides "$package" >/dev/null 2>&1 || echo "$package"; done
}
missing_brew() {
  local prefix package
  prefix=$(brew --prefix)
  for package; do [ -e "$prefix/opt/$package" ] || echo "$package"; done
}

# Programs count as installed wherever they come from; libraries by their package.
need() { have "$1" || packages+=("$2"); }

packages=()
if have apt-get && have dpkg-query; then
  need c++ g++
  need cmake cmake
  have ninja || have make || packages+=(ninja-build)
  libraries=(libsentencepiece-dev nlohmann-json3-dev libcli11-dev libedit-dev libspdlog-dev)
  if [ "$wanted" = tests ]; then
    need python3 python3
    need nm binutils
    need clang++ clang
    need clang-format clang-format
    need gcovr gcovr
    libraries+=(libgtest-dev)
    if [ "$(uname -m)" = x86_64 ]; then
      need qemu-aarch64 qemu-user
      libraries+=(googletest g++-aarch64-linux-gnu libc6-dev-arm64-cross libsimde-dev)
    fi
  fi
  while IFS= read -r package; do packages+=("$package"); done < <(missing_deb "${libraries[@]}")
  if [ ${#packages[@]} -gt 0 ]; then
    echo "openelm: installing ${packages[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get update -qq || echo "openelm: apt-get update failed, trying without" >&2
    as_root apt-get install -y -qq --no-install-recommends "${packages[@]}"
  fi
elif have dnf; then
  need c++ gcc-c++
  need cmake cmake
  have ninja || have make || packages+=(ninja-build)
  libraries=(sentencepiece-devel json-devel cli11-devel libedit-devel spdlog-devel)
  if [ "$wanted" = tests ]; then
    need python3 python3
    need clang++ clang
    need gcovr gcovr
    libraries+=(gtest-devel)
  fi
  while IFS= read -r package; do packages+=("$package"); done < <(missing_rpm "${libraries[@]}")
  if [ ${#packages[@]} -gt 0 ]; then
    echo "openelm: installing ${packages[*]}" >&2
    as_root dnf install -y "${packages[@]}"
  fi
elif have brew; then
  need cmake cmake
  have ninja || have make || packages+=(ninja)
  libraries=(sentencepiece nlohmann-json cli11 libedit spdlog)
  if [ "$wanted" = tests ]; then
    need gcovr gcovr
    libraries+=(googletest)
  fi
  while IFS= read -r package; do packages+=("$package"); done < <(missing_brew "${libraries[@]}")
  if [ ${#packages[@]} -gt 0 ]; then
    echo "openelm: installing ${packages[*]}" >&2
    brew install "${packages[@]}" </dev/null >&2
  fi
elif [ "$wanted" = tests ] || ! { have c++ && have cmake; }; then
  cat >&2 <<'TEXT'
openelm: none of apt-get, dnf and brew is here, so packages cannot be installed for you.
openelm: Needed: a C++20 compiler, CMake 3.22 or newer, ninja or make, and the libraries
openelm: sentencepiece, nlohmann_json, CLI11, libedit, spdlog (tests: GoogleTest, python3).
openelm: With these in place, set OPENELM_NO_INSTALL=1 and run the command again.
TEXT
  exit 1
fi

# Finds the libraries that this configuration needs. What is missing is named in one message, with
# the name that each package manager knows it by.
set(openelm_missing "")

# openelm_note_missing(library apt dnf brew)
macro(openelm_note_missing library apt dnf brew)
  string(APPEND openelm_missing
    "  ${library}\n      apt: ${apt}    dnf: ${dnf}    brew: ${brew}\n")
endmacro()

# openelm_find(library apt dnf brew arguments of find_package...)
macro(openelm_find library apt dnf brew)
  find_package(${library} ${ARGN} QUIET)
  if(NOT ${library}_FOUND)
    openelm_note_missing(${library} ${apt} ${dnf} ${brew})
  endif()
endmacro()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
openelm_find(nlohmann_json nlohmann-json3-dev json-devel nlohmann-json 3.10)
if(OPENELM_TOKENIZER)
  openelm_find(SentencePiece libsentencepiece-dev sentencepiece-devel sentencepiece)
endif()
if(OPENELM_CLI)
  openelm_find(CLI11 libcli11-dev cli11-devel cli11)
  openelm_find(LibEdit libedit-dev libedit-devel libedit)
  openelm_find(spdlog libspdlog-dev spdlog-devel spdlog)
endif()

if(OPENELM_TESTS AND CMAKE_CROSSCOMPILING)
  # There is no packaged GoogleTest for a foreign architecture, but its source is packaged.
  find_path(OPENELM_GOOGLETEST_SOURCE googletest/src/gtest-all.cc
    HINTS /usr/src/googletest NO_CMAKE_FIND_ROOT_PATH DOC "Source folder of GoogleTest")
  if(NOT OPENELM_GOOGLETEST_SOURCE)
    openelm_note_missing("GoogleTest's source, or -DOPENELM_GOOGLETEST_SOURCE=folder"
      googletest gtest-devel googletest)
  endif()
elseif(OPENELM_TESTS)
  openelm_find(GTest libgtest-dev gtest-devel googletest)
endif()

if(openelm_missing)
  message(FATAL_ERROR "These libraries were not found:\n${openelm_missing}"
    "Install them (tools/setup.sh does, where it can), use vcpkg.json, or point CMAKE_PREFIX_PATH "
    "at them. Tests can be left out with -DOPENELM_TESTS=OFF.")
endif()

if(OPENELM_TESTS AND CMAKE_CROSSCOMPILING)
  set(BUILD_GMOCK OFF CACHE BOOL "" FORCE)
  set(INSTALL_GTEST OFF CACHE BOOL "" FORCE)
  set(CMAKE_WARN_DEPRECATED OFF CACHE BOOL "" FORCE)
  set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
  add_subdirectory(${OPENELM_GOOGLETEST_SOURCE} googletest EXCLUDE_FROM_ALL)
  unset(CMAKE_POLICY_VERSION_MINIMUM)
endif()

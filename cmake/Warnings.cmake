# openelm_warnings(target): the warnings every source of the project is clean of.
function(openelm_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12
     AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlaps in std::string's own operator+ (its bug 105651).
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(OPENELM_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# openelm_warnings(target): the warnings every source of the project is clean of.
function(openelm_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion)
  if(OPENELM_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

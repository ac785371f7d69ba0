# Finds libedit, which installs a pkg-config file and no CMake package. Needs neither: pkg-config,
# where present, only says where to look first.
#
# Defines the target LibEdit::LibEdit.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(PC_LibEdit QUIET libedit)
endif()

find_path(LibEdit_INCLUDE_DIR histedit.h HINTS ${PC_LibEdit_INCLUDE_DIRS})
find_library(LibEdit_LIBRARY NAMES edit HINTS ${PC_LibEdit_LIBRARY_DIRS})
mark_as_advanced(LibEdit_INCLUDE_DIR LibEdit_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibEdit
  REQUIRED_VARS LibEdit_LIBRARY LibEdit_INCLUDE_DIR
  VERSION_VAR PC_LibEdit_VERSION)

if(LibEdit_FOUND AND NOT TARGET LibEdit::LibEdit)
  add_library(LibEdit::LibEdit UNKNOWN IMPORTED)
  set_target_properties(LibEdit::LibEdit PROPERTIES
    IMPORTED_LOCATION "${LibEdit_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LibEdit_INCLUDE_DIR}")
endif()

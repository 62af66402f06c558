# SPDX-License-Identifier: Apache-2.0
#
# For the wheel: every library that is not glibc's goes into our own files, from its static archive.
#
# pyproject.toml has CMake include this right after project(), before any package is looked for: packages found by
# CMake's own modules then resolve to archives; those that come with a configuration of their own are found here first
# and pointed at theirs. Debian's archives are position-independent. fmt and spdlog have none: they become header-only.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
set(OPENSSL_USE_STATIC_LIBS ON)
set(ZLIB_USE_STATIC_LIBS ON)
set(Protobuf_USE_STATIC_LIBS ON)

find_package(Threads REQUIRED)
find_package(absl CONFIG REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(yaml-cpp CONFIG QUIET)
find_package(libjpeg-turbo CONFIG QUIET)

# leat_use_archive(TARGET): an imported shared library stands for the archive beside it.
function(leat_use_archive TARGET)
  foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE)
    get_target_property(location ${TARGET} ${property})
    if(location MATCHES "^(.*)\\.so[.0-9]*$")
      set(archive "${CMAKE_MATCH_1}.a")
      if(NOT EXISTS "${archive}")
        message(FATAL_ERROR "${TARGET}: no ${archive} beside ${location}")
      endif()
      set_target_properties(${TARGET} PROPERTIES ${property} "${archive}")
    endif()
  endforeach()
endfunction()

get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target IN LISTS imported)
  if(target MATCHES "^(absl::|gRPC::(grpc|gpr|upb|address_sorting)|gRPC::grpc\\+\\+(_reflection)?$|yaml-cpp$)")
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "SHARED_LIBRARY")
      leat_use_archive(${target})
    endif()
  endif()
endforeach()

# Found by pkg-config as -lNAME, which prefers the shared one.
foreach(pair re2::re2=re2 c-ares::cares=cares)
  string(REPLACE "=" ";" pair "${pair}")
  list(GET pair 0 target)
  list(GET pair 1 name)
  if(TARGET ${target})
    find_library(LEAT_ARCHIVE_${name} NAMES ${name} REQUIRED)
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${LEAT_ARCHIVE_${name}}")
  endif()
endforeach()

if(TARGET libjpeg-turbo::turbojpeg AND TARGET libjpeg-turbo::turbojpeg-static)
  leat_use_archive(libjpeg-turbo::turbojpeg)
  leat_use_archive(libjpeg-turbo::jpeg)
endif()

# A target of a library cannot lose its file, so it gets one with nothing in it.
set(LEAT_EMPTY_ARCHIVE "${CMAKE_BINARY_DIR}/empty.a")
file(WRITE "${LEAT_EMPTY_ARCHIVE}" "!<arch>\n")
foreach(target fmt::fmt spdlog::spdlog)
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration IN LISTS configurations)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${configuration} "${LEAT_EMPTY_ARCHIVE}")
  endforeach()
endforeach()
set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
set_target_properties(spdlog::spdlog PROPERTIES INTERFACE_COMPILE_DEFINITIONS SPDLOG_FMT_EXTERNAL)

# Our symbols stay ours: nothing of an archive is seen by, or taken from, other libraries of a process.
add_link_options(-static-libstdc++ -static-libgcc -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,-Bsymbolic)
add_compile_options(-ffunction-sections -fdata-sections)

# find_package(aoti_wgpu) defines the target aoti_wgpu::aoti_wgpu.
#
# It is the shared library; with AOTI_WGPU_STATIC on before find_package, it is the static
# one, linked whole. Both are there under their own names as well: aoti_wgpu::shared and
# aoti_wgpu::static.
#
# Programs are opened with RTLD_LOCAL and look for the functions in the process. So whoever
# links the target gets what exports them: all of the static library, not only what the host
# calls, and -rdynamic (-export_dynamic on macOS). Link it to the executable that opens the
# programs, or to a shared library that is loaded RTLD_GLOBAL.

get_filename_component(_aoti_wgpu_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET aoti_wgpu::static)
  if(APPLE)
    set(_aoti_wgpu_whole "-Wl,-force_load,${_aoti_wgpu_prefix}/lib/libaoti_wgpu.a")
    set(_aoti_wgpu_private -lc++ "-framework Metal" "-framework QuartzCore" "-framework CoreGraphics"
        "-framework Foundation" "-framework AppKit" "-framework IOKit")
    set(_aoti_wgpu_export "-Wl,-export_dynamic")
    set(_aoti_wgpu_keep "")
    set(_aoti_wgpu_shared "libaoti_wgpu.dylib")
  else()
    set(_aoti_wgpu_whole
        "-Wl,--whole-archive,${_aoti_wgpu_prefix}/lib/libaoti_wgpu.a,--no-whole-archive")
    set(_aoti_wgpu_private -lstdc++ -lgcc_s -ldl -lpthread -lrt -lm)
    set(_aoti_wgpu_export "-rdynamic")
    # The linker would leave out a library that the host calls nothing of.
    set(_aoti_wgpu_keep "-Wl,--no-as-needed")
    set(_aoti_wgpu_shared "libaoti_wgpu.so")
  endif()

  add_library(aoti_wgpu::static INTERFACE IMPORTED)
  set_target_properties(aoti_wgpu::static PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_aoti_wgpu_prefix}/include"
    INTERFACE_LINK_LIBRARIES "${_aoti_wgpu_whole};${_aoti_wgpu_private}"
    INTERFACE_LINK_OPTIONS "${_aoti_wgpu_export}")

  add_library(aoti_wgpu::shared SHARED IMPORTED)
  set_target_properties(aoti_wgpu::shared PROPERTIES
    IMPORTED_LOCATION "${_aoti_wgpu_prefix}/lib/${_aoti_wgpu_shared}"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_aoti_wgpu_prefix}/include"
    INTERFACE_LINK_OPTIONS "${_aoti_wgpu_export};${_aoti_wgpu_keep}")

  add_library(aoti_wgpu::aoti_wgpu INTERFACE IMPORTED)
  if(AOTI_WGPU_STATIC)
    set_property(TARGET aoti_wgpu::aoti_wgpu PROPERTY INTERFACE_LINK_LIBRARIES aoti_wgpu::static)
  else()
    set_property(TARGET aoti_wgpu::aoti_wgpu PROPERTY INTERFACE_LINK_LIBRARIES aoti_wgpu::shared)
  endif()
endif()

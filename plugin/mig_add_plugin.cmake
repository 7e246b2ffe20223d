# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
#
# mig_add_plugin(NAME SOURCES a.cc ... LIBS lib ...)
#
# Builds a plugin twice from the same objects:
#   mig_plugin_NAME          the module NAME.so, for dlopen
#   mig_plugin_NAME_archive  libmig_transport_NAME.a, for hosts that can't; its
#                            one global symbol is mig_transport_query_NAME
# The sources define mig_transport_query with default visibility, and nothing
# else needs to know. LIBS may be object libraries, which go into both; of
# others, users of the archive link their own.
# mig_plugin_NAME_objects are the objects, for unit tests.

set_property(GLOBAL PROPERTY MIG_PLUGINS "")
set(MIG_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/mig_plugin.map)

function(mig_add_plugin name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  set(objects mig_plugin_${name}_objects)
  add_library(${objects} OBJECT ${ARG_SOURCES})
  mig_warnings(${objects})
  target_link_libraries(${objects} PUBLIC mig_abi ${ARG_LIBS})

  set(all_objects $<TARGET_OBJECTS:${objects}>)
  set(libraries)
  foreach(lib IN LISTS ARG_LIBS)
    set(type)
    if(TARGET ${lib})
      get_target_property(type ${lib} TYPE)
    endif()
    if(type STREQUAL "OBJECT_LIBRARY")
      list(APPEND all_objects $<TARGET_OBJECTS:${lib}>)
      # What it is built on, without its objects: those are in already.
      list(APPEND libraries $<TARGET_PROPERTY:${lib},INTERFACE_LINK_LIBRARIES>)
    else()
      list(APPEND libraries ${lib})
    endif()
  endforeach()
  mig_plugin_module(${name} "${all_objects}" "${libraries}")
  mig_plugin_archive(${name} "${all_objects}" "${libraries}")
  set_property(GLOBAL APPEND PROPERTY MIG_PLUGINS ${name})
endfunction()

function(mig_plugin_module name objects libraries)
  set(module mig_plugin_${name})
  add_library(${module} MODULE ${objects})
  target_link_libraries(${module} PRIVATE ${libraries})
  # The version script also hides what the C++ library instantiates; nodelete
  # because nothing that was once C++ is really unloaded (DESIGN H11).
  target_link_options(${module} PRIVATE
    -Wl,--version-script=${MIG_PLUGIN_MAP} -Wl,-z,nodelete -Wl,-z,relro)
  if(NOT MIG_SANITIZE)
    target_link_options(${module} PRIVATE -Wl,-z,defs) # its runtime is the exe's
  endif()
  set_target_properties(${module} PROPERTIES
    PREFIX "" SUFFIX ".so" OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${MIG_PLUGIN_OUTPUT_DIR}
    LINK_DEPENDS ${MIG_PLUGIN_MAP})
  install(TARGETS ${module} LIBRARY DESTINATION ${MIG_INSTALL_PLUGINDIR})
endfunction()

# Partial linking makes one object, in which every other symbol can be made
# local. COMDAT groups are dissolved: a group whose symbols became local must
# not be merged with a group of the host's.
function(mig_plugin_archive name objects libraries)
  set(archive ${MIG_PLUGIN_OUTPUT_DIR}/libmig_transport_${name}.a)
  set(whole ${CMAKE_CURRENT_BINARY_DIR}/mig_transport_${name}.o)
  set(entry mig_transport_query_${name})
  add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${MIG_PLUGIN_OUTPUT_DIR}
    COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${whole} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --redefine-sym mig_transport_query=${entry}
            ${whole}
    COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=${entry} ${whole}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} qc ${archive} ${whole}
    COMMAND ${CMAKE_RANLIB} ${archive}
    DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Linking plugin archive libmig_transport_${name}.a")
  add_custom_target(mig_plugin_${name}_archive_file ALL DEPENDS ${archive})
  add_library(mig_plugin_${name}_archive INTERFACE)
  target_link_libraries(mig_plugin_${name}_archive INTERFACE
    ${archive} ${libraries})
  add_dependencies(mig_plugin_${name}_archive mig_plugin_${name}_archive_file)
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()

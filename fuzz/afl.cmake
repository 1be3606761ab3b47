# The targets for AFL++: bin/afl/fuzz_* and bin/asan/afl/fuzz_*, and its custom mutator. Built only by
# name or by `ninja afl`, because they need Debian's afl++.
set(FRAMESTORM_AFL_FOLDER /usr/lib/afl CACHE PATH "folder of AFL++'s afl-compiler-rt.o")
set(afl_runtime ${FRAMESTORM_AFL_FOLDER}/afl-compiler-rt.o)
set(afl_missing "AFL++ is missing (${afl_runtime}): `apt-get install afl++`, or let \
`scripts/framestorm fuzz --engine afl` install it.")
add_custom_target(afl_runtime
  COMMAND sh -c [[test -e "$0" || { echo "$1" >&2; false; }]] ${afl_runtime} ${afl_missing}
  VERBATIM)

add_library(framestorm_afl_engine OBJECT EXCLUDE_FROM_ALL
  afl_front.cpp afl_map.cpp engine_afl.cpp)
target_link_libraries(framestorm_afl_engine PUBLIC framestorm_fuzz_driver)

add_library(framestorm_afl_mutator MODULE EXCLUDE_FROM_ALL afl_mutator.cpp)
set_target_properties(framestorm_afl_mutator PROPERTIES
  PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/afl)
target_link_libraries(framestorm_afl_mutator PRIVATE framestorm_targets)

add_custom_target(afl DEPENDS framestorm_afl_mutator)
foreach(target ${fuzz_targets})
  framestorm_program(${target}-afl SOURCES main.cpp ${target}.cpp LIBRARIES framestorm_afl_engine)
  foreach(variant "" -asan)
    set(program ${target}-afl${variant})
    string(REPLACE - / folder "${variant}")
    set_target_properties(${program} PROPERTIES EXCLUDE_FROM_ALL TRUE OUTPUT_NAME ${target}
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin${folder}/afl)
    # As an option: a library would have to be there before anything is built.
    target_link_options(${program} PRIVATE ${afl_runtime})
    add_dependencies(${program} afl_runtime)
    add_dependencies(afl ${program})
  endforeach()
endforeach()

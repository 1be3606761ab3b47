# The scenario table, without a JVM. Included by CMakeLists.txt of this folder.
add_library(framestorm_scenario STATIC scenario.cpp trace_pattern.cpp)
target_link_libraries(framestorm_scenario PUBLIC framestorm_input)

if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/scenario_test.cpp)
framestorm_test(scenario_test
  SOURCES scenario_test.cpp
  LIBRARIES framestorm_scenario)
endif()

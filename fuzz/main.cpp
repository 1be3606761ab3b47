// A fuzz target as a program: linked with one fuzz_*.cpp, which says what it is.
#include "fuzz/driver.h"
#include "fuzz/mutator_profile.h"

int main(int argc, char** argv) {
  return framestorm::run_target(framestorm::only_target(), argc, argv);
}

// Mutated general registers of a real context: pc, sp, fp and the others.
#include "fuzz/driver.h"

int main(int argc, char** argv) { return framestorm::run_target("fuzz_ucontext", argc, argv); }

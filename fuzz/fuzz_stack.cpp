// Mutated words of the victim's stack: return addresses, saved frame pointers, interpreter frame
// slots.
#include "fuzz/driver.h"

int main(int argc, char** argv) { return framestorm::run_target("fuzz_stack", argc, argv); }

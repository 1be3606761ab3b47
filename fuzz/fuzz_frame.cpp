// sp/fp/pc triples in a real context: every other register is the victim's.
#include "fuzz/driver.h"

int main(int argc, char** argv) { return framestorm::run_target("fuzz_frame", argc, argv); }

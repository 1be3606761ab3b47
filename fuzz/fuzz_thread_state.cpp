// Mutated JavaThread: thread state and the last-Java-frame anchor.
#include "fuzz/driver.h"

int main(int argc, char** argv) { return framestorm::run_target("fuzz_thread_state", argc, argv); }

// The call's own arguments: depth, null and misaligned context, foreign JNIEnv.
#include "fuzz/driver.h"

int main(int argc, char** argv) { return framestorm::run_target("fuzz_call", argc, argv); }

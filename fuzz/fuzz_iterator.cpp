// Sequences of calls to the iterator API, each checked against a plain model
// (harness/walkers/iterator_sequence.h).
#include "fuzz/driver.h"

int main(int argc, char** argv) { return framestorm::run_target("fuzz_iterator", argc, argv); }

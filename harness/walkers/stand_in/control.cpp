#include "harness/walkers/stand_in/stand_in.h"

extern "C" [[gnu::visibility("default")]] framestorm::stand_in::Control* framestorm_stand_in() {
  static framestorm::stand_in::Control control;
  return &control;
}

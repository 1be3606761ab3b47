// framestorm's JVMTI agent, linked into the executable (JEP 178: -agentlib finds
// Agent_OnLoad_<name> in the process). It enables ClassLoad from the start, without which
// AsyncGetCallTrace returns ticks_no_class_load (-1), creates every jmethodID at ClassPrepare, so
// that walks need not, and feeds the code map and the method table.
#pragma once

#include <jvmti.h>

namespace framestorm {

inline constexpr char kAgentName[] = "framestorm";

}  // namespace framestorm

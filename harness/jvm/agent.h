// framestorm's JVMTI agent, linked into the executable (JEP 178: -agentlib finds
// Agent_OnLoad_<name> in the process). It enables ClassLoad from the start, without which
// AsyncGetCallTrace returns ticks_no_class_load (-1), creates every jmethodID at ClassPrepare, so
// that walks need not, and feeds the code map and the method table.
#pragma once

#include <jvmti.h>

namespace framestorm {

inline constexpr char kAgentName[] = "framestorm";

// The agent's start in a JVM: Agent_OnLoad, or Agent_OnAttach of a running one. JNI_OK or JNI_ERR.
jint load_agent(JavaVM* vm);
// What VMInit would tell, for an agent that came later. On a thread attached to the JVM. Throws
// what events.live throws: the JVM is another's, and goes on as if the agent were not there.
void announce_running(JavaVM* vm);
// Asks for a method anew: one that a redefinition put another version in place of, or one that no
// class has any more, which gets its ID when somebody first asks JVMTI for its frame. `env`: the
// calling thread's. Nothing when its class is gone.
void know_method(JNIEnv* env, jmethodID method);

}  // namespace framestorm

// The traces that a profiler recorded, each held against the shadow stack that the observer noted when
// the profiler's handler was called for it (observer.h).
//
// Which call that was, the time says: a sample is timed while its handler is at work, on its thread.
// The profiler's clock may be another one, or begin elsewhere: by the JVM's ticks that becomes
// CLOCK_MONOTONIC, to some microseconds, and the rest is the difference by which most samples fall into
// a call. Where that are not nearly all, no sample is judged.
//
// Both files are lines of fields with tabs between:
//
//   shadows.tsv  method NUMBER PUSH VERSIONS NAME DESCRIPTOR "BCI:CALLEE .."   instrumented ones
//                stack ID "METHOD .."                                          innermost first
//                name ID NAME(DESCRIPTOR)
//                code ID NAME "NAME@BCI .." ..     compiled: the frames at each of its places
//                handler TID OWNER STATE DEPTH STACK BEGIN END MAY_LACK KIND PLACE CODE    CODE -1: not compiled
//                clock TICKS NANOSECONDS
//                lost COUNT                                                    calls
//   traces.tsv   trace ID CUT FRAME ..       innermost first; NAME(DESCRIPTOR)@BCI, or - of native code
//                sample TID JAVA_ID TICKS TRACE [BIASED]    TID 0: of a virtual thread; TRACE -1: an error;
//                                                  BIASED 1: the sampler says it is of the next safepoint
#pragma once

#include <istream>
#include <nlohmann/json.hpp>
#include <string>

namespace framestorm::stress {

// `truth` as in stats.jsonl, of one walker of that name, and `examples` as in the figures of a
// recording (Samples.java). Throws std::runtime_error for what is no such file.
nlohmann::json judge_recorded(std::istream& shadows, std::istream& traces,
                              const std::string& walker);

}  // namespace framestorm::stress

#include "harness/input/input.h"

namespace framestorm {
namespace {

constexpr std::string_view kModeNames[] = {"same-thread", "separate-thread"};
constexpr std::string_view kValueKindNames[] = {
    "real",        "real-sp",   "real-fp",  "real-pc",    "stack-base", "stack-end",
    "guard-page",  "other-sp",  "other-pc", "slot",       "code",       "libc-text",
    "libjvm-text", "java-heap", "unmapped", "misaligned", "raw",
};
constexpr std::string_view kCodeKindNames[] = {"nmethod", "stub", "codelet", "function"};
constexpr std::string_view kCodeAnchorNames[] = {"entry", "verified-entry", "deopt-handler", "end"};
constexpr std::string_view kThreadFieldNames[] = {"state", "last-java-sp", "last-java-pc",
                                                  "last-java-fp"};
constexpr std::string_view kStackAnchorNames[] = {"sp", "fp", "stack-base", "last-java-sp",
                                                  "saved-anchor"};
constexpr std::string_view kMutationKindNames[] = {"register", "stack", "thread"};
constexpr std::string_view kDepthKindNames[] = {"normal",    "zero",      "one",  "exact",
                                                "exact - 1", "exact + 1", "huge", "raw"};
constexpr std::string_view kContextArgNames[] = {"victim", "null", "misaligned"};
constexpr std::string_view kEnvArgNames[] = {"victim", "null", "other-victim"};
constexpr std::string_view kIteratorCallNames[] = {
    "next",  "drain", "rewind", "state",     "thread-state", "open",         "open-frame",
    "leave", "jump",  "select", "next-null", "open-null",    "open-to-java",
};
constexpr std::string_view kQueueCallNames[] = {
    "register",    "deregister",   "enqueue",  "enqueue-null",  "element",     "change",
    "resize",      "enqueuable",   "on-start", "on-end",        "poll",        "leave",
    "select",      "no-memory",    "exit",     "register-mark", "remove-mark", "move-mark",
    "select-mark", "walk-to-mark", "return",   "unwind",        "freeze",      "throw-frozen",
};
constexpr std::string_view kStepEventNames[] = {
    "none", "signal", "gc", "deoptimise", "redefine", "unload", "sigsegv", "pop-frame", "exit"};

}  // namespace

std::string_view name_of(ScenarioId value) {
  return value < ScenarioId::count ? scenario_info(value).name : std::string_view("invalid");
}
std::string_view name_of(Mode value) { return name_in(kModeNames, value); }
std::string_view name_of(WalkerId value) {
  return value < WalkerId::count ? traits_of(value).name : std::string_view("invalid");
}
std::string_view name_of(ValueKind value) { return name_in(kValueKindNames, value); }
std::string_view name_of(CodeKind value) { return name_in(kCodeKindNames, value); }
std::string_view name_of(CodeAnchor value) { return name_in(kCodeAnchorNames, value); }
std::string_view name_of(ThreadField value) { return name_in(kThreadFieldNames, value); }
std::string_view name_of(StackAnchor value) { return name_in(kStackAnchorNames, value); }
std::string_view name_of(MutationKind value) { return name_in(kMutationKindNames, value); }
std::string_view name_of(DepthKind value) { return name_in(kDepthKindNames, value); }
std::string_view name_of(ContextArg value) { return name_in(kContextArgNames, value); }
std::string_view name_of(EnvArg value) { return name_in(kEnvArgNames, value); }
std::string_view name_of(IteratorCallKind value) { return name_in(kIteratorCallNames, value); }
std::string_view name_of(QueueCallKind value) { return name_in(kQueueCallNames, value); }
std::string_view name_of(StepEvent value) { return name_in(kStepEventNames, value); }

}  // namespace framestorm

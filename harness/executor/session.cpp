#include "harness/executor/session.h"

#include <fcntl.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "harness/guard/sampler_thread.h"
#include "harness/guard/signal_table.h"
#include "harness/guard/vm_error.h"
#include "harness/input/walker_table.h"
#include "harness/jvm/modules.h"
#include "harness/oracles/reference.h"
#include "harness/victim/natives.h"
#include "harness/victim/scenario.h"
#include "harness/walkers/profiler.h"

namespace framestorm {
namespace {

// Instructions a thread may take from its first one until its run() method: measured, see
// docs; a step count beyond the actual number makes no halt.
constexpr uint64_t kMaxTransientSteps = 20'000;

// Instructions that a victim goes on in one halt: an iteration of most scenarios' loops. Each costs
// some 10 us.
constexpr uint64_t kMaxStepsOn = 128;

// How far a victim is stepped to find a halt point: several iterations of every scenario's loop.
constexpr uint64_t kSeekSteps = 150'000;

// Halts in a row that may end with a thread waiting for another one's lock.
constexpr uint32_t kMostDeadlocks = 10;

// Other victims that run up to a halt together with the one it is for.
constexpr size_t kCompanions = 1;

// Up to `most`, which is at least 8. Log-uniform: the first instructions are as interesting as the many
// later ones.
uint64_t steps_of(uint64_t random, uint64_t most) {
  const auto limits = static_cast<uint64_t>(std::bit_width(most)) - 3;
  const uint64_t limit = most >> (random % limits);
  return 1 + (random >> 8) % limit;
}

// "thread 17 (C2 CompilerThre)"
std::string describe_thread(int tid) {
  std::ifstream comm("/proc/self/task/" + std::to_string(tid) + "/comm");
  std::string name;
  std::getline(comm, name);
  return "thread " + std::to_string(tid) + " (" + name + ")";
}

// What a thread that does not halt is doing: its state, its signals, its system call.
std::string why_not_halted(int tid) {
  const std::string task = "/proc/self/task/" + std::to_string(tid);
  std::string text;
  std::string line;
  for (std::ifstream status(task + "/status"); std::getline(status, line);) {
    if (line.starts_with("State:") || line.starts_with("SigPnd:") || line.starts_with("SigBlk:")) {
      text += (text.empty() ? "" : ", ") + line;
    }
  }
  std::ifstream call(task + "/syscall");
  if (std::getline(call, line)) text += ", system call " + line;
  if (const ThreadSlot* slot = World::get().find(tid)) {
    text += ", phase " + std::to_string(static_cast<uint32_t>(slot->phase.load())) +
            (slot->stepping ? ", stepping" : "") + ", parked " +
            std::to_string(slot->parks.load()) + " times";
  }
  std::ranges::replace(text, '\t', ' ');
  return text;
}

// Before the JVM starts: whatever has to see its first thread and its first instruction.
Jvm& start_jvm(const SessionOptions& options) {
  World::watch_threads();
  int log = -1;
  if (!options.sanitizer_log.empty()) {
    log = open(options.sanitizer_log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0) {
      throw std::system_error(errno, std::generic_category(),
                              "writing " + options.sanitizer_log.string());
    }
  }
  sanitizer::install(log);
  JvmOptions jvm = options.jvm;
  if (!options.profiler.empty()) {
    for (std::string& argument : ProfilerSpec::parse(options.profiler).jvm_arguments()) {
      jvm.extra_args.push_back(std::move(argument));
    }
  }
  return Jvm::start(jvm);
}

// Whether the options name the walker that is not the JVM's.
bool is_asked_for(const WalkerTraits& walker, const SessionOptions& options) {
  if (walker.origin == WalkerOrigin::shared_object) return !options.walker_plugin.empty();
  return walker.origin == WalkerOrigin::agent && !options.profiler.empty();
}

}  // namespace

Session::Session(const SessionOptions& options) : jvm_(start_jvm(options)) {
  Guard::install({&Jvm::claim_fault}, options.limits);
  // Until here the libjvm's own handlers print.
  jvm_.set_hook("framestorm_ubsan_hook", &sanitizer::on_ubsan);
  jvm_.set_hook("framestorm_error_hook", &vm_error::on_error);
  World::get().install([] { return Jvm::get().identity().current(); },
                       &MigratingLoop::host_from_signal);
  victims_ = std::make_unique<Victims>(jvm_);
  executor_ = std::make_unique<Executor>(jvm_, *victims_);
  add_walkers(options);
  std::vector<ScenarioId> wanted = options.scenarios;
  for (size_t i = 0; wanted.size() < kScenarios && options.scenarios.empty(); ++i) {
    wanted.push_back(static_cast<ScenarioId>(i));
  }
  if (!options.start_victims) wanted.clear();
  for (const ScenarioId scenario : wanted) {
    std::string reason;
    if (victims_->start(scenario, &reason)) {
      available_.push_back(scenario);
      victims_->pause(scenario);
    } else {
      unavailable_[scenario] = reason;
    }
  }
  if (!available_.empty()) {
    // Frames as they are in a program that has run for a while: with what a collection has left to do.
    if (jvm_.collections().leaves_frames_to_threads()) jvm_.jvmti()->ForceGarbageCollection();
    victims_->await_told_code();
  }
  jvm_.code_map().absorb();
  jvm_.methods().absorb();
}

Session::~Session() { release_world(); }

void Session::add_walkers(const SessionOptions& options) {
  for (const WalkerTraits& walker : kWalkers) {
    try {
      executor_->add_walker(make(walker, options));
    } catch (const SetupError& error) {
      if (walker.origin == WalkerOrigin::jdk || is_asked_for(walker, options)) throw;
      missing_walkers_[walker.id] = error.what();
    }
    if (executor_->walker(walker.id) != nullptr &&
        executor_->walker(walker.id)->contains_faults()) {
      Guard::walk_on_one_stack();
    }
  }
  // They have seen handlers that are not there any more, or passed by sigaction().
  signals::reclaim();
}

std::unique_ptr<Walker> Session::make(const WalkerTraits& walker, const SessionOptions& options) {
  if (is_asked_for(walker, options) && walker.origin == WalkerOrigin::shared_object) {
    return make_plugin(jvm_, options.walker_plugin);
  }
  if (is_asked_for(walker, options) && walker.origin == WalkerOrigin::agent) {
    auto profiler = Profiler::find(jvm_, ProfilerSpec::parse(options.profiler));
    profiler_ = profiler.get();
    return profiler;
  }
  return make_walker(walker.id, jvm_);
}

void Session::run_loop(std::function<void()> body) { MigratingLoop::get().run(std::move(body)); }

void Session::on_control_thread(const std::function<void()>& fn) {
  MigratingLoop& loop = MigratingLoop::get();
  loop.move_to(nullptr);
  loop.call_on_host([](void* arg) { (*static_cast<const std::function<void()>*>(arg))(); },
                    const_cast<void*>(static_cast<const void*>(&fn)));
}

void Session::release_world() {
  if (!halted_) return;
  World::get().release_all();
  halted_ = false;
  for (const ScenarioId scenario : active_) {
    // Whoever suspends a thread that a walk destroyed waits for ever.
    if (!executor_->not_reusable()) victims_->pause(scenario);
  }
  active_.clear();
}

void Session::let_run(ScenarioId focus, uint64_t random) {
  const int tid = victims_->of(focus).tid;
  if (tid == 0) return;
  if (scenario_info(focus).halt == Halt::busy) {
    // Far enough to be somewhere else, never the same distance.
    World::get().halt_after(tid, 20'000 + random % 200'000);
  } else {
    // It does not move by itself; whoever else runs now gets a moment.
    const timespec moment = {0, 300'000};
    nanosleep(&moment, nullptr);
  }
}

Session::Halted Session::halt_world(ScenarioId focus, const HaltPoint& halt, uint64_t random) {
  Halted result;
  release_world();
  jvm_.code_map().absorb();
  jvm_.methods().absorb();
  executor_->addresses().refresh();
  active_ = {focus};
  // Who is stepped to its halt point may take a second: nobody spins beside it for that long.
  for (size_t i = 0; i < kCompanions && halt.any && !available_.empty(); ++i) {
    active_.push_back(available_[(random >> (8 * i)) % available_.size()]);
  }
  for (const ScenarioId scenario : active_) victims_->resume(scenario);
  if (Victims::is_transient(focus)) {
    // A corpus has inputs of scenarios that were not asked for: nobody starts such a thread.
    if (is_available(focus)) victims_->catch_transient(focus, steps_of(random, kMaxTransientSteps));
  } else {
    let_run(focus, random);
  }
  Victim& victim = victims_->of(focus);
  if (!halt.any && !Victims::is_transient(focus) && victim.tid != 0) {
    result.at_halt_point = seek(victim, halt);
  }
  const auto guard_threads = Guard::own_threads();
  std::vector<int> exempt = {guard_threads.begin(), guard_threads.end()};
  exempt.push_back(sampler::held_thread());
  const HaltReport report = World::get().halt_all(exempt);
  halted_ = true;
  if (!report.refused.empty()) {
    const int tid = report.refused.front();
    const std::string why = why_not_halted(tid);
    release_world();
    if (report.deadlocked && ++deadlocks_ < kMostDeadlocks) {
      return halt_world(focus, halt, random + 1);
    }
    throw SetupError(describe_thread(tid) + " did not halt: is SIGSTKFLT blocked? (" + why + ")");
  }
  if (!sampler::is_ready() && ++deadlocks_ < kMostDeadlocks) {
    release_world();
    return halt_world(focus, halt, random + 1);
  }
  // Classes and code that came up on the way here must be known to the oracles.
  if (!jvm_.methods().try_absorb() || !jvm_.code_map().try_absorb()) {
    release_world();
    return halt_world(focus, halt, random + 1);
  }
  ++halts_;
  deadlocks_ = 0;
  victims_->observe_halted();
  result.focus_there = victim.slot != nullptr;
  if (halt.any) result.at_halt_point = result.focus_there;
  return result;
}

AddressRange Session::own_code_around(uintptr_t pc) {
  const auto [low, high] = jvm_.code_map().code_cache();
  if (const AddressRange code_cache = {low, high}; code_cache.has(pc)) return code_cache;
  // Where victims in C are, and all that is linked with them.
  const Module* const module = executor_->addresses().modules().find(pc);
  if (module == nullptr) return {};
  const AddressRange text = {module->text_begin, module->text_end};
  const bool is_of_victims = text.has(reinterpret_cast<uintptr_t>(&natives::pause));
  return is_of_victims && text.has(pc) ? text : AddressRange();
}

bool Session::step_on(ScenarioId focus, uint64_t random) {
  StepGoal goal = {.steps = steps_of(random, kMaxStepsOn)};
  const CodeEntry* const code = jvm_.code_map().find(victims_->of(focus).pc);
  if (const bool to_other_code = (random >> 40 & 1) != 0; to_other_code && code != nullptr) {
    goal = {.steps = kMaxStepsOn, .stay_in = {code->begin, code->end}};
  }
  return step_to(focus, goal);
}

bool Session::step_once(ScenarioId focus) { return step_to(focus, {.steps = 1}); }

bool Session::step_to(ScenarioId focus, StepGoal goal) {
  Victim& victim = victims_->of(focus);
  if (scenario_info(focus).halt != Halt::busy || victim.slot == nullptr) return false;
  const AddressRange own = own_code_around(victim.pc);
  if (own.empty()) return false;
  if (goal.stay_in.empty()) goal.stay_in = own;
  World::get().step(victim.slot, goal);
  victims_->observe_again(victim);
  ++steps_on_;
  return true;
}

bool Session::seek(Victim& victim, const HaltPoint& halt) {
  const auto address = jvm_.code_map().resolve(halt.code);
  if (!address) return false;
  World& world = World::get();
  if (!world.halt(victim.tid)) return false;
  ThreadSlot* slot = world.find(victim.tid);
  StepGoal goal;
  goal.steps = kSeekSteps;
  goal.pc = *address + static_cast<uintptr_t>(static_cast<intptr_t>(halt.delta));
  if (halt.has_frame_offset && slot->vm_thread != nullptr) {
    goal.sp = read_at<uintptr_t>(slot->vm_thread, jvm_.layout().stack_base) - halt.frame_offset;
  }
  return world.step(slot, goal);
}

HaltPoint Session::describe_halt(const Victim& victim) {
  HaltPoint halt;
  const auto position = jvm_.code_map().describe(victim.pc);
  if (!position) return halt;
  // Who waits in libjvm is there at any halt; seeking would step a thread that does not move.
  if (position->ref.kind == CodeKind::function &&
      scenario_info(victim.scenario).halt != Halt::busy) {
    return halt;
  }
  halt.any = false;
  halt.code = position->ref;
  halt.delta = position->delta;
  halt.has_frame_offset = true;
  halt.frame_offset = static_cast<uint32_t>(victim.stack_base - victim.sp);
  return halt;
}

int32_t Session::walk_running(Walker* walker, ScenarioId scenario, std::vector<Frame>* frames) {
  const Victim& victim = victims_->of(scenario);
  FrameBuffer buffer(walker->layout().stride);
  WalkTarget target;
  target.thread = victim.thread;
  target.tid = victim.tid;
  constexpr int32_t kDepth = kMaxDepth - 1;
  std::byte* memory = buffer.place(kDepth);
  const int32_t count = walker->walk(target, memory, kDepth, nullptr);
  jvm_.methods().absorb();
  frames->clear();
  for (int32_t i = 0; i < count; ++i) {
    frames->push_back(read_frame(walker->layout(), memory, static_cast<size_t>(i)));
  }
  return count;
}

std::string Session::compare_with_gst(ScenarioId scenario, WalkerId walker) {
  std::vector<Frame> trace;
  run_loop([&] {
    Input input;
    input.scenario = scenario;
    input.mode = Mode::separate_thread;
    input.walker = walker;
    input.call.depth = DepthKind::huge;
    if (executor_->execute(input).succeeded()) trace = executor_->last_frames();
  });
  release_world();
  std::erase_if(trace, [](const Frame& frame) { return is_machine(frame.type); });
  if (trace.empty()) return "the walk gave no frames";
  std::vector<Frame> reference;
  const int32_t count = walk_running(executor_->walker(kReferenceWalker), scenario, &reference);
  if (count <= 0) return "GetStackTrace gave " + std::to_string(count);
  return compare_with_reference(trace, reference, jvm_.methods(),
                                !scenario_info(scenario).thawed_trace.empty());
}

}  // namespace framestorm

#include "harness/executor/further_walker.h"

#include <string_view>

namespace framestorm {

// HotSpot's fatal path notes that it is dying (vmError.cpp, _first_error_tid): a later real error
// would wait for it for ever. So would whoever wants a lock that an abandoned walk holds. A
// failed check of ASan's does neither by itself. A walk that had called what a walk must not call
// was in the midst of something else, often by a wild jump: what it did is not known.
bool ends_reuse(const WalkRecord& record, const Walker& walker) {
  const Incidents& incidents = *record.incidents;
  if (record.end == WalkEnd::returned) {
    return incidents.contained.locks_held > 0 || incidents.unsafe.locks_held > 0;
  }
  // What a profiler had begun to store is begun for good, unless it stores it in the thread.
  if (walker.traits().keeps_its_traces && !walker.keeps_state_in_thread()) return true;
  const bool dying = record.end == WalkEnd::terminal_call &&
                     std::string_view(incidents.fault.function) != sanitizer::kTerminalCall;
  return dying || incidents.fault.locks_held > 0 || incidents.unsafe.count > 0;
}

const WalkRecord* Executor::FurtherWalker::make(const FurtherWalk& walk) {
  if (abandoned_ || not_reusable_) return nullptr;
  const Coverage::Aside aside(executor_.coverage_);
  const Prepared& prepared = *executor_.prepared_;
  const Walkable& by = executor_.walkable(walk.walker);
  WalkTarget target = prepared.target;
  target.options = walk.options;
  if (!walk.calls) target.drop_calls();
  const bool as_handler = by.walker->traits().called_as_handler;
  const ContextArg given = walk.has_context ? prepared.input->call.context : ContextArg::null;
  context_.set(prepared.expected_context, as_handler ? ContextArg::victim : given);
  Kept& kept = next_kept();
  WalkRecord& record = kept.record;
  record = first_->record;
  record.buffer = by.further_frames.get();
  HostedWalk hosted = {.call = {.walker = by.walker.get(),
                                .target = &target,
                                .frames = by.further_frames->place(walk.depth),
                                .depth = walk.depth,
                                .context = context_.get(),
                                .identity = &executor_.jvm_.identity(),
                                .mask = executor_.mask_of_host(*by.walker),
                                .stale_words = walk.stale_words},
                       .record = &record,
                       .incidents = &incidents_};
  if (walk.place == FurtherWalk::Place::same) {
    MigratingLoop::get().call_on_host(&HostedWalk::run, &hosted);
  } else {
    HostedWalk::run(&hosted);
  }
  abandoned_ = record.end != WalkEnd::returned;
  by.walker->resolve_methods(hosted.call.frames, record.frame_count());
  not_reusable_ = not_reusable_ || ends_reuse(record, *by.walker);
  const FurtherView judged(*first_, walk, record, *by.walker);
  executor_.oracles_.judge_further(judged.view(), executor_.offered_by(*by.walker),
                                   executor_.violations_.findings(), &findings_);
  if (abandoned_) return nullptr;
  // The next one is made in the same buffer.
  kept.frames.assign(record.frames,
                     record.frames + record.frame_count() * by.walker->layout().stride);
  record.keep_only(kept.frames.data());
  return &record;
}

}  // namespace framestorm

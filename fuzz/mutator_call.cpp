#include "fuzz/mutator_call.h"

#include "harness/input/canonical.h"

namespace framestorm {
namespace {

using Kind = IteratorCallKind;
constexpr size_t kArguments = size_t{kMaxIteratorArgument} + 1;

void pick_call(Rng& rng, IteratorCall* call) {
  // Frames make the states that the other calls act on.
  constexpr Kind kKinds[] = {
      Kind::next,      Kind::next,       Kind::next,         Kind::drain,  Kind::rewind,
      Kind::state,     Kind::state,      Kind::thread_state, Kind::open,   Kind::open,
      Kind::open,      Kind::open_frame, Kind::open_frame,   Kind::leave,  Kind::leave,
      Kind::jump,      Kind::jump,       Kind::select,       Kind::select, Kind::select,
      Kind::next_null, Kind::open_null,  Kind::open_to_java};
  call->kind = rng.pick(kKinds);
  // Mostly few frames, one handler, an iterator that there is.
  const size_t range = rng.one_in(4) ? kArguments : 3;
  call->argument = static_cast<uint8_t>(rng.below(range));
}

void pick_call(Rng& rng, QueueCall* call) {
  using Queue = QueueCallKind;
  // Elements, and polls that tell them, are what the other calls act on.
  constexpr Queue kKinds[] = {
      Queue::register_queue, Queue::register_queue, Queue::deregister,    Queue::enqueue,
      Queue::enqueue,        Queue::enqueue,        Queue::enqueue,       Queue::enqueue_null,
      Queue::element,        Queue::change,         Queue::resize,        Queue::enqueuable,
      Queue::on_start,       Queue::on_end,         Queue::poll,          Queue::poll,
      Queue::poll,           Queue::leave,          Queue::select,        Queue::no_memory,
      Queue::exit,           Queue::register_mark,  Queue::register_mark, Queue::remove_mark,
      Queue::move_mark,      Queue::move_mark,      Queue::move_mark,     Queue::select_mark,
      Queue::walk_to_mark,   Queue::walk_to_mark,   Queue::return_frame,  Queue::return_frame,
      Queue::unwind,         Queue::freeze,         Queue::throw_frozen};
  call->kind = rng.pick(kKinds);
  call->argument = static_cast<uint8_t>(rng.below(kArguments));
  if (rng.one_in(4)) return;
  // Mostly small queues, which get full, their ends, the walk's own context, the first queues; frames
  // near the top, of which the first cannot be marked.
  const bool is_size = call->kind == Queue::register_queue || call->kind == Queue::resize;
  const bool is_index = call->kind == Queue::element || call->kind == Queue::change;
  const auto near = static_cast<int>(rng.below(3));
  const bool is_frame = call->kind == Queue::move_mark || names_a_frame(call->kind);
  const int number = is_size ? 1 + near : is_index ? near - 1 : is_frame ? 2 + near : near;
  call->argument = static_cast<uint8_t>(number - first_argument(call->kind));
}

// Short sequences that go where iterators are easy to get wrong.
const std::vector<IteratorCall>& any_pattern(Rng& rng, const IteratorCall*) {
  static const std::vector<IteratorCall> patterns[] = {
      // used after its handler has returned
      {{Kind::open},
       {Kind::next, 2},
       {Kind::leave},
       {Kind::select, 1},
       {Kind::next},
       {Kind::state}},
      // used after its handler was left by a jump
      {{Kind::open}, {Kind::next}, {Kind::jump, 0}, {Kind::select, 1}, {Kind::state}, {Kind::next}},
      // the outer one from within the inner one's handler
      {{Kind::next, 1},
       {Kind::open},
       {Kind::drain},
       {Kind::select, 0},
       {Kind::next},
       {Kind::leave},
       {Kind::drain}},
      // at the end, and again
      {{Kind::drain}, {Kind::state}, {Kind::next}, {Kind::rewind}, {Kind::state}, {Kind::drain}},
      // from each of the first frames
      {{Kind::next},
       {Kind::open_frame},
       {Kind::drain},
       {Kind::leave},
       {Kind::next},
       {Kind::open_frame},
       {Kind::drain}},
      // all handlers left at once, and a new one
      {{Kind::open},
       {Kind::open},
       {Kind::jump, 2},
       {Kind::select, 0},
       {Kind::rewind},
       {Kind::open},
       {Kind::drain}},
  };
  return rng.pick(patterns);
}

// And where queues are. Sizes and indices are numbers - first_argument().
const std::vector<QueueCall>& any_pattern(Rng& rng, const QueueCall*) {
  using Queue = QueueCallKind;
  static const std::vector<QueueCall> patterns[] = {
      // full, told, and again
      {{Queue::register_queue, 3},
       {Queue::enqueue},
       {Queue::enqueue, 1},
       {Queue::enqueue},
       {Queue::poll},
       {Queue::leave},
       {Queue::leave},
       {Queue::enqueue}},
      // smaller than what is in it, which a handler makes more
      {{Queue::register_queue, 6},
       {Queue::enqueue},
       {Queue::resize, 2},
       {Queue::poll},
       {Queue::enqueue},
       {Queue::enqueue},
       {Queue::leave},
       {Queue::poll}},
      // grown with elements in it, whose places it has used before
      {{Queue::register_queue, 4},
       {Queue::enqueue},
       {Queue::enqueue},
       {Queue::poll},
       {Queue::resize, 9},
       {Queue::enqueue, 2},
       {Queue::enqueue},
       {Queue::leave},
       {Queue::leave},
       {Queue::change, 8},
       {Queue::poll}},
      // ended by its handler
      {{Queue::enqueue}, {Queue::enqueue}, {Queue::poll}, {Queue::deregister}, {Queue::leave}},
      // another one ended, and one begun, by a handler
      {{Queue::register_queue, 4},
       {Queue::enqueue},
       {Queue::select, 0},
       {Queue::poll},
       {Queue::select, 1},
       {Queue::deregister},
       {Queue::register_queue, 4},
       {Queue::enqueue},
       {Queue::leave}},
      // handlers around, of which one ends it
      {{Queue::on_start, 2}, {Queue::on_end, 1}, {Queue::enqueue}, {Queue::poll}, {Queue::leave}},
      // no memory for the elements
      {{Queue::no_memory, 1}, {Queue::register_queue, 4}, {Queue::resize, 7}, {Queue::poll}},
      // a marked frame: walked to, and left
      {{Queue::register_mark},
       {Queue::move_mark, 3},
       {Queue::walk_to_mark},
       {Queue::return_frame, 3},
       {Queue::move_mark, 5},
       {Queue::leave},
       {Queue::walk_to_mark}},
      // two, left together, of which the older one's handler takes away the newer one
      {{Queue::register_mark},
       {Queue::move_mark, 4},
       {Queue::register_mark},
       {Queue::move_mark, 2},
       {Queue::unwind, 5},
       {Queue::select_mark, 0},
       {Queue::remove_mark},
       {Queue::leave}},
      // the continuation yields, or an exception comes to its frozen part
      {{Queue::register_mark}, {Queue::move_mark, 2}, {Queue::throw_frozen}, {Queue::freeze}},
      // marked at a poll
      {{Queue::register_mark},
       {Queue::enqueue},
       {Queue::poll},
       {Queue::move_mark, 2},
       {Queue::leave},
       {Queue::poll}},
      // the thread ends
      {{Queue::enqueue},
       {Queue::exit},
       {Queue::enqueue},
       {Queue::leave},
       {Queue::register_queue, 4}},
  };
  return rng.pick(patterns);
}

// One change of a sequence; see the header.
template <typename Call>
void change(size_t most, Rng& rng, std::vector<Call>* calls) {
  const Call* const kind = nullptr;
  const auto any_call = [&rng] {
    Call call;
    pick_call(rng, &call);
    canonicalise(&call);
    return call;
  };
  const size_t at = calls->empty() ? 0 : rng.below(calls->size());
  const auto place = calls->begin() + static_cast<std::ptrdiff_t>(at);
  switch (rng.below(8)) {
    case 0:
      if (calls->size() > 1) {
        calls->erase(place);
        break;
      }
      [[fallthrough]];
    case 1:
      if (!calls->empty()) {
        *place = any_call();
        break;
      }
      [[fallthrough]];
    case 2:
      if (!calls->empty() && uses_argument(place->kind)) {
        place->argument = static_cast<uint8_t>(rng.below(kArguments));
        break;
      }
      [[fallthrough]];
    case 3: {
      const std::vector<Call>& pattern = any_pattern(rng, kind);
      calls->insert(place, pattern.begin(), pattern.end());
      break;
    }
    default:
      calls->insert(rng.one_in(2) ? calls->end() : place, any_call());
  }
  if (calls->size() > most) {
    calls->resize(most);
  }
}

}  // namespace

void pick_context_and_env(Rng& rng, CallArgs* call) {
  switch (rng.below(6)) {
    case 0:
      call->context = rng.any<ContextArg>();
      break;
    case 1:
    case 2:
      call->context = ContextArg::misaligned;
      break;
    case 3:
      call->env = rng.any<EnvArg>();
      break;
    case 4:
      call->env = EnvArg::other_victim;
      break;
    default:
      call->env = EnvArg::victim;
      call->context = ContextArg::victim;
  }
}

void pick_depth(Rng& rng, CallArgs* call) {
  if (rng.one_in(2)) {
    call->depth = rng.any<DepthKind>();
    return;
  }
  constexpr int32_t kDepths[] = {INT32_MIN, -1000, -1,   2,    3,    5,       17,       127,
                                 128,       129,   1000, 1024, 2048, 1 << 16, INT32_MAX};
  call->depth = DepthKind::raw;
  call->raw_depth = rng.one_in(4) ? static_cast<int32_t>(rng.below(300)) - 20 : rng.pick(kDepths);
}

void pick_options(const WalkerTraits& traits, Rng& rng, CallArgs* call) {
  switch (rng.below(6)) {
    case 0:
      call->options = 0;
      break;
    case 1:
      call->options ^= 1U << rng.below(32);
      break;
    case 2:
      call->options = static_cast<uint32_t>(rng.next());
      break;
    default:
      call->options = traits.options & static_cast<uint32_t>(rng.next());
  }
}

void pick_masks(Rng& rng, CallArgs* call) {
  // Kinds of ASGST_TRACE_KIND; states of JVMTI's GetThreadState: alive, runnable, blocked, waiting,
  // sleeping, in native.
  constexpr uint8_t kKinds[] = {1, 2, 4, 8, 32, 1 | 8, 2 | 4 | 8 | 32, 16, 0xff};
  constexpr uint32_t kStates[] = {0x1,   0x4,      0x400,      0x80,       0x40,
                                  0x100, 0x400000, 0x80000000, 0xffffffff, 0x5};
  switch (rng.below(6)) {
    case 0:
      call->accepted_kinds = 0;
      break;
    case 1:
      call->accepted_states = 0;
      break;
    case 2:
      call->accepted_kinds = static_cast<uint8_t>(rng.next());
      break;
    case 3:
      call->accepted_states = static_cast<uint32_t>(rng.next());
      break;
    case 4:
      call->accepted_kinds = rng.pick(kKinds);
      break;
    default:
      call->accepted_states = rng.pick(kStates);
  }
}

void change_calls(size_t most, Rng& rng, std::vector<IteratorCall>* calls) {
  change(most, rng, calls);
}
void change_calls(size_t most, Rng& rng, std::vector<QueueCall>* calls) {
  change(most, rng, calls);
}

}  // namespace framestorm

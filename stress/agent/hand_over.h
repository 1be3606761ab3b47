// How a sampler gets a thread to stand still, and lets it go. One request at a time:
//
//   sampler                         word {number, state}          victim's signal handler (number)
//   ask()      ──────────────────>  {n, asked}
//   signal n                             │ compare and exchange <── answer(n): who wins may write
//                                   {n, answering}                  the answer, nobody else does
//   await(n)   <──────────────────  {n, answered} <───────────────  answer written; sleeps while
//   walks                                │                          the word is {n, answered}
//   release(n) ──────────────────>  {n, released} ────────────────> leaves
//
//   await(n), out of patience: compare and exchange {n, asked} to {n, given-up}. When that fails
//   the handler has won and the answer is a few instructions away.
//
// Numbers are never used twice. So a handler that comes late (its request was given up, or is long
// over) finds another word than {n, asked}, loses, and has written nothing: it can touch no later
// request. And a victim sleeps only while the word is exactly its own {n, answered}: whatever
// release() or a later ask() makes of it lets it go.
//
// Waiting is on a futex, never spinning. The kernel compares 32 bits, the code 64; a wake-up that
// falls between the two looks is made up for by looking again at times.
#pragma once

#include <ucontext.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace framestorm::stress {

class HandOver {
 public:
  struct Answer {
    const ucontext_t* context = nullptr;  // the handler's own, or the copy of a victim that runs on
    void* java_thread = nullptr;          // whom the victim takes itself for
    uint64_t given_ns = 0;                // CLOCK_MONOTONIC; who stays stands still since then
  };

  // The sampler's side; one thread. Begins a request and returns its number, which goes with the
  // signal. The request before it is over.
  uint64_t ask();
  // True: the victim has answered, and stands still if it said so, until release(). False: it did
  // not in time; the request is over.
  bool await(uint64_t number, std::chrono::nanoseconds patience, Answer* answer);
  // Ends an answered request. async-signal-safe.
  void release(uint64_t number);
  // Ends a request whose signal was not sent.
  void give_up(uint64_t number);

  // The victim's side: in its signal handler, async-signal-safe. False, at once and without a
  // trace, when that request is over. Otherwise returns once the victim may go on: with `stay` when
  // it is released, else at once, and the sampler gets a copy of the context.
  bool answer(uint64_t number, const ucontext_t& context, void* java_thread, bool stay);

 private:
  enum class State : uint8_t { asked, answering, answered, released, given_up };
  static constexpr uint64_t kStateBits = 3;
  static constexpr uint64_t word_of(uint64_t number, State state) {
    return number << kStateBits | static_cast<uint64_t>(state);
  }
  // Sleeps while the word is `seen`, or for a while.
  void sleep(uint64_t seen, std::chrono::nanoseconds at_most);
  void wake();

  std::atomic<uint64_t> word_{word_of(0, State::released)};
  Answer answer_;
  ucontext_t copy_ = {};
};

}  // namespace framestorm::stress

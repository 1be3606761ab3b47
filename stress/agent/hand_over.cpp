#include "stress/agent/hand_over.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>

#include "harness/base/clock.h"
#include "harness/victim/context.h"

namespace framestorm::stress {
namespace {

using std::chrono::nanoseconds;

// How long a sleeper trusts that it was woken.
constexpr nanoseconds kDoubt = std::chrono::milliseconds(100);

nanoseconds now() { return nanoseconds(monotonic_ns()); }

// The half of the word that changes with every step.
uint32_t* futex_of(std::atomic<uint64_t>& word) {
  static_assert(std::endian::native == std::endian::little);
  return reinterpret_cast<uint32_t*>(&word);
}

}  // namespace

void HandOver::sleep(uint64_t seen, nanoseconds at_most) {
  const timespec pause = as_timespec(static_cast<uint64_t>(at_most.count()));
  syscall(SYS_futex, futex_of(word_), FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(seen), &pause,
          nullptr, 0);
}

void HandOver::wake() {
  syscall(SYS_futex, futex_of(word_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

uint64_t HandOver::ask() {
  const uint64_t number = (word_.load(std::memory_order_relaxed) >> kStateBits) + 1;
  word_.store(word_of(number, State::asked), std::memory_order_release);
  return number;
}

void HandOver::give_up(uint64_t number) {
  word_.store(word_of(number, State::given_up), std::memory_order_release);
}

bool HandOver::await(uint64_t number, nanoseconds patience, Answer* answer) {
  const nanoseconds until = now() + patience;
  for (;;) {
    uint64_t seen = word_.load(std::memory_order_acquire);
    if (seen == word_of(number, State::answered)) {
      *answer = answer_;
      return true;
    }
    const nanoseconds left = until - now();
    if (left <= nanoseconds::zero() && seen == word_of(number, State::asked) &&
        word_.compare_exchange_strong(seen, word_of(number, State::given_up),
                                      std::memory_order_acq_rel)) {
      return false;
    }
    // Out of patience, but an answer is being written: that is not long.
    sleep(seen, left <= nanoseconds::zero() ? kDoubt : std::min(left, kDoubt));
  }
}

void HandOver::release(uint64_t number) {
  word_.store(word_of(number, State::released), std::memory_order_release);
  wake();
}

bool HandOver::answer(uint64_t number, const ucontext_t& context, void* java_thread, bool stay) {
  uint64_t expected = word_of(number, State::asked);
  if (!word_.compare_exchange_strong(expected, word_of(number, State::answering),
                                     std::memory_order_acq_rel)) {
    return false;
  }
  const int saved_errno = errno;
  answer_ = {&context, java_thread, monotonic_ns()};
  if (!stay) {
    copy_context(context, &copy_);
    answer_.context = &copy_;
  }
  const uint64_t answered = word_of(number, State::answered);
  word_.store(answered, std::memory_order_release);
  wake();
  while (stay && word_.load(std::memory_order_acquire) == answered) sleep(answered, kDoubt);
  errno = saved_errno;
  return true;
}

}  // namespace framestorm::stress

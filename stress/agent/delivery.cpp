#include "stress/agent/delivery.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "harness/base/clock.h"
#include "stress/agent/registry.h"

namespace framestorm::stress {
namespace {

constexpr size_t kSignals = 64;

std::array<uint64_t, kSignals> arrivals;
std::atomic<size_t> arrived{0};
timer_t timer = {};

void note_arrival(int) {
  const size_t index = arrived.load(std::memory_order_relaxed);
  if (index < kSignals) arrivals[index] = monotonic_ns();
  arrived.store(index + 1, std::memory_order_relaxed);
  if (index + 1 < kSignals) return;
  // Else the thread would do nothing else any more.
  const itimerspec never = {};
  timer_settime(timer, 0, &never, nullptr);
}

}  // namespace

uint64_t measure_delivery(int signo) {
  arrived.store(0);
  struct sigaction action = {};
  struct sigaction previous = {};
  action.sa_handler = &note_arrival;
  if (sigaction(signo, &action, &previous) != 0) return 0;
  sigset_t wanted;
  sigset_t mask;
  sigemptyset(&wanted);
  sigaddset(&wanted, signo);
  pthread_sigmask(SIG_UNBLOCK, &wanted, &mask);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signo;
  event._sigev_un._tid = gettid();
  uint64_t typical = 0;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {
    // Faster than any signal is delivered: one follows the other.
    const itimerspec when = {{0, 1}, {0, 1}};
    timer_settime(timer, 0, &when, nullptr);
    while (arrived.load(std::memory_order_relaxed) < kSignals) {
    }
    timer_delete(timer);
    std::array<uint64_t, kSignals - 1> gaps;
    for (size_t i = 0; i + 1 < kSignals; ++i) gaps[i] = arrivals[i + 1] - arrivals[i];
    std::ranges::nth_element(gaps, gaps.begin() + gaps.size() / 2);
    typical = gaps[gaps.size() / 2];
  }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  sigaction(signo, &previous, nullptr);
  return typical;
}

}  // namespace framestorm::stress

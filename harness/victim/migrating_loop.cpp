#include "harness/victim/migrating_loop.h"

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "harness/guard/guard.h"
#include "harness/guard/signal_table.h"
#include "harness/victim/stack_switch.h"

namespace framestorm {

MigratingLoop& MigratingLoop::get() {
  static MigratingLoop loop;
  return loop;
}

void MigratingLoop::entry() {
  MigratingLoop& loop = get();
  loop.body_();
  loop.request_ = Request::finish;
  framestorm_switch_stack(&loop.loop_sp_, loop.host_sp_);
  std::abort();  // nobody continues a finished loop
}

void MigratingLoop::run(std::function<void()> body) {
  if (stack_ == MAP_FAILED) {
    stack_ = mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack_ == MAP_FAILED) {
      throw std::system_error(errno, std::generic_category(), "mapping the fuzz loop's stack");
    }
  }
  body_ = std::move(body);
  loop_sp_ = prepare_stack(stack_, kStackSize, &MigratingLoop::entry);
  host_ = nullptr;
  while (!serve(nullptr)) {
    // The loop is on a victim; it wakes the control thread to come back.
    World::await(&control_thread_);
  }
}

bool MigratingLoop::serve(ThreadSlot* slot) {
  host_ = slot;
  host_mask_ = signals::mask();
  Guard::attach_thread();
  for (;;) {
    framestorm_switch_stack(&host_sp_, loop_sp_);
    if (request_ != Request::call) break;
    call_(call_arg_);
  }
  Guard::detach_thread();
  if (request_ == Request::finish) return true;
  // Once this is sent the loop runs elsewhere: touch nothing of it any more.
  World::send(target_ == nullptr ? &control_thread_ : target_, World::kCommandHost);
  return false;
}

void MigratingLoop::host_from_signal(ThreadSlot* slot) { get().serve(slot); }

void MigratingLoop::move_to(ThreadSlot* slot) {
  if (slot == host_) return;
  target_ = slot;
  request_ = Request::move;
  framestorm_switch_stack(&loop_sp_, host_sp_);
}

void MigratingLoop::call_on_host(void (*fn)(void*), void* arg) {
  call_ = fn;
  call_arg_ = arg;
  request_ = Request::call;
  framestorm_switch_stack(&loop_sp_, host_sp_);
}

}  // namespace framestorm

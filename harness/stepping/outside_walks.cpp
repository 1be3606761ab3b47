#include "harness/stepping/outside_walks.h"

namespace framestorm::stepping {

OutsideWalks::OutsideWalks(Jvm& jvm) : thread_([this, &jvm] { serve(jvm); }) {
  World::await(&answered_);
}

OutsideWalks::~OutsideWalks() {
  over_.store(true, std::memory_order_release);
  World::send(&asked_, World::kCommandHost);
  thread_.join();
}

void OutsideWalks::run(const WalkCall& call, WalkRecord* record, Incidents* incidents) {
  call_ = &call;
  record_ = record;
  incidents_ = incidents;
  World::send(&asked_, World::kCommandHost);
  World::await(&answered_);
}

void OutsideWalks::serve(Jvm& jvm) {
  void* env = nullptr;
  jvm.vm()->AttachCurrentThreadAsDaemon(&env, nullptr);
  Guard::attach_thread();
  watch_.take();
  for (;;) {
    World::send(&answered_, World::kCommandHost);
    World::await(&asked_);
    if (over_.load(std::memory_order_acquire)) break;
    run_walk(*call_, record_, incidents_);
  }
  watch_.give_back();
  Guard::detach_thread();
  jvm.vm()->DetachCurrentThread();
}

}  // namespace framestorm::stepping

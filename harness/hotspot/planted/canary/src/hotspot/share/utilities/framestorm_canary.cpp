/*
 * Copyright (c) 2026, the framestorm authors.
 *
 * This code is free software; you can redistribute it and/or modify it
 * under the terms of the GNU General Public License version 2 only, as
 * published by the Free Software Foundation, with the "Classpath" exception
 * of the OpenJDK sources it is compiled with.
 *
 * This code is distributed in the hope that it will be useful, but WITHOUT
 * ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or
 * FITNESS FOR A PARTICULAR PURPOSE.  See the GNU General Public License
 * version 2 for more details.
 */

#include "utilities/framestorm_canary.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>
#include <ctime>

constexpr int kMutants = 8192;  // with counts of their own

struct MutantCounts {
  uint64_t reached;
  uint64_t triggered;
};

// As scripts/framestorm_cli/detect/canary.py and harness/jvm/libjvm_mutants.h have it, whose file goes on behind it.
struct Canary {
  uint64_t reached;
  uint64_t triggered;
  uint64_t first_reached;    // ns, CLOCK_MONOTONIC
  uint64_t first_triggered;  // ns, CLOCK_MONOTONIC
  int64_t mutant_in_force;
  uint64_t count_of_mutants;       // not libjvm's: it does not know
  MutantCounts mutants[kMutants];  // by number; where none is in force
};

static Canary unread;
static Canary* canary = &unread;

const volatile int64_t* framestorm_mutant = &unread.mutant_in_force;

// Before main: the file is in every child of a fork, too.
__attribute__((constructor)) static void map_canary() {
  const char* mutant = ::getenv("FRAMESTORM_MUTANT");
  unread.mutant_in_force = mutant == nullptr ? 0 : ::atoi(mutant);
  const char* path = ::getenv("FRAMESTORM_CANARY");
  if (path == nullptr) {
    return;
  }
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) {
    return;
  }
  void* mapped = ::mmap(nullptr, sizeof(Canary), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (mapped != MAP_FAILED) {
    canary = static_cast<Canary*>(mapped);
    canary->mutant_in_force = unread.mutant_in_force;
    framestorm_mutant = &canary->mutant_in_force;
  }
}

static void count(uint64_t* counter, uint64_t* first) {
  if (__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED) == 0) {
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    __atomic_store_n(first, static_cast<uint64_t>(now.tv_sec) * 1000000000 + now.tv_nsec,
                     __ATOMIC_RELAXED);
  }
}

extern "C" void framestorm_canary(bool triggered) {
  count(&canary->reached, &canary->first_reached);
  if (triggered) {
    count(&canary->triggered, &canary->first_triggered);
  }
}

extern "C" bool framestorm_mutant_acts(int number, bool would_act) {
  if (*framestorm_mutant >= 0) {
    framestorm_canary(would_act);
    return would_act;
  }
  if (number < kMutants) {
    MutantCounts& counts = canary->mutants[number];
    __atomic_fetch_add(&counts.reached, 1, __ATOMIC_RELAXED);
    if (would_act) {
      __atomic_fetch_add(&counts.triggered, 1, __ATOMIC_RELAXED);
    }
  }
  return false;
}

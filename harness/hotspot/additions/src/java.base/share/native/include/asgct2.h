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

/*
 * AsyncGetCallTrace2: AsyncGetCallTrace with flat frames that also tell type, compilation level and
 * machine pc, C/C++ frames included. As proposed on serviceability-dev in March 2022. C and C++.
 */
#ifndef ASGCT2_H
#define ASGCT2_H

#include <jni.h>
#include <stdint.h>

#ifdef __cplusplus
namespace asgct2 {
#endif

enum FrameTypeId {
  FRAME_INTERPRETED = 0,
  FRAME_JIT = 1,
  FRAME_INLINE = 2, /* inlined into the frame that follows */
  FRAME_NATIVE = 3, /* native method */
  FRAME_CPP = 4     /* C, C++; stubs have comp_level -1 (CompLevel_all) */
};

typedef struct {
  void* machine_pc;    /* pc in C/C++ frames, stubs and native methods; null else */
  uint8_t type;        /* FrameTypeId */
  uint8_t comp_level;  /* 0 interpreted, 1 to 3 C1, 4 C2 or JVMCI; 255 for stubs */
  jint bci;            /* -3 in native methods, -1 where there is none or it is unknown */
  jmethodID method_id; /* null in C/C++ frames */
} CallFrame;

/*
 * Error codes in num_frames are those of AsyncGetCallTrace (0 to -10). A handler that blocks SIGSEGV
 * or SIGBUS is told -7 (unknown state), and frame_info says it: walks read what may be unreadable.
 */
typedef struct {
  JNIEnv* env_id; /* in: not null */
  jint num_frames;
  CallFrame* frames;
  void* frame_info; /* out: as in ASGST_CallTrace of profile.h */
} CallTrace;

#ifdef __cplusplus
}
#define ASGCT2_TYPE(name) asgct2::name
extern "C" {
#else
#define ASGCT2_TYPE(name) name
#endif

/*
 * Walks the calling thread from `ucontext`, which may be null outside Java. For signal handlers, as
 * AsyncGetCallTrace. Async-signal-safe; writes *trace and frames[0..depth) only.
 */
JNIEXPORT void JNICALL AsyncGetCallTrace2(ASGCT2_TYPE(CallTrace) * trace, jint depth,
                                          void* ucontext);

#ifdef __cplusplus
}
#endif
#undef ASGCT2_TYPE

#endif /* ASGCT2_H */

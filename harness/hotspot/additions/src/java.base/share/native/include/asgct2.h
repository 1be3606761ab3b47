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
 * AsyncGetCallTrace2: AsyncGetCallTrace with frames that also tell type, compilation level and machine
 * pc, C/C++ frames included. As proposed on serviceability-dev in March 2022, in both of the layouts
 * there: the prototype's flat frames, and those that the proposal packs into 16 bytes
 * (AsyncGetCallTrace2Packed). C and C++.
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

/*
 * The packed layout. Its names are the proposal's, of which the flat layout has some with another
 * meaning: in C++ they are in namespace asgct2::packed, in C they begin with packed_ (packed_CallFrame,
 * packed_FRAME_CPP).
 */
#ifdef __cplusplus
namespace packed {
#define ASGCT2_PACKED(name) name
#else
#define ASGCT2_PACKED(name) packed_##name
#endif

enum ASGCT2_PACKED(FrameTypeId) {
  /* Interpreted or compiled: comp_level alone tells which. */
  ASGCT2_PACKED(FRAME_JAVA) = 1,
  ASGCT2_PACKED(FRAME_JAVA_INLINED) = 2, /* compiled, and inlined into the frame that follows */
  ASGCT2_PACKED(FRAME_NATIVE) = 3, /* native method, interpreted or compiled: its pc, no method */
  ASGCT2_PACKED(FRAME_STUB) = 4,   /* other code that the VM made */
  ASGCT2_PACKED(FRAME_CPP) = 5     /* C, C++ */
};

/* FRAME_JAVA and FRAME_JAVA_INLINED */
typedef struct {
  uint8_t type;        /* FrameTypeId */
  uint8_t comp_level;  /* 0 interpreted, 1 to 3 C1, 4 C2 or JVMCI */
  uint16_t bci;        /* 65535 where it is unknown: no method has that many bytecodes */
  jmethodID method_id; /* null when the class's IDs were not made before */
} ASGCT2_PACKED(JavaFrame);

/* FRAME_NATIVE, FRAME_STUB and FRAME_CPP. Only the pc tells which native method it is, and only in code
   that was compiled for it (JVMTI's CompiledMethodLoad): the interpreter has the same code for all. */
typedef struct {
  uint8_t type; /* FrameTypeId, which the proposal wants to be a single byte */
  void* machine_pc;
} ASGCT2_PACKED(NonJavaFrame);

typedef union {
  uint8_t type; /* FrameTypeId: tells which of both it is */
  ASGCT2_PACKED(JavaFrame) java_frame;
  ASGCT2_PACKED(NonJavaFrame) non_java_frame;
} ASGCT2_PACKED(CallFrame);

/* As the flat one. */
typedef struct {
  JNIEnv* env_id;
  jint num_frames;
  ASGCT2_PACKED(CallFrame) * frames;
  void* frame_info;
} ASGCT2_PACKED(CallTrace);

#undef ASGCT2_PACKED
#ifdef __cplusplus
}
}
#define ASGCT2_TYPE(name) asgct2::name
#define ASGCT2_PACKED(name) asgct2::packed::name
extern "C" {
#else
#define ASGCT2_TYPE(name) name
#define ASGCT2_PACKED(name) packed_##name
#endif

/*
 * Walks the calling thread from `ucontext`, which may be null outside Java. For signal handlers, as
 * AsyncGetCallTrace. Async-signal-safe; writes *trace and frames[0..depth) only.
 */
JNIEXPORT void JNICALL AsyncGetCallTrace2(ASGCT2_TYPE(CallTrace) * trace, jint depth,
                                          void* ucontext);

/*
 * The same walk, in the packed layout: a frame here for each frame there. In all else as
 * AsyncGetCallTrace2: it walks the calling thread, is for signal handlers and async-signal-safe, and has
 * its error codes.
 */
JNIEXPORT void JNICALL AsyncGetCallTrace2Packed(ASGCT2_PACKED(CallTrace) * trace, jint depth,
                                                void* ucontext);

#ifdef __cplusplus
}
#endif
#undef ASGCT2_TYPE
#undef ASGCT2_PACKED

#endif /* ASGCT2_H */

// What the rest of the guard needs from the interposed functions. Private to the guard.
#pragma once

#include <pthread.h>
#include <stdarg.h>

#include <atomic>

#include "harness/guard/unsafe_calls.h"

namespace framestorm {

// pthread_create past the thread start hook: the guard's own threads must not be halted.
// Returns an errno value.
int create_unhooked_thread(pthread_t* thread, void* (*start_routine)(void*));

// vsnprintf as libc has it, in a walk too. Async-signal-safe as far as libc's is, which is for
// HotSpot's messages: integers, pointers and strings.
int format_past_interposer(char* out, size_t size, const char* format, va_list values);

// Read by every new thread; see interposer::set_thread_start_hook.
extern constinit std::atomic<interposer::ThreadStartHook> thread_start_hook;
extern constinit std::atomic<interposer::ThreadEndHook> thread_end_hook;
extern constinit std::atomic<bool> threads_left_alone;

}  // namespace framestorm

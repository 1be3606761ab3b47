/* Default options of the sanitizers for the programs of a sanitized JDK (java, javac, ...).
 *
 * Compiled without instrumentation into lib/libclang_rt.asan-framestorm.so, which the launchers
 * load before ASan's runtime. Called once, while that runtime starts; nothing else is up yet.
 * ASAN_OPTIONS and UBSAN_OPTIONS of the environment are read later and win. */

const char* __asan_default_options(void);
const char* __ubsan_default_options(void);

/* HotSpot owns the fault signals (SafeFetch, implicit null checks, polls), takes addresses of stack
 * variables for stack positions, and frees little of what it has at exit. */
const char* __asan_default_options(void) {
  return "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:allow_user_segv_handler=1:"
         "use_sigaltstack=0:detect_stack_use_after_return=0:detect_leaks=0";
}

const char* __ubsan_default_options(void) { return "print_stacktrace=1"; }

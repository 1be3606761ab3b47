// A library whose calls of itself go through its PLT, bound at the first call.
extern "C" __attribute__((noinline)) int framestorm_plt_leaf(int value) { return value + 1; }

extern "C" int framestorm_call_through_plt(int value) {
  return framestorm_plt_leaf(value) * framestorm_plt_leaf(value + 1);
}

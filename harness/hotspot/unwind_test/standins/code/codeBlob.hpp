// Stands in for HotSpot's header of this name.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u1;
constexpr int wordSize = 8;
constexpr size_t K = 1024;

struct CodeBlob {
  const u1* begin;
  const u1* end;
  const u1* code_begin() const { return begin; }
  const u1* code_end() const { return end; }
};

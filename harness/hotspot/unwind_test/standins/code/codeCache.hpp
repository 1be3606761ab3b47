// Stands in for HotSpot's header of this name: there is no code.
#pragma once

#include "code/codeBlob.hpp"

struct CodeCache {
  static CodeBlob* find_blob(const void*) { return nullptr; }
};

// Stands in for HotSpot's header of this name: there is one blob, or none.
#pragma once

#include "code/codeBlob.hpp"

struct CodeCache {
  static inline CodeBlob* only = nullptr;
  static CodeBlob* find_blob(const void* pc) {
    return only != nullptr && pc == only->begin ? only : nullptr;
  }
};

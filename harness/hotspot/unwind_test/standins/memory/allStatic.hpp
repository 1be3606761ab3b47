// Stands in for HotSpot's header of this name.
#pragma once

struct AllStatic {
  AllStatic() = delete;
  ~AllStatic() = delete;
};

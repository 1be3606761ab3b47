// What harness set-up throws: the message says what is wrong and what to do about it.
#pragma once

#include <stdexcept>

namespace framestorm {

class SetupError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace framestorm

#include "fuzz/bundle/bundle.h"

const std::string_view framestorm::kTargetName = FRAMESTORM_TARGET;

#include "harness/oracles/liveness.h"

namespace framestorm {

std::vector<std::string> check_liveness(const LivenessCounts& counts) {
  std::vector<std::string> wrong;
  if (counts.walks == 0) {
    wrong.emplace_back("no walk was made");
    return wrong;
  }
  if (counts.mutated == 0) wrong.emplace_back("no walk had a mutation in effect");
  if (counts.unmutated_java == 0) {
    wrong.emplace_back("no unmutated walk of a Java scenario was made");
  } else if (static_cast<double>(counts.unmutated_java_succeeded) <
             kMinimumSuccess * static_cast<double>(counts.unmutated_java)) {
    wrong.push_back("only " + std::to_string(counts.unmutated_java_succeeded) + " of " +
                    std::to_string(counts.unmutated_java) +
                    " unmutated walks of Java scenarios gave frames");
  }
  return wrong;
}

}  // namespace framestorm

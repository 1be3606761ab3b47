#include "scripts/native/walking_view.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <system_error>

#include "harness/executor/run_files.h"
#include "harness/input/thread_state.h"
#include "harness/victim/context.h"
#include "stress/agent/options.h"
#include "stress/agent/walking_file.h"

namespace framestorm {
namespace {

using nlohmann::json;
using stress::WalkingRecord;

json to_json(const WalkingRecord& walk) {
  ucontext_t context = {};
  std::ranges::copy(walk.registers, context.uc_mcontext.gregs);
  return {{"number", walk.number},
          {"tid", walk.tid},
          {"walker", name_of(static_cast<WalkerId>(walk.walker))},
          {"mode", name_of(static_cast<stress::SamplingMode>(walk.mode))},
          {"depth", walk.depth},
          {"rewalks", walk.rewalks},
          {"thread_state", thread_state_name(walk.thread_state)},
          {"java_thread", hex(walk.java_thread)},
          {"real_pc", hex(get_register(context, Register::pc))},
          {"real_sp", hex(get_register(context, Register::sp))},
          {"real_fp", hex(get_register(context, Register::fp))},
          {"stack_base", hex(walk.stack_base)},
          {"stack_end", hex(walk.stack_end)},
          {"last_java_sp", hex(walk.last_java_sp)},
          {"last_java_pc", hex(walk.last_java_pc)},
          {"last_java_fp", hex(walk.last_java_fp)}};
}

}  // namespace

int show_walking(const std::filesystem::path& file, std::ostream& out, std::ostream& errors) {
  json walks = json::array();
  try {
    for (const WalkingRecord& walk : stress::read_walks(file)) walks.push_back(to_json(walk));
  } catch (const std::system_error& error) {
    errors << error.what() << '\n';
    return 2;
  }
  out << walks.dump() << '\n';
  return 0;
}

}  // namespace framestorm

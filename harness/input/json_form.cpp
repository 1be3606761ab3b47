#include "harness/input/json_form.h"

#include <nlohmann/json.hpp>

#include "harness/input/canonical.h"
#include "harness/input/state.h"
#include "harness/input/text.h"
#include "harness/input/thread_state.h"

namespace framestorm {
namespace {

using nlohmann::json;

json call_of(const CallArgs& call) {
  const CallArgs defaults;
  json result = json::object();
  if (call.depth != defaults.depth) result["depth"] = depth_text(call);
  if (call.context != defaults.context) result["context"] = name_of(call.context);
  if (call.env != defaults.env) result["env"] = name_of(call.env);
  if (call.options != 0) result["options"] = call.options;
  if (call.accepted_kinds != 0) result["accepted_kinds"] = call.accepted_kinds;
  if (call.accepted_states != 0) result["accepted_states"] = call.accepted_states;
  return result;
}

json mutation_of(const Mutation& mutation) {
  json value = to_json(mutation.value);
  if (mutation.kind == MutationKind::set_thread_field && mutation.field == ThreadField::state &&
      mutation.value.kind == ValueKind::raw) {
    value["thread_state"] = thread_state_name(static_cast<uint32_t>(mutation.value.raw));
  }
  return {{"kind", name_of(mutation.kind)}, {"place", place_text(mutation)}, {"value", value}};
}

}  // namespace

json to_json(const SymbolicValue& value) {
  json result = {{"text", to_text(value)}, {"kind", name_of(value.kind)}, {"delta", value.delta}};
  if (uses_index(value.kind)) result["index"] = value.index;
  if (value.kind == ValueKind::raw) result["raw"] = value.raw;
  if (value.kind == ValueKind::code) {
    result["code"] = {{"kind", name_of(value.code.kind)},
                      {"name", value.code.name},
                      {"tier", value.code.tier},
                      {"anchor", name_of(value.code.anchor)}};
  }
  return result;
}

json to_json(const Input& input) {
  json result = {{"scenario", name_of(input.scenario)}, {"mode", name_of(input.mode)},
                 {"walker", name_of(input.walker)},     {"call", call_of(input.call)},
                 {"mutations", json::array()},          {"iterator_calls", json::array()}};
  if (!input.halt.any) {
    result["halt"] = {{"text", to_text(input.halt.code, input.halt.delta)}};
    if (input.halt.has_frame_offset) result["halt"]["frame_offset"] = input.halt.frame_offset;
    if (input.halt.occurrence != 0) result["halt"]["occurrence"] = input.halt.occurrence;
    if (input.halt.event != StepEvent::none) result["halt"]["event"] = name_of(input.halt.event);
  }
  for (const Mutation& mutation : input.mutations) {
    result["mutations"].push_back(mutation_of(mutation));
  }
  for (const IteratorCall& call : input.iterator_calls) {
    result["iterator_calls"].push_back(to_text(call));
  }
  for (const QueueCall& call : input.queue_calls) result["queue_calls"].push_back(to_text(call));
  return result;
}

json input_record(const Input& input) {
  return {{"text", to_text(input)}, {"input", to_json(input)}, {"state", name_of(state_of(input))}};
}

}  // namespace framestorm

#include "harness/input/canonical.h"

#include <algorithm>

namespace framestorm {
namespace {

constexpr uint8_t kMaxTier = 4;

}  // namespace

void reset(CodeRef* code) {
  code->kind = CodeKind::stub;
  code->tier = 0;
  code->anchor = CodeAnchor::entry;
  code->name.clear();
}

void reset(Mutation* mutation) {
  mutation->kind = MutationKind::set_register;
  mutation->reg = Register::pc;
  mutation->anchor = StackAnchor::sp;
  mutation->offset = 0;
  mutation->field = ThreadField::state;
  mutation->value.kind = ValueKind::real;
  mutation->value.delta = 0;
  mutation->value.index = 0;
  mutation->value.raw = 0;
  reset(&mutation->value.code);
}

void canonicalise_name(std::string* name) {
  if (name->size() > kMaxSymbolName) {
    name->resize(kMaxSymbolName);
  }
  for (char& c : *name) {
    if (!is_symbol_char(c)) {
      c = '_';
    }
  }
}

void canonicalise(CodeRef* code) {
  if (code->kind != CodeKind::nmethod || code->tier > kMaxTier) {
    code->tier = 0;
  }
  canonicalise_name(&code->name);
}

void canonicalise(SymbolicValue* value) {
  if (!uses_delta(value->kind)) {
    value->delta = 0;
  } else if (value->kind == ValueKind::misaligned) {
    value->delta &= 3;
  }
  if (!uses_index(value->kind)) {
    value->index = 0;
  }
  if (value->kind != ValueKind::raw) {
    value->raw = 0;
  }
  if (value->kind == ValueKind::code) {
    canonicalise(&value->code);
  } else {
    reset(&value->code);
  }
}

void canonicalise(Mutation* mutation) {
  if (mutation->kind != MutationKind::set_register) {
    mutation->reg = Register::pc;
  }
  if (mutation->kind != MutationKind::set_stack_word) {
    mutation->anchor = StackAnchor::sp;
    mutation->offset = 0;
  }
  if (mutation->kind != MutationKind::set_thread_field) {
    mutation->field = ThreadField::state;
  }
  canonicalise(&mutation->value);
}

void canonicalise(HaltPoint* halt) {
  if (halt->any) {
    reset(&halt->code);
    halt->delta = 0;
    halt->has_frame_offset = false;
    halt->occurrence = 0;
  } else {
    canonicalise(&halt->code);
  }
  if (halt->occurrence == 0) halt->event = StepEvent::none;
  if (!halt->has_frame_offset) {
    halt->frame_offset = 0;
  }
}

void canonicalise(CallArgs* call) {
  if (call->depth != DepthKind::raw) {
    call->raw_depth = 0;
  }
}

namespace {

template <typename Call>
void canonicalise_call(Call* call) {
  call->argument =
      uses_argument(call->kind) ? std::min(call->argument, kMaxIteratorArgument) : uint8_t{0};
}

template <typename Call>
void canonicalise_calls(std::vector<Call>* calls, size_t most) {
  if (calls->size() > most) calls->resize(most);
  for (Call& call : *calls) canonicalise_call(&call);
}

}  // namespace

void canonicalise(IteratorCall* call) { canonicalise_call(call); }
void canonicalise(QueueCall* call) { canonicalise_call(call); }

void canonicalise(Input* input) {
  canonicalise(&input->halt);
  canonicalise(&input->call);
  if (input->mutations.size() > kMaxMutations) {
    input->mutations.resize(kMaxMutations);
  }
  for (Mutation& mutation : input->mutations) {
    canonicalise(&mutation);
  }
  if (traits_of(input->walker).queue_calls) {
    input->iterator_calls.clear();
  } else {
    input->queue_calls.clear();
  }
  canonicalise_calls(&input->iterator_calls, kMaxIteratorCalls);
  canonicalise_calls(&input->queue_calls, kMaxQueueCalls);
}

}  // namespace framestorm

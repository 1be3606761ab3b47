#include "stress/agent/obsolete_methods.h"

#include "harness/guard/arch.h"
#include "harness/jvm/jvm.h"

namespace framestorm::stress {
namespace {

// The first word of the Method, its vtable; 0 when there is none.
uintptr_t vtable_of(jmethodID id) {
  const auto at = reinterpret_cast<uintptr_t>(id);
  uintptr_t method = 0;
  uintptr_t vtable = 0;
  const bool readable = at % sizeof(at) == 0 && arch::safe_load(at, &method) &&
                        method % sizeof(method) == 0 && arch::safe_load(method, &vtable);
  return readable ? vtable : 0;
}

}  // namespace

bool ObsoleteMethods::may_have_had(jmethodID id) {
  constexpr uintptr_t kLowest = 4096;  // of anything's address
  const auto at = reinterpret_cast<uintptr_t>(id);
  uintptr_t method = 0;
  return at % sizeof(at) == 0 && arch::safe_load(at, &method) && method < kLowest;
}

void ObsoleteMethods::learn(JNIEnv* env) {
  const jclass object = env->FindClass("java/lang/Object");
  const jmethodID any = object == nullptr ? nullptr : env->GetMethodID(object, "hashCode", "()I");
  if (any == nullptr) throw SetupError("java.lang.Object.hashCode was not found");
  env->DeleteLocalRef(object);
  vtable_ = vtable_of(any);
}

bool ObsoleteMethods::has(jmethodID id) const {
  jboolean obsolete = JNI_FALSE;
  return vtable_ != 0 && vtable_of(id) == vtable_ &&
         jvmti_->IsMethodObsolete(id, &obsolete) == JVMTI_ERROR_NONE && obsolete == JNI_TRUE;
}

}  // namespace framestorm::stress

#include "stress/agent/obsolete_methods.h"

#include "harness/guard/arch.h"
#include "harness/jvm/jvm.h"

namespace framestorm::stress {
namespace {

bool load_aligned(uintptr_t address, uintptr_t* value) {
  return address % sizeof(*value) == 0 && arch::safe_load(address, value);
}

// What the ID is the address of: a Method's address.
bool load_method(jmethodID id, uintptr_t* method) {
  return load_aligned(reinterpret_cast<uintptr_t>(id), method);
}

// The first word of the Method, its vtable; 0 when there is none.
uintptr_t vtable_of(jmethodID id) {
  uintptr_t method = 0;
  uintptr_t vtable = 0;
  return load_method(id, &method) && load_aligned(method, &vtable) ? vtable : 0;
}

}  // namespace

bool ObsoleteMethods::may_have_had(jmethodID id) {
  constexpr uintptr_t kLowest = 4096;  // of anything's address
  uintptr_t method = 0;
  return load_method(id, &method) && method < kLowest;
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

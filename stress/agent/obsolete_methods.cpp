#include "stress/agent/obsolete_methods.h"

#include <algorithm>
#include <string>

#include "harness/guard/arch.h"

namespace framestorm::stress {
namespace {

// A class that is in no archive: `interface framestorm.Learnt { void method(); }`, JDK 17's format.
constexpr char kLearnt[] =
    "\xCA\xFE\xBA\xBE\0\0\0\75"
    "\0\7\7\0\2\1\0\21framestorm/Learnt"
    "\7\0\4\1\0\20java/lang/Object"
    "\1\0\6method\1\0\3()V"
    "\6\1\0\1\0\3\0\0\0\0"
    "\0\1\4\1\0\5\0\6\0\0\0\0";

bool load_aligned(uintptr_t address, uintptr_t* value) {
  return address % sizeof(*value) == 0 && arch::safe_load(address, value);
}

}  // namespace

// The Method's address that an ID leads to; false where it cannot be an ID.
bool ObsoleteMethods::load_method(jmethodID id, uintptr_t* method) const {
  if (!methods_.ids_are_numbers()) return load_aligned(reinterpret_cast<uintptr_t>(id), method);
  *method = reinterpret_cast<uintptr_t>(methods_.method_at(id));
  return *method != 0 || methods_.was_counted(id);
}

// The first word of the Method, its vtable; 0 when there is none.
uintptr_t ObsoleteMethods::vtable_of(jmethodID id) const {
  uintptr_t method = 0;
  uintptr_t vtable = 0;
  return load_method(id, &method) && load_aligned(method, &vtable) ? vtable : 0;
}

bool ObsoleteMethods::may_have_had(jmethodID id) const {
  constexpr uintptr_t kLowest = 4096;  // of anything's address
  uintptr_t method = 0;
  return load_method(id, &method) && method < kLowest;
}

void ObsoleteMethods::learn(JNIEnv* env) {
  const auto learn = [this, env](jclass klass, const char* name, const char* signature) {
    const jmethodID id = klass == nullptr ? nullptr : env->GetMethodID(klass, name, signature);
    if (id == nullptr) throw SetupError(std::string("no method ") + name + " to learn from");
    env->DeleteLocalRef(klass);
    return vtable_of(id);
  };
  vtables_ = {learn(env->FindClass("java/lang/Object"), "hashCode", "()I"),
              learn(env->DefineClass(nullptr, nullptr, reinterpret_cast<const jbyte*>(kLearnt),
                                     sizeof kLearnt - 1),
                    "method", "()V")};
}

bool ObsoleteMethods::has(jmethodID id) const {
  jboolean obsolete = JNI_FALSE;
  const uintptr_t vtable = vtable_of(id);
  return vtable != 0 && std::ranges::find(vtables_, vtable) != vtables_.end() &&
         jvmti_->IsMethodObsolete(id, &obsolete) == JVMTI_ERROR_NONE && obsolete == JNI_TRUE;
}

}  // namespace framestorm::stress

/* GetStackTrace that loses its third frame, of whoever asks. */
#include <jvmti.h>
#include <string.h>

static jvmtiError(JNICALL* original)(jvmtiEnv*, jthread, jint, jint, jvmtiFrameInfo*, jint*);

static jvmtiError JNICALL wrong(jvmtiEnv* jvmti, jthread thread, jint from, jint most,
                                jvmtiFrameInfo* frames, jint* count) {
  jvmtiError error = original(jvmti, thread, from, most, frames, count);
  if (error == JVMTI_ERROR_NONE && *count > 4) {
    --*count;
    memmove(frames + 3, frames + 4, (size_t)(*count - 3) * sizeof *frames);
  }
  return error;
}

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM* vm, char* options, void* reserved) {
  jvmtiEnv* jvmti = NULL;
  (void)options, (void)reserved;
  if ((*vm)->GetEnv(vm, (void**)&jvmti, JVMTI_VERSION_11) != JNI_OK) return JNI_ERR;
  struct jvmtiInterface_1_* table = (struct jvmtiInterface_1_*)*jvmti;
  original = table->GetStackTrace;
  table->GetStackTrace = wrong;
  return JNI_OK;
}

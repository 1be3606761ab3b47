// HotSpot's handler of signals, asked about faults that are no walk's, each as if the control thread had it.
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/base/poke.h"
#include "harness/executor/jvm_fixture.h"
#include "harness/input/thread_state.h"
#include "harness/victim/context.h"

namespace framestorm {
namespace {

constexpr uintptr_t kPage = 4096;
constexpr uintptr_t kNowhere = 0x10000;  // beyond what a null pointer's fields are at
constexpr uintptr_t kField = 8;

class SignalHandlerTest : public jvm_test::JvmTest {
 protected:
  struct Signal {
    int number;
    int code;
    uintptr_t address;
  };
  static constexpr Signal kBadMapping = {SIGBUS, BUS_ADRERR, kNowhere};
  static constexpr Signal kBadAddress = {SIGSEGV, SEGV_MAPERR, kNowhere};
  static constexpr Signal kNullsField = {SIGSEGV, SEGV_MAPERR, kField};
  // Of an address that is not canonical the kernel tells nothing: a stack fault's is SIGBUS.
  static constexpr Signal kNotCanonical = {SIGSEGV, SI_KERNEL, 0};
  static constexpr Signal kStackNotCanonical = {SIGBUS, SI_KERNEL, 0};
  static constexpr Signal kDivisionByZero = {SIGFPE, FPE_INTDIV, kField};

  void SetUp() override {
    start({ScenarioId::parked});
    ASSERT_FALSE(HasFatalFailure());
    thread_ = reinterpret_cast<std::byte*>(env()) - layout().jni_env;
  }
  JNIEnv* env() { return session().jvm().env(); }
  const ThreadLayout& layout() { return session().jvm().layout(); }
  template <typename T>
  volatile T& field(size_t offset) {
    return *reinterpret_cast<volatile T*>(thread_ + offset);
  }

  // Where it goes on, when the handler knows how.
  std::optional<uintptr_t> after(const Signal& signal, uintptr_t pc) {
    siginfo_t info = {};
    info.si_signo = signal.number;
    info.si_code = signal.code;
    info.si_addr = reinterpret_cast<void*>(signal.address);
    ucontext_t context = {};
    set_register(&context, Register::pc, pc);
    // _terminated, _in_deopt_handler, _doing_unsafe_access (javaThread.hpp)
    const Poke unsafe(thread_ + layout().terminated + 2 * sizeof(jint), unsafe_access_);
    const Poke state(thread_ + layout().state, state_);
    if (!session().jvm().handle_fault(signal.number, &info, &context)) return std::nullopt;
    return get_register(context, Register::pc);
  }
  bool knows(const Signal& signal, uintptr_t pc) { return after(signal, pc).has_value(); }
  template <typename... Arguments>
  uintptr_t compiled(const std::string& type, const char* name, const char* signature,
                     Arguments... arguments) {
    const jclass holder = env()->FindClass(type.c_str());
    const jmethodID method = env()->GetStaticMethodID(holder, name, signature);
    constexpr int kCalls = 10'000;
    for (int i = 0; i < kCalls; ++i) {
      env()->DeleteLocalRef(env()->CallStaticObjectMethod(holder, method, arguments...));
    }
    session().jvm().code_map().absorb();
    return entry_of(CodeKind::nmethod, type + "." + name);
  }
  uintptr_t compiled_without_unsafe_accesses() {
    return compiled("java/util/Objects", "requireNonNull", "(Ljava/lang/Object;)Ljava/lang/Object;",
                    env()->FindClass("java/lang/Object"));
  }
  bool gets_an_error() {
    const bool thrown = env()->ExceptionCheck() != JNI_FALSE;
    env()->ExceptionClear();
    return thrown;
  }
  // Where a stub accesses what Unsafe was given.
  uintptr_t unsafe_stub() {
    const Poke state(&state_, uint32_t{kThreadInJava});
    const Poke access(&unsafe_access_, true);
    uintptr_t found = 0;
    for (uintptr_t pc = entry_of(CodeKind::stub, "jbyte_arraycopy");
         session().jvm().code_map().find(pc) != nullptr && found == 0; ++pc) {
      if (knows(kBadMapping, pc)) found = pc;
    }
    EXPECT_NE(found, 0U);
    EXPECT_TRUE(gets_an_error());
    return found;
  }

  std::byte* thread_ = nullptr;
  uint32_t state_ = kThreadInNative;
  bool unsafe_access_ = false;
};

TEST_F(SignalHandlerTest, WithoutInfoOrContextNothingIsKnown) {
  siginfo_t info = {};
  ucontext_t context = {};
  EXPECT_FALSE(session().jvm().handle_fault(SIGSEGV, nullptr, &context));
  EXPECT_FALSE(session().jvm().handle_fault(SIGTRAP, &info, nullptr));
}

TEST_F(SignalHandlerTest, OnlyAFaultOfMemoryEndsASafeFetch) {
  static uintptr_t pc = 0;
  struct sigaction action = {}, before = {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  action.sa_sigaction = [](int signal, siginfo_t* info, void* context) {
    pc = get_register(*static_cast<ucontext_t*>(context), Register::pc);
    if (!Jvm::get().handle_fault(signal, info, context)) std::_Exit(1);
  };
  sigaction(SIGSEGV, &action, &before);
  // The handler reads the code at pc by it.
  EXPECT_FALSE(knows(kBadMapping, kNowhere));
  sigaction(SIGSEGV, &before, nullptr);
  ASSERT_NE(pc, 0U);
  for (const int signal : {SIGSEGV, SIGBUS}) {
    EXPECT_NE(after({signal, SI_USER, kNowhere}, pc).value_or(pc), pc) << strsignal(signal);
  }
  for (const int signal : {SIGFPE, SIGILL, SIGPIPE, SIGXFSZ}) {
    EXPECT_EQ(after({signal, SI_USER, kNowhere}, pc).value_or(pc), pc) << strsignal(signal);
  }
}

// JNI's Get<Type>Field without a transition: the object may have moved meanwhile.
TEST_F(SignalHandlerTest, OnlyAFaultOfMemorySendsAFastFieldAccessToTheSlowOne) {
  const auto get = reinterpret_cast<uintptr_t>(env()->functions->GetIntField);
  std::vector<uintptr_t> loads;
  for (uintptr_t pc = get; pc < get + 256; ++pc) {
    if (knows(kBadAddress, pc)) loads.push_back(pc);
  }
  ASSERT_EQ(loads.size(), 1U);
  EXPECT_TRUE(knows(kBadMapping, loads.front()));
  EXPECT_TRUE(knows(kStackNotCanonical, loads.front()));
  EXPECT_FALSE(knows(kNotCanonical, loads.front()));
  EXPECT_FALSE(knows(kDivisionByZero, loads.front()));
}

// It faults on purpose, to see what a signal does to registers. Of an invalid address it is not asked: what the
// handler does then may need instructions that this CPU has not.
TEST_F(SignalHandlerTest, OnlyAnInvalidAddressIsTheTestOfTheCpu) {
  const uintptr_t begin = entry_of(CodeKind::stub, "get_cpu_info_stub");
  const CodeEntry* const stub = session().jvm().code_map().find(begin);
  ASSERT_NE(stub, nullptr);
  for (uintptr_t pc = stub->begin; pc < stub->end; ++pc) {
    EXPECT_FALSE(knows(kDivisionByZero, pc)) << "+" << pc - stub->begin;
  }
}

TEST_F(SignalHandlerTest, AnUnsafeAccessIsOneInJavaInTheVmOrInNativeOnly) {
  const uintptr_t pc = unsafe_stub();
  unsafe_access_ = true;
  for (const auto& [state, known] : {std::pair(kThreadBlocked, false),
                                     {kThreadInJava, true},
                                     {kThreadInNative, true},
                                     {kThreadInVm, true}}) {
    state_ = state;
    EXPECT_EQ(knows(kBadMapping, pc), known) << thread_state_name(state);
    EXPECT_EQ(gets_an_error(), known) << thread_state_name(state);
  }
}

TEST_F(SignalHandlerTest, InInterpretedCodeADivisionAndANullPointerAreExceptions) {
  state_ = kThreadInJava;
  const uintptr_t pc = entry_of(CodeKind::codelet, "return entry points");
  for (const auto& [signal, known] :
       {std::pair(kDivisionByZero, true),
        {{SIGFPE, FPE_FLTDIV, kNowhere}, true},
        {kNullsField, true},
        // Of one that was sent, the sender's number is where the address is.
        {{SIGFPE, SI_USER, kField}, false},
        {{SIGILL, SI_USER, kField}, false},
        {kBadAddress, false},
        {kNotCanonical, false},
        {kBadMapping, false}}) {
    EXPECT_EQ(knows(signal, pc), known) << signal.number << ", code " << signal.code;
  }
}

// As of a file that was truncated.
TEST_F(SignalHandlerTest, InJavaABadMappingIsAnErrorWhereUnsafeAccessesAre) {
  const std::string map = "java/util/concurrent/ConcurrentHashMap";
  const std::string node = map + "$Node";
  const uintptr_t with =
      compiled(map, "tabAt", ("([L" + node + ";I)L" + node + ";").c_str(),
               env()->NewObjectArray(1, env()->FindClass(node.c_str()), nullptr), 0);
  const uintptr_t without = compiled_without_unsafe_accesses();
  const uintptr_t stub = unsafe_stub();
  const uintptr_t outside = reinterpret_cast<uintptr_t>(&std::raise);
  state_ = kThreadInJava;
  for (const auto& [pc, unsafe_access, known] :
       std::initializer_list<std::tuple<uintptr_t, bool, bool>>{{with, false, true},
                                                                {with, true, true},
                                                                {without, false, false},
                                                                {without, true, false},
                                                                {stub, false, false},
                                                                {stub, true, true},
                                                                {outside, false, false},
                                                                {outside, true, false}}) {
    unsafe_access_ = unsafe_access;
    EXPECT_EQ(knows(kBadMapping, pc), known)
        << std::hex << pc << (unsafe_access ? " in an access" : "");
    EXPECT_EQ(gets_an_error(), known);
  }
}

TEST_F(SignalHandlerTest, OnlyAnInvalidAddressIsAPoll) {
  const uintptr_t pc = compiled_without_unsafe_accesses();
  const uintptr_t size = field<uintptr_t>(layout().stack_size);
  const uintptr_t end = field<uintptr_t>(layout().stack_base) - size;
  state_ = kThreadInJava;
  int polls = 0;
  for (size_t i = 0; i < layout().java_thread_size; i += sizeof(uintptr_t)) {
    // Of two pages the JavaThread has the one that may be read, unless it is to stop.
    // Nothing is asked about its stack: that has zones, which would be opened.
    for (const uintptr_t page : {field<uintptr_t>(i) - kPage, uintptr_t{field<uintptr_t>(i)}}) {
      if (page % kPage != 0 || page == 0 || page - end < size) continue;
      if (!knows({SIGSEGV, SEGV_ACCERR, page}, pc)) continue;
      EXPECT_FALSE(knows({SIGILL, SI_USER, page}, pc));
      ++polls;
    }
  }
  EXPECT_GT(polls, 0);
}

TEST_F(SignalHandlerTest, NativeCodeGoesOnIntoTheYellowZone) {
  const uintptr_t end =
      field<uintptr_t>(layout().stack_base) - field<uintptr_t>(layout().stack_size);
  const uintptr_t yellow = end + kPage;  // above the red one
  const uintptr_t pc = entry_of(CodeKind::function, "JNI_CreateJavaVM");
  ASSERT_TRUE(knows({SIGSEGV, SEGV_ACCERR, yellow}, pc));
  *reinterpret_cast<volatile char*>(yellow) = 0;
}

// A call into memory that cannot be read has pushed the address to go on at.
TEST_F(SignalHandlerTest, AFrameOfACallIntoNowhereIsTheCallers) {
  using Fetch = void (*)(void* frame, const void* context);
  const auto fetch =
      reinterpret_cast<Fetch>(entry_of(CodeKind::function, "_ZN2os24fetch_frame_from_contextEPKv"));
  const uintptr_t here = entry_of(CodeKind::function, "JNI_CreateJavaVM");
  uintptr_t stack[] = {here, 0};
  const uintptr_t sp = reinterpret_cast<uintptr_t>(stack);
  for (const auto& [pc, expected_sp] : {std::pair(here, sp), {kNowhere, sp + sizeof(sp)}}) {
    ucontext_t context = {};
    set_register(&context, Register::pc, pc);
    set_register(&context, Register::sp, sp);
    std::array<uintptr_t, 16> frame = {};  // sp and pc first
    fetch(frame.data(), &context);
    EXPECT_EQ(frame[0], expected_sp);
    EXPECT_EQ(frame[1], here);
  }
}

}  // namespace
}  // namespace framestorm

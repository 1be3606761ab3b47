// Safepoint queues of profile2.h, call by call: elements are of a native method, and are told when
// it returns.
#include "profile2.h"

#include <gtest/gtest.h>
#include <ucontext.h>
#include <algorithm>

#include <cstdlib>
#include <deque>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/base/test_folder.h"
#include "harness/hotspot/methods_test/live_methods.h"

namespace framestorm::methods_test {
namespace {

struct Told {
  void* argument;
  int state;
  std::vector<std::string> methods;
  bool operator==(const Told&) const = default;
};

void* word(uintptr_t value) { return reinterpret_cast<void*>(value); }

class QueueTest : public MethodsTest {
 protected:
  void SetUp() override {
    MethodsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    find(&capabilities_, "ASGST_Capabilities");
    find(&register_, "ASGST_RegisterQueue");
    find(&deregister_, "ASGST_DeregisterQueue");
    find(&enqueue_, "ASGST_Enqueue");
    find(&element_, "ASGST_GetQueueElement");
    find(&enqueuable_, "ASGST_GetEnqueuableElement");
    find(&resize_, "ASGST_ResizeQueue");
    find(&info_, "ASGST_GetQueueSizeInfo");
    find(&on_start_, "ASGST_SetOnQueueProcessingStart");
    find(&on_end_, "ASGST_SetOnQueueProcessingEnd");
    find(&next_, "ASGST_NextFrame");
    find(&state_, "ASGST_State");
    klass_ = static_cast<jclass>(env()->NewGlobalRef(define(sample_class(1), new_loader())));
    JNINativeMethod outside = {const_cast<char*>("outside"), const_cast<char*>("()V"),
                               reinterpret_cast<void*>(&run_body)};
    ASSERT_EQ(env()->RegisterNatives(klass_, &outside, 1), JNI_OK);
    outside_ = env()->GetStaticMethodID(klass_, "outside", "()V");
  }

  // In a native method, which polls when it returns.
  void in_native(const std::function<void()>& body) { in_native(env(), body); }
  void in_native(JNIEnv* env, const std::function<void()>& body) {
    body_ = &body;
    env->CallStaticVoidMethod(klass_, outside_);
  }
  ASGST_Queue* new_queue(int size) { return register_(nullptr, size, 0, &tell, this); }
  int enqueue(uintptr_t argument) { return enqueue_(queue_, nullptr, word(argument)); }
  std::vector<uintptr_t> told() const {
    std::vector<uintptr_t> arguments;
    for (const Told& each : told_) arguments.push_back(reinterpret_cast<uintptr_t>(each.argument));
    return arguments;
  }
  static void tell(ASGST_Iterator* iterator, void* test, void* argument) {
    auto* const self = static_cast<QueueTest*>(test);
    Told told = {argument, self->state_(iterator), {}};
    ASGST_Frame frame;
    while (self->next_(iterator, &frame) == 1) {
      told.methods.push_back(self->method_info(frame.method).name);
    }
    self->told_.push_back(told);
    if (self->in_handler_) self->in_handler_();
  }

  static void end_round(ASGST_Queue* queue, ASGST_Iterator*, void* rounds) {
    static_cast<std::vector<size_t>*>(rounds)->push_back(static_cast<size_t>(info_(queue).size));
  }

  ASGST_Queue* queue_ = nullptr;
  std::vector<Told> told_;
  std::function<void()> in_handler_;
  decltype(&ASGST_Capabilities) capabilities_ = nullptr;
  decltype(&ASGST_RegisterQueue) register_ = nullptr;
  decltype(&ASGST_DeregisterQueue) deregister_ = nullptr;
  decltype(&ASGST_Enqueue) enqueue_ = nullptr;
  decltype(&ASGST_GetQueueElement) element_ = nullptr;
  decltype(&ASGST_GetEnqueuableElement) enqueuable_ = nullptr;
  decltype(&ASGST_ResizeQueue) resize_ = nullptr;
  static inline decltype(&ASGST_GetQueueSizeInfo) info_ = nullptr;
  decltype(&ASGST_SetOnQueueProcessingStart) on_start_ = nullptr;
  decltype(&ASGST_SetOnQueueProcessingEnd) on_end_ = nullptr;
  decltype(&ASGST_NextFrame) next_ = nullptr;
  decltype(&ASGST_State) state_ = nullptr;

 private:
  template <typename T>
  void find(T* function, const char* name) {
    *function = reinterpret_cast<T>(jvm().symbol(name));
    ASSERT_NE(*function, nullptr) << name;
  }
  static void run_body(JNIEnv*, jclass) { (*body_)(); }

  static inline const std::function<void()>* body_ = nullptr;
  jclass klass_ = nullptr;
  jmethodID outside_ = nullptr;
};

TEST_F(QueueTest, TellsInTheOrderOfEnqueueing) {
  EXPECT_TRUE(capabilities_() & ASGST_REGISTER_QUEUE);
  queue_ = new_queue(4);
  ASSERT_NE(queue_, nullptr);
  in_native([&] {
    for (const uintptr_t each : {7U, 8U, 9U}) EXPECT_EQ(enqueue(each), ASGST_JAVA_TRACE);
    EXPECT_TRUE(told_.empty()) << "before the safepoint";
    EXPECT_EQ(info_(queue_).size, 3);
  });
  EXPECT_EQ(told_,
            (std::vector<Told>{
                {word(7), 1, {"outside"}}, {word(8), 1, {"outside"}}, {word(9), 1, {"outside"}}}));
  EXPECT_EQ(info_(queue_).size, 0);
}

TEST_F(QueueTest, AFullQueueTakesNothingAndCountsAttempts) {
  queue_ = new_queue(2);
  in_native([&] {
    EXPECT_EQ(enqueue(1), ASGST_JAVA_TRACE);
    EXPECT_EQ(enqueue(2), ASGST_JAVA_TRACE);
    EXPECT_EQ(enqueue(3), ASGST_ENQUEUE_FULL_QUEUE);
    const ASGST_QueueSizeInfo info = info_(queue_);
    EXPECT_EQ(info.size, 2);
    EXPECT_EQ(info.capacity, 2);
    EXPECT_EQ(info.attempts, 3);
  });
  EXPECT_EQ(told(), (std::vector<uintptr_t>{1, 2}));
  EXPECT_EQ(info_(queue_).attempts, 0);
  in_native([&] { EXPECT_EQ(enqueue(4), ASGST_JAVA_TRACE); });
  EXPECT_EQ(told().back(), 4U);
}

TEST_F(QueueTest, IsResizedWhenItsSafepointEnds) {
  queue_ = new_queue(2);
  int in_handler = 0;
  in_handler_ = [&] { in_handler = info_(queue_).capacity; };
  in_native([&] {
    enqueue(1);
    resize_(queue_, 5);
    resize_(queue_, 0);
    EXPECT_EQ(info_(queue_).capacity, 2);
  });
  EXPECT_EQ(in_handler, 2);
  EXPECT_EQ(info_(queue_).capacity, 5);
  // Also by a handler, and when there is nothing to tell.
  in_handler_ = [&] { resize_(queue_, 3); };
  in_native([&] { enqueue(2); });
  EXPECT_EQ(info_(queue_).capacity, 3);
  in_native([&] { resize_(queue_, 1); });
  EXPECT_EQ(info_(queue_).capacity, 1);
}

// What comes while elements are handled is of the next round, so a smaller size has to wait for it.
TEST_F(QueueTest, WhatAHandlerEnqueuesIsOfTheNextRoundAndKeepsItsRoom) {
  queue_ = new_queue(8);
  in_handler_ = [&] {
    if (told_.size() > 1) return;
    resize_(queue_, 1);
    for (const uintptr_t each : {2U, 3U}) EXPECT_EQ(enqueue(each), ASGST_JAVA_TRACE);
    EXPECT_EQ(info_(queue_).size, 3);
  };
  std::vector<size_t> rounds;
  on_end_(queue_, 0, false, &end_round, &rounds);
  in_native([&] { enqueue(1); });
  in_native([] {});
  EXPECT_EQ(told(), (std::vector<uintptr_t>{1, 2, 3}));
  EXPECT_EQ(rounds, (std::vector<size_t>{3, 2})) << "in the queue at the end of each";
  EXPECT_EQ(info_(queue_).capacity, 1);
}

TEST_F(QueueTest, ElementsAreCountedFromBothEndsAndTheirArgumentsMayBeChanged) {
  queue_ = new_queue(4);
  in_native([&] {
    for (const uintptr_t each : {1U, 2U, 3U}) enqueue(each);
    EXPECT_EQ(element_(queue_, 0)->arg, word(1));
    EXPECT_EQ(element_(queue_, 2)->arg, word(3));
    EXPECT_EQ(element_(queue_, -1), element_(queue_, 2));
    EXPECT_EQ(element_(queue_, -3), element_(queue_, 0));
    EXPECT_EQ(element_(queue_, 3), nullptr);
    EXPECT_EQ(element_(queue_, -4), nullptr);
    ASGST_QueueElement next = {word(1), word(1), word(1), word(1)};
    EXPECT_EQ(enqueuable_(nullptr, &next), ASGST_JAVA_TRACE);
    const ASGST_QueueElement* const last = element_(queue_, -1);
    EXPECT_EQ(next.pc, last->pc);
    EXPECT_EQ(next.sp, last->sp);
    EXPECT_EQ(next.fp, last->fp);
    EXPECT_EQ(next.arg, nullptr);
    element_(queue_, -1)->arg = word(30);
    // What a handler is told does not hang on what is highly discouraged to change.
    *element_(queue_, 1) = {nullptr, word(16), nullptr, word(20)};
  });
  EXPECT_EQ(told_, (std::vector<Told>{{word(1), 1, {"outside"}},
                                      {word(20), 1, {"outside"}},
                                      {word(30), 1, {"outside"}}}));
}

struct Around {
  QueueTest* test;
  std::vector<std::string>* said;
  const char* name;
};

TEST_F(QueueTest, HandlersAreCalledBeforeAndAfter) {
  queue_ = new_queue(4);
  std::vector<std::string> said;
  static decltype(state_) state;
  state = state_;
  const auto around = [](ASGST_Queue*, ASGST_Iterator* iterator, void* argument) {
    auto* const a = static_cast<Around*>(argument);
    a->said->push_back(std::string(a->name) + (iterator == nullptr ? "" : " with frames"));
    if (iterator != nullptr) EXPECT_EQ(state(iterator), 1);
  };
  in_handler_ = [&] { said.emplace_back("element"); };
  Around before = {this, &said, "before"}, after = {this, &said, "after"};
  on_start_(queue_, 0, false, around, &before);
  on_end_(queue_, 0, true, around, &after);
  in_native([&] { enqueue(1); });
  in_native([] {});  // empty
  EXPECT_EQ(said, (std::vector<std::string>{"before", "element", "after with frames"}));
  on_start_(queue_, 0, false, nullptr, nullptr);
  on_end_(queue_, 0, false, nullptr, nullptr);
  in_native([&] { enqueue(1); });
  EXPECT_EQ(said.size(), 4U);
}

TEST_F(QueueTest, AnElementWhoseFrameIsGoneIsAnError) {
  queue_ = new_queue(4);
  // At the last poll of the method that returns, too.
  bool again = true;
  in_handler_ = [&] {
    if (again) EXPECT_EQ(enqueue(told_.size() + 1), ASGST_JAVA_TRACE);
  };
  in_native([&] { enqueue(1); });
  again = false;
  const size_t before = told_.size();
  in_native([] {});
  ASSERT_EQ(told_.size(), before + 1);
  EXPECT_EQ(told_.back(), (Told{word(before + 1), ASGST_SAMPLE_LEFT, {}}));
  for (size_t i = 0; i < before; ++i) EXPECT_EQ(told_[i], (Told{word(i + 1), 1, {"outside"}}));
}

TEST_F(QueueTest, EndedByItsHandlerItDropsTheRest) {
  queue_ = new_queue(4);
  in_handler_ = [&] { EXPECT_TRUE(deregister_(nullptr, queue_)); };
  in_native([&] {
    enqueue(1);
    enqueue(2);
  });
  EXPECT_EQ(told(), (std::vector<uintptr_t>{1}));
  in_native([&] { EXPECT_EQ(enqueue(3), ASGST_ENQUEUE_NO_QUEUE); });
  EXPECT_FALSE(deregister_(nullptr, queue_));
}

TEST_F(QueueTest, AnEndedQueueIsNeverTakenForAnother) {
  queue_ = new_queue(4);
  EXPECT_TRUE(deregister_(nullptr, queue_));
  ASGST_Queue* const ended = queue_;
  for (int i = 0; i < 100; ++i) {
    queue_ = new_queue(4);
    ASSERT_NE(queue_, nullptr);
    EXPECT_NE(queue_, ended);
    in_native([&] { EXPECT_EQ(enqueue_(ended, nullptr, nullptr), ASGST_ENQUEUE_NO_QUEUE); });
    EXPECT_EQ(element_(ended, 0), nullptr);
    EXPECT_EQ(info_(ended).capacity, 0);
    resize_(ended, 3);
    on_start_(ended, 0, false, [](ASGST_Queue*, ASGST_Iterator*, void*) {}, nullptr);
    EXPECT_FALSE(deregister_(nullptr, ended));
    EXPECT_TRUE(deregister_(nullptr, queue_));
  }
  EXPECT_TRUE(told_.empty());
}

TEST_F(QueueTest, WrongArgumentsAreRefused) {
  EXPECT_EQ(register_(nullptr, 0, 0, &tell, this), nullptr);
  EXPECT_EQ(register_(nullptr, -1, 0, &tell, this), nullptr);
  EXPECT_EQ(register_(nullptr, (1 << 20) + 1, 0, &tell, this), nullptr);
  EXPECT_EQ(register_(nullptr, 4, 0, nullptr, this), nullptr);
  EXPECT_EQ(register_(reinterpret_cast<JNIEnv*>(this), 4, 0, &tell, this), nullptr);
  EXPECT_EQ(enqueue_(nullptr, nullptr, nullptr), ASGST_ENQUEUE_NO_QUEUE);
  EXPECT_EQ(enqueue_(static_cast<ASGST_Queue*>(word(0x123456)), nullptr, nullptr),
            ASGST_ENQUEUE_NO_QUEUE);
  EXPECT_EQ(enqueuable_(nullptr, nullptr), ASGST_INVALID_ARGUMENT);
  EXPECT_FALSE(deregister_(nullptr, nullptr));
  queue_ = new_queue(4);
  EXPECT_EQ(enqueue(1), ASGST_NO_TOP_JAVA_FRAME) << "outside all Java frames";
  EXPECT_EQ(info_(queue_).attempts, 1);
}

TEST_F(QueueTest, OfAnotherThreadIsToldThereAndEndsWithIt) {
  JNIEnv* const mine = env();
  queue_ = nullptr;
  std::thread::id told_by;
  in_handler_ = [&] { told_by = std::this_thread::get_id(); };
  std::thread other([&] {
    JNIEnv* theirs = nullptr;
    jvm().vm()->AttachCurrentThread(reinterpret_cast<void**>(&theirs), nullptr);
    in_native(theirs, [&] {
      // As by any thread: the queue is that of the environment.
      std::thread([&] { queue_ = register_(theirs, 4, 0, &tell, this); }).join();
      EXPECT_EQ(enqueue(1), ASGST_JAVA_TRACE);
      EXPECT_FALSE(deregister_(mine, queue_));
    });
    EXPECT_EQ(told(), (std::vector<uintptr_t>{1}));
    EXPECT_EQ(told_by, std::this_thread::get_id());
    jvm().vm()->DetachCurrentThread();
  });
  other.join();
  EXPECT_EQ(enqueue(2), ASGST_ENQUEUE_NO_QUEUE);
}

TEST_F(QueueTest, AnotherThreadMayEndItWithElementsInIt) {
  queue_ = new_queue(4);
  JNIEnv* const mine = env();
  in_native([&] {
    enqueue(1);
    std::thread([&] { EXPECT_TRUE(deregister_(mine, queue_)); }).join();
    EXPECT_EQ(enqueue(2), ASGST_ENQUEUE_NO_QUEUE);
  });
  in_native([] {});
  EXPECT_TRUE(told_.empty());
}

TEST_F(QueueTest, SeveralQueuesAreToldInTheOrderOfTheirRegistration) {
  ASGST_Queue* const first = new_queue(4);
  ASGST_Queue* const second = new_queue(4);
  in_native([&] {
    enqueue_(second, nullptr, word(2));
    enqueue_(first, nullptr, word(1));
  });
  EXPECT_EQ(told(), (std::vector<uintptr_t>{1, 2}));
}

// A queue as a list: what each call of a random sequence has to give, in the native method and in
// handlers, with contexts that are not the thread's (it is outside Java, so its anchor counts).
class QueueModel {
 public:
  explicit QueueModel(int capacity) : capacity_(capacity) {}

  int enqueue(uintptr_t argument) {
    ++attempts_;
    if (elements_.size() >= static_cast<size_t>(capacity_)) return ASGST_ENQUEUE_FULL_QUEUE;
    elements_.push_back(argument);
    return ASGST_JAVA_TRACE;
  }
  void resize(int size) {
    if (size >= 1 && size <= 1 << 20) asked_ = size;
  }
  // Null when there is none.
  uintptr_t* element(int n) {
    const int size = static_cast<int>(elements_.size());
    if (n >= size || n < -size) return nullptr;
    return &elements_[static_cast<size_t>(n < 0 ? size + n : n)];
  }
  uintptr_t next_told() {
    if (round_ == 0) round_ = elements_.size();
    return told_ < elements_.size() ? elements_[told_++] : 0;
  }
  bool round_is_over() const { return told_ == round_; }
  void end_round() {
    elements_.erase(elements_.begin(), elements_.begin() + static_cast<ptrdiff_t>(told_));
    told_ = round_ = 0;
    attempts_ = 0;
  }
  void resize_now() {
    if (asked_ != 0 && elements_.size() <= static_cast<size_t>(asked_)) {
      capacity_ = std::exchange(asked_, 0);
    }
  }
  bool agrees(const ASGST_QueueSizeInfo& info) const {
    return info.size == static_cast<jint>(elements_.size()) && info.capacity == capacity_ &&
           info.attempts == attempts_;
  }

 private:
  std::deque<uintptr_t> elements_;
  int capacity_;
  int attempts_ = 0;
  int asked_ = 0;
  size_t told_ = 0;
  size_t round_ = 0;  // elements that there were when it began
};

class QueueSequences : public QueueTest {
 protected:
  // Handlers are called at polls outside Java, too, where nothing can be enqueued.
  void call_something(bool may_enqueue) {
    const int n = static_cast<int>(random_() % 12) - 4;
    switch (may_enqueue ? random_() % 6 : 2 + random_() % 4) {
      case 0:
      case 1: {
        ucontext_t context;
        getcontext(&context);
        context.uc_mcontext.gregs[random_() % NGREG] = static_cast<greg_t>(random_());
        void* const from = random_() % 2 == 0 ? nullptr : &context;
        const uintptr_t argument = next_argument_++;
        EXPECT_EQ(enqueue_(queue_, from, word(argument)), model_->enqueue(argument));
        break;
      }
      case 2:
        resize_(queue_, n);
        model_->resize(n);
        break;
      case 3: {
        ASGST_QueueElement* const element = element_(queue_, n);
        uintptr_t* const expected = model_->element(n);
        ASSERT_EQ(element != nullptr, expected != nullptr);
        if (element == nullptr) break;
        EXPECT_EQ(element->arg, word(*expected));
        *expected = next_argument_++;
        *element = {nullptr, word(random_()), word(random_()), word(*expected)};
        break;
      }
      default:
        EXPECT_TRUE(model_->agrees(info_(queue_)));
    }
  }

  std::mt19937_64 random_{1};
  QueueModel* model_ = nullptr;
  uintptr_t next_argument_ = 1;
};

TEST_F(QueueSequences, AgreeWithAModel) {
  size_t told = 0;
  for (int sequence = 0; sequence < 300 && !HasFailure(); ++sequence) {
    const int capacity = 1 + static_cast<int>(random_() % 6);
    QueueModel model(capacity);
    model_ = &model;
    queue_ = new_queue(capacity);
    told_.clear();
    in_handler_ = [&] {
      EXPECT_EQ(told_.back(), (Told{word(model.next_told()), 1, {"outside"}}));
      if (random_() % 3 == 0) call_something(/*may_enqueue=*/false);
    };
    on_end_(
        queue_, 0, false,
        [](ASGST_Queue*, ASGST_Iterator*, void* of) {
          auto* const m = static_cast<QueueModel*>(of);
          EXPECT_TRUE(m->round_is_over());
          m->end_round();
          m->resize_now();
        },
        &model);
    for (int native = 0; native < 10; ++native) {
      in_native([&] {
        for (uint64_t i = random_() % 8; i > 0; --i) call_something(/*may_enqueue=*/true);
      });
      model.resize_now();
    }
    told += told_.size();
    EXPECT_TRUE(model.agrees(info_(queue_)));
    EXPECT_TRUE(deregister_(nullptr, queue_));
  }
  EXPECT_GT(told, 1000U);
}

// ---- In whole programs, against the walk in the signal handler (queue_agent.cpp) ----------------

struct Program {
  const char* name;
  const char* options;
};

class QueuePrograms : public testing::TestWithParam<Program> {};

int64_t number(const std::string& json, const std::string& key) {
  const size_t at = json.find("\"" + key + "\": ");
  return at == std::string::npos ? 0 : std::atoll(json.c_str() + at + key.size() + 4);
}

// How many samples of each sort there have to be.
constexpr std::pair<const char*, int64_t> kLeast[] = {
    {"right", 1000}, {"carried", 20}, {"across", 20}, {"thawed", 50}};

TEST_P(QueuePrograms, WhatIsToldIsWhatTheSignalHandlerWalked) {
  const char* const jdk = std::getenv("FRAMESTORM_TEST_JDK");
  ASSERT_NE(jdk, nullptr);
  const TestFolder folder;
  const std::string output = folder / "queue.json";
  const std::string command =
      std::string(jdk) + "/bin/java " + GetParam().options +
      " -agentpath:" FRAMESTORM_QUEUE_AGENT "=interval=1000,output=" + output +
      " " FRAMESTORM_QUEUE_WORKLOAD " ";
  std::string json;
  const auto has = [&](const auto& least) { return number(json, least.first) > least.second; };
  // A program's second has as many samples as the machine lets it have.
  for (int seconds = 1; seconds <= 8 && !std::ranges::all_of(kLeast, has); seconds *= 2) {
    ASSERT_EQ(std::system((command + std::to_string(seconds)).c_str()), 0) << command;
    std::ifstream in(output);
    json.assign(std::istreambuf_iterator<char>(in), {});
  }
  SCOPED_TRACE(command + "\n" + json);
  EXPECT_EQ(number(json, "wrong"), 0);
  EXPECT_EQ(number(json, "enqueued"), number(json, "handler_calls") + number(json, "left"));
  EXPECT_EQ(number(json, "handler_calls"),
            number(json, "right") + number(json, "error-25") + number(json, "error-2"))
      << "errors that are documented for queues";
  EXPECT_GT(number(json, "right"), 9 * number(json, "error-25")) << "most samples are told";
  // In the signal handler, of virtual threads that never yield and that park again and again.
  EXPECT_EQ(number(json, "no_carrier"), 0);
  for (const auto& least : kLeast) EXPECT_TRUE(has(least)) << least.first;
}

INSTANTIATE_TEST_SUITE_P(
    Modes, QueuePrograms,
    testing::Values(Program{"interpreter", "-Xint -XX:+UseSerialGC"},
                    Program{"c1", "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC"},
                    Program{"c2", "-XX:-TieredCompilation -XX:+UseZGC"},
                    Program{"tiered", "-XX:+UseG1GC"},
                    Program{"shenandoah", "-XX:+UseShenandoahGC -XX:+PreserveFramePointer"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace framestorm::methods_test

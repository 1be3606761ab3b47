// What profilers tell of their samples: async-profiler by its C API, java-profiler by its JNI
// functions, JFR by Java.
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "harness/walkers/java_profiler.h"
#include "harness/walkers/profiler.h"

namespace framestorm {
namespace {

// Frames of Java as async-profiler's annotations mark them: compiled, by C1, inlined, interpreted.
constexpr std::string_view kJavaMarks[] = {"_[j]", "_[1]", "_[i]", "_[0]"};

uint64_t number_at(std::string_view text, size_t at) {
  uint64_t value = 0;
  if (at < text.size()) std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

// async-profiler's API (src/asprof.h). The stand-in of the tests has it too.
class AsprofStore final : public SampleStore {
 public:
  using Write = void (*)(const char* text, size_t size);
  using Execute = const char* (*)(const char* command, Write write);
  explicit AsprofStore(Execute execute) : execute_(execute) {
    run("metrics");
    has_metrics_ = !told().empty();
  }

  uint64_t count() override {
    if (!has_metrics_) {
      run("dump,traces=0,flat=0");
      return figure("Total samples       : ") - figure("skipped             : ");
    }
    run("metrics");
    return figure("samples_total ") - figure("samples_skipped_total ");
  }
  // It then reads all traces for it.
  bool counts_slowly() const override { return !has_metrics_; }

  // "[name tid=7];java/lang/Thread.run_[j];...;innermost count", in no order.
  std::vector<RecordedTrace> new_traces() override {
    run("dump,collapsed,threads,ann");
    // Traces that differ in what is not printed have lines of their own.
    std::map<std::string, uint64_t> counts;
    std::string_view rest = told();
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const size_t space = line.rfind(' ');
      if (space == std::string_view::npos) continue;
      counts[std::string(line.substr(0, space))] += number_at(line, space + 1);
    }
    std::vector<RecordedTrace> traces;
    for (const auto& [line, count] : counts) {
      for (uint64_t& seen = seen_[line]; seen < count; ++seen) traces.push_back(parse(line));
    }
    return traces;
  }

 private:
  static std::string& told() {
    static std::string text;  // the API passes no argument on
    return text;
  }
  void run(const char* command) {
    told().clear();
    execute_(command, [](const char* text, size_t size) { told().append(text, size); });
  }
  static uint64_t figure(std::string_view name) {
    const size_t at = told().find(name);
    return at == std::string::npos ? 0 : number_at(told(), at + name.size());
  }
  static RecordedTrace parse(std::string_view line) {
    RecordedTrace trace;
    const size_t tid = line.find("tid=");
    if (tid != std::string_view::npos) trace.tid = static_cast<int>(number_at(line, tid + 4));
    while (!line.empty()) {
      const size_t begin = line.rfind(';') + 1;  // 0 for the outermost
      std::string_view frame = line.substr(begin);
      line = line.substr(0, begin == 0 ? 0 : begin - 1);
      for (const std::string_view mark : kJavaMarks) {
        if (!frame.ends_with(mark)) continue;
        frame.remove_suffix(mark.size());
        trace.methods.emplace_back(frame);
        break;
      }
    }
    return trace;
  }

  Execute execute_;
  bool has_metrics_ = false;              // from 4.3 on
  std::map<std::string, uint64_t> seen_;  // samples by line
};

// framestorm.RecordedSamples reads flight recordings: of JFR itself, or in a file.
class RecordingStore : public SampleStore {
 public:
  explicit RecordingStore(const Jvm& jvm) : jvm_(jvm) {
    JNIEnv* env = jvm.env();
    const jclass found = env->FindClass("framestorm/RecordedSamples");
    jvm.check_exception("loading framestorm.RecordedSamples");
    class_ = static_cast<jclass>(env->NewGlobalRef(found));
    read_ = env->GetStaticMethodID(class_, "read", "(Ljava/lang/String;Z)[Ljava/lang/String;");
    jvm.check_exception("framestorm.RecordedSamples.read");
  }

  // JFR stores those of threads in native code from a thread of its own, up to 0.1 s later.
  uint64_t count() override {
    constexpr timespec kPause = {0, 200'000'000};
    size_t before = 0;
    for (;;) {
      const size_t now = read(/*only_new=*/false).size();
      if (now == before) return now;
      before = now;
      nanosleep(&kPause, nullptr);
    }
  }
  bool counts_slowly() const override { return true; }

  std::vector<RecordedTrace> new_traces() override { return read(/*only_new=*/true); }

 protected:
  const Jvm& jvm() const { return jvm_; }
  // A file with everything so far; empty for JFR's own recordings.
  virtual std::filesystem::path dump() { return {}; }

 private:
  // "tid,Java's id;innermost;...;outermost" of each sample.
  std::vector<RecordedTrace> read(bool only_new) {
    JNIEnv* env = jvm_.env();
    const std::filesystem::path file = dump();
    const jstring path = file.empty() ? nullptr : env->NewStringUTF(file.c_str());
    const auto lines = static_cast<jobjectArray>(
        env->CallStaticObjectMethod(class_, read_, path, static_cast<jboolean>(only_new)));
    jvm_.check_exception("reading a flight recording");
    if (!file.empty()) std::filesystem::remove(file);
    std::vector<RecordedTrace> traces;
    const jsize size = env->GetArrayLength(lines);
    for (jsize i = 0; i < size; ++i) {
      const auto line = static_cast<jstring>(env->GetObjectArrayElement(lines, i));
      const char* const text = env->GetStringUTFChars(line, nullptr);
      traces.push_back(parse(text));
      env->ReleaseStringUTFChars(line, text);
      env->DeleteLocalRef(line);
    }
    env->DeleteLocalRef(lines);
    return traces;
  }
  static RecordedTrace parse(std::string_view line) {
    RecordedTrace trace;
    trace.tid = static_cast<int>(number_at(line, 0));
    trace.java_id = static_cast<int64_t>(number_at(line, line.find(',') + 1));
    for (size_t at = line.find(';'); at != std::string_view::npos; at = line.find(';')) {
      line.remove_prefix(at + 1);
      trace.methods.emplace_back(line.substr(0, line.find(';')));
    }
    return trace;
  }

  const Jvm& jvm_;
  jclass class_ = nullptr;
  jmethodID read_ = nullptr;
};

// java-profiler's natives: JavaProfiler.getSamples and dump.
class JavaProfilerStore final : public RecordingStore {
 public:
  using GetSamples = jlong (*)(JNIEnv*, jclass);
  using Dump = void (*)(JNIEnv*, jclass, jstring);
  JavaProfilerStore(const Jvm& jvm, void* library, GetSamples get_samples, Dump dump)
      : RecordingStore(jvm), library_(library), get_samples_(get_samples), dump_(dump) {}

  uint64_t count() override { return static_cast<uint64_t>(get_samples_(jvm().env(), nullptr)); }
  bool counts_slowly() const override { return false; }

 private:
  std::filesystem::path dump() override {
    std::string name = (std::filesystem::temp_directory_path() / "framestorm-XXXXXX").string();
    const int file = mkstemp(name.data());
    if (file >= 0) close(file);
    JNIEnv* const env = jvm().env();
    const jstring path = env->NewStringUTF(name.c_str());
    JavaProfiler::record_trace_root(library_, env);
    dump_(env, nullptr, path);
    env->DeleteLocalRef(path);
    jvm().check_exception("dumping java-profiler's recording");
    return name;
  }
  void* library_;
  GetSamples get_samples_;
  Dump dump_;
};

}  // namespace

std::unique_ptr<SampleStore> find_sample_store(const Jvm& jvm, void* library) {
  if (library == jvm.library()) return std::make_unique<RecordingStore>(jvm);
  if (void* const execute = dlsym(library, "asprof_execute")) {
    return std::make_unique<AsprofStore>(reinterpret_cast<AsprofStore::Execute>(execute));
  }
  void* const get_samples = dlsym(library, "Java_com_datadoghq_profiler_JavaProfiler_getSamples");
  void* const dump = dlsym(library, "Java_com_datadoghq_profiler_JavaProfiler_dump0");
  if (get_samples == nullptr || dump == nullptr) return nullptr;
  return std::make_unique<JavaProfilerStore>(
      jvm, library, reinterpret_cast<JavaProfilerStore::GetSamples>(get_samples),
      reinterpret_cast<JavaProfilerStore::Dump>(dump));
}

}  // namespace framestorm

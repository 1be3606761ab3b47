#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "stress/agent/agent_fixture.h"
#include "stress/agent/walking_file.h"

namespace framestorm::stress {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

int run_command(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string Ran::read(const std::string& name) const { return read_file(folder + "/" + name); }

nlohmann::json Ran::finding(const std::string& kind, const std::string& clause) const {
  std::istringstream lines(findings);
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json finding = nlohmann::json::parse(line);
    if (finding["type"] == "finding" && finding["kind"] == kind && finding["clause"] == clause) {
      return finding;
    }
  }
  return nlohmann::json::object();
}

bool Ran::has_unfinished_walk() const {
  const std::string bytes = read("walking.bin");
  for (size_t at = 0; at + sizeof(WalkingRecord) <= bytes.size(); at += sizeof(WalkingRecord)) {
    WalkingRecord record;
    bytes.copy(reinterpret_cast<char*>(&record), sizeof record, at);
    if (record.number != 0 && record.tid != 0 && record.registers[REG_RIP] != 0) return true;
  }
  return false;
}

uint64_t accounted(const nlohmann::json& stats) {
  uint64_t sum = stats["samples"].get<uint64_t>();
  for (const auto& [cause, count] : stats["lost"].items()) {
    // Of samples that were taken, and of requests that were lost by another cause already.
    if (cause != "unjudged" && cause != "late-handler") sum += count.get<uint64_t>();
  }
  return sum;
}

AgentTest::AgentTest() {
  const char* const jdk = std::getenv("FRAMESTORM_TEST_JDK");
  if (jdk == nullptr) {
    ADD_FAILURE() << "set FRAMESTORM_TEST_JDK to a JDK's folder, or run `scripts/framestorm test`, "
                     "which does";
    return;
  }
  jdk_ = jdk;
  // Compiled once for all tests. A runtime could not compile the source itself.
  const char* const compiled = std::getenv("FRAMESTORM_TEST_SAMPLED");
  if (compiled != nullptr) sampled_ = "-cp " + std::string(compiled) + " Sampled";
  std::string name = (std::filesystem::temp_directory_path() / "agent-test-XXXXXX").string();
  if (mkdtemp(name.data()) != nullptr) folder_ = name;
}

AgentTest::~AgentTest() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Ran AgentTest::collect(int status, const std::string& folder, const std::string& output) const {
  Ran ran;
  ran.status = status;
  ran.folder = folder;
  ran.output = read_file(output);
  ran.findings = ran.read("findings.jsonl");
  std::istringstream lines(ran.read("stats.jsonl"));
  for (std::string line; std::getline(lines, line);) ran.stats = nlohmann::json::parse(line);
  return ran;
}

Ran AgentTest::run(const std::string& options, const std::string& arguments,
                   const std::string& launcher) {
  const std::string out = folder_ + "/run" + std::to_string(++runs_);
  const std::string output = out + ".txt";
  const int status =
      run_command("cd " + folder_ + " && timeout -s KILL 200 " + launcher + " " + jdk_ +
                  "/bin/java -agentpath:" + agent_ + "=out=" + out + "," + options + " -Xmx512m " +
                  sampled_ + " " + arguments + " > " + output + " 2>&1");
  return collect(status, out, output);
}

Ran AgentTest::attach(const std::string& options, const std::string& arguments) {
  const std::string out = folder_ + "/run" + std::to_string(++runs_);
  const std::string output = out + ".txt";
  // jcmd takes what has an '=' for an argument of its own, unless it is quoted for it too.
  const std::string keep = folder_ + "/keep";
  const std::string script =
      "touch " + keep + "\n" + "timeout -s KILL 200 " + jdk_ + "/bin/java -Dkeep=" + keep + " " +
      sampled_ + " " + arguments + " > " + output + " 2>&1 &\n" +
      "program=$!\n"
      "until pid=$(pgrep -P $program java); do sleep 0.1; done\n"
      "until grep -q Sampled /proc/$pid/cmdline; do sleep 0.1; done\n" +
      jdk_ + "/bin/jcmd $pid JVMTI.agent_load " FRAMESTORM_AGENT " '\"out=" + out + "," + options +
      "\"'\n" + "sleep 1; rm " + keep + "; wait $program\n";
  std::ofstream(folder_ + "/attach.sh") << script;
  const int status = run_command("cd " + folder_ + " && sh attach.sh > attach.txt 2>&1");
  if (status != 0) ADD_FAILURE() << read_file(folder_ + "/attach.txt");
  return collect(status, out, output);
}

}  // namespace framestorm::stress

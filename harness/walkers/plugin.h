// Walkers of other projects: shared objects with the functions of framestorm_walker.h, loaded once
// and walked with by as many adapters as a driver wants.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "harness/walkers/walker.h"

namespace framestorm {

// What --walker-plugin names: FILE[=OPTIONS]. A file that has a = in its name can be given without
// options.
struct PluginSpec {
  static PluginSpec parse(const std::string& text);
  std::filesystem::path file;
  std::string options;
};

class Plugin : public std::enable_shared_from_this<Plugin> {
 public:
  // Loads it for good: findings refer to its code until the process ends. No JVM is needed, and
  // nothing of the plugin's runs but what says what it is. Throws SetupError when it is no walker.
  static std::shared_ptr<Plugin> load(const PluginSpec& spec);
  virtual ~Plugin() = default;
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  // The table's row of plugins with what this one declares.
  const WalkerTraits& traits() const { return traits_; }

  // Once, before the first walk, on a thread that is attached to the JVM; not in signal context.
  // Throws SetupError.
  virtual void init(Jvm& jvm) = 0;
  // An adapter of its own for each place that walks: it keeps what its last walk said.
  virtual std::unique_ptr<Walker> make_walker() = 0;

 protected:
  explicit Plugin(const WalkerTraits& traits) : traits_(traits) {}

 private:
  const WalkerTraits traits_;
};

}  // namespace framestorm

// Options of a command line whose values are names of the text form.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <set>
#include <string>

#include "harness/input/input.h"

namespace framestorm {

// All that there are, by name.
template <typename Enum>
std::map<std::string, Enum> names_to_values() {
  std::map<std::string, Enum> values;
  for (const Enum value : all_of<Enum>()) values[std::string(name_of(value))] = value;
  return values;
}

// `option` takes the names in `values`, and its help lists them. CLI11 itself would show the
// enumerators beside them, as raw bytes.
template <typename Enum>
void take_names(CLI::Option* option, const std::map<std::string, Enum>& values) {
  std::set<std::string> names;
  for (const auto& [name, value] : values) names.insert(name);
  option->transform(CLI::Transformer(values).description(""));
  option->transform(CLI::IsMember(names));  // looked at before the one above
}

}  // namespace framestorm

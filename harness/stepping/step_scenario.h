// One scenario, stepped from its victim's first instruction to its last, or for a time.
#pragma once

#include <chrono>
#include <string>

#include "harness/stepping/stepper.h"
#include "harness/victim/victims.h"

namespace framestorm::stepping {

// Starts the victim, steps it, and lets it end when `limit` is over. With `only` it is walked there and
// nowhere else, and ends once something was found. No victim may be there. Returns why the scenario is
// not available; empty: it was stepped. Control thread, VM running. Throws SetupError when the victim
// does not end.
std::string step_scenario(Victims& victims, Stepper& stepper, ScenarioId scenario,
                          std::chrono::duration<double> limit, const HaltPoint& only = {});

}  // namespace framestorm::stepping

/// The state of one run of the flow engine, in a few structs: a function takes those that it touches. Plain records in
/// arrays by stream, by connection and by message.
/// Naming rule: instants are `..._at_ps`, durations `..._ps`.
#pragma once
#include "flow/job_state.hpp"
#include "flow/recordings.hpp"
#include "flow/run_clock.hpp"
#include "flow/setup.hpp"
#include "flow/traffic.hpp"

namespace weftwork::flow {

struct State {
  Setup setup;
  Traffic traffic;
  JobState job;
  RunClock clock;
  Recordings recordings;
};

}  // namespace weftwork::flow

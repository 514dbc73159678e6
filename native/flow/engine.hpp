/// The flow engine: programs of actors over links that share their capacity max-min.
/// Source: docs/models/flow-engine.md is its meaning.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.hpp"
#include "flow/fold.hpp"
#include "flow/input.hpp"
#include "flow/state.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/flow_run.hpp"

namespace weftwork::flow {

class Engine {
 public:
  /// Takes the input, whose arrays must outlive the engine.
  explicit Engine(Input input);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Go on for about `budget_s` seconds of CPU; true when there is nothing left to do before the end of the run.
  bool advance(double budget_s);

  /// The same input from its begin, on what is already built.
  void restart(Variant variant);

  [[nodiscard]] const State& state() const { return *state_; }
  [[nodiscard]] bool finished() const { return state_->job.open_work == 0; }
  /// Whether something would have to be done after the end of simulated time.
  [[nodiscard]] bool clock_ended() const;
  /// Bytes, gaps included, and packets that every port has sent so far.
  [[nodiscard]] IdVector<PortId, Carried> carried();
  /// What the time of actors has gone to so far, which is then forgotten.
  [[nodiscard]] std::vector<SegmentRow> take_segments();
  /// Collectives and labelled messages so far, which are then forgotten.
  [[nodiscard]] std::vector<ActivityRow> take_activities();

 private:
  std::unique_ptr<State> state_;
};

}  // namespace weftwork::flow

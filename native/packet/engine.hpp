/// The packet engine: windows of one lookahead over nodes, no global event queue.
/// Source: docs/models/packet-engine.md is its meaning; engine/reference/simulation.py computes the same.
#pragma once
#include <memory>

#include "base/clock.hpp"
#include "packet/input.hpp"
#include "packet/state.hpp"
#include "packet/timeline.hpp"

namespace weftwork {

class Engine {
 public:
  /// Takes the input, whose arrays must outlive the engine. Throws LimitError for what it cannot carry.
  explicit Engine(Input input);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Go on for about `budget_s` seconds of CPU; true when there is nothing left to do before the end of the run.
  /// Throws BrokenInvariant where the engine is at fault, PolicyStop where a step is; nothing more is asked of it then.
  bool advance(double budget_s);

  /// What every port did over time, closed where the run has come to; empty unless the input asks for it.
  const Timeline& timeline();

  [[nodiscard]] const State& state() const { return *state_; }
  [[nodiscard]] Ps simulated_ps() const { return simulated_until_ps_; }
  [[nodiscard]] bool has_work() const { return has_work_; }

 private:
  void handle(Ps start_ps, Ps end_ps);
  void apply_cut(Ps at_ps);
  void sample(Ps at_ps);
  bool watch(Ps at_ps);
  bool finish();

  Input input_;
  std::unique_ptr<State> state_;
  Timeline timeline_;
  Ps simulated_until_ps_ = 0;
  Ps watch_at_ps_ = 0;
  bool in_window_ = false;
  bool has_work_ = true;
};

}  // namespace weftwork

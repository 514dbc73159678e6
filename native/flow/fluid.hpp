/// Fluid traffic: activities that share constraints max-min fairly, from event to event. A variable is a set of
/// (constraint, weight) hops; all activities of a variable have one rate, and take weight x rate of each constraint.
/// Rates are max-min fair over all activities. The words are explained in `records.hpp`.
///
/// The service counter of a constraint times all activities that it binds at once; starts and ends are repaired by a
/// sweep over the constraints that they touch, or by filling from scratch where that is less work.
/// Meaning: docs/models/flow-speed.md. Time is in ps, a double up to 1e15 and above; capacities are units per ps.
/// Leaves out: latency, and who starts what when (the executor).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "flow/ids.hpp"
#include "flow/records.hpp"

namespace weftwork::flow {

class Fluid {
 public:
  /// `capacity`: of each constraint, units per ps. `tolerance`: a load that is off by less than this share of the
  /// capacity is let be; it does not add up, since the load is remembered.
  Fluid(std::span<const double> capacity, double tolerance);
  ~Fluid();
  Fluid(const Fluid&) = delete;
  Fluid& operator=(const Fluid&) = delete;

  /// A new variable; its activities cross these constraints. Hops of one constraint add up; hops of weight 0 are
  /// dropped. An activity with no hops is done at once.
  VariableId add_variable(std::span<const ConstraintHop> hops);

  /// `amount`: units of service. Rates follow with the next `solve`.
  void start(VariableId variable, std::int64_t activity, double amount, double now);

  /// Take an activity away unfinished.
  /// @return what it still had to get
  double stop(VariableId variable, std::int64_t activity, double now);

  /// The capacity of a constraint from now on; at 0 its activities stall.
  void set_capacity(ConstraintId constraint, double capacity, double now);

  /// The activities of a variable cross other constraints from now on, with what they still have to get.
  void set_hops(VariableId variable, std::span<const ConstraintHop> hops, double now);

  /// Instant of the next completion; infinite if there is none. Valid after `solve`.
  [[nodiscard]] double next() const;

  /// Time passes up to `now`, which is at most `next()`; what ends there is appended, all within 1 ps. `solve` follows.
  void advance(double now, std::vector<std::int64_t>& finished);

  /// New rates, after all that has happened at this instant.
  void solve(double now);

  /// Rate of each activity of a variable, units of service per ps.
  [[nodiscard]] double rate(VariableId variable) const;
  /// Units per ps on a constraint.
  [[nodiscard]] double load(ConstraintId constraint) const;
  [[nodiscard]] std::int64_t activities(VariableId variable) const;

  /// Units that the constraint has carried until `now`, which is at most `next()`. Takes as long as there are elements.
  [[nodiscard]] double carried(ConstraintId constraint, double now) const;

  /// The largest relative difference of a rate from textbook filling. Slow.
  [[nodiscard]] double worst_error() const;
  [[nodiscard]] const FluidStats& stats() const;
  [[nodiscard]] double now() const;

 private:
  class Rates;
  std::unique_ptr<Rates> rates_;
};

}  // namespace weftwork::flow

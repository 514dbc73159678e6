/// Sharing of links: constraints, variables, bottlenecks, and service counters that time activities. The words are
/// explained in `records.hpp`.
/// Leaves out: which rates are right (`sweep.hpp`, `filling.hpp`), and when to ask (`fluid.hpp`).
/// Invariants at rest: an enabled variable has exactly one bottleneck among its constraints, is in that constraint's
/// `bound_variables` and in the `elements` of each of its constraints; its rate is the share of its bottleneck; `load`,
/// `bound_weight` and `total_weight` are the sums that they say.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "flow/ids.hpp"
#include "flow/records.hpp"

namespace weftwork::flow {

/// Service counters begin again at 0 here, long before a double could not tell a thousandth of a byte any more.
inline constexpr double kCounterLimit = 0x1p40;

inline constexpr std::int32_t kFirstRoom = 16;  // chosen: elements of a constraint for which there is room at once

struct Sharing {
  Sharing(std::span<const double> capacity, double tolerance_)
      : tolerance(tolerance_), load(capacity.size()), constraints(capacity.size()), due(capacity.size()) {
    for (const ConstraintId constraint : constraints.ids()) {
      constraints[constraint].capacity = capacity[constraint.index()];
      set_range(constraint);
    }
  }

  double tolerance;
  double now_ps = 0;
  IdVector<ConstraintId, ConstraintLoad> load;
  IdVector<ConstraintId, Constraint> constraints;
  IdVector<VariableId, ConstraintId> bottleneck;  // none: not known yet, or the variable is not enabled
  IdVector<VariableId, Variable> variables;
  std::vector<ConstraintHop> arena;  // hops of all variables
  std::vector<std::int32_t> places;  // of the element of each hop among the elements of its constraint
  std::vector<ConstraintId> active;  // constraints that any enabled variable crosses
  Tournament due;                    // next completion at each constraint
  std::int64_t epoch = 0;            // counts repairs
  std::vector<ConstraintId> frozen;  // constraints whose service counter this repair has frozen
  std::int64_t enabled_variables = 0;
  std::int64_t enabled_elements = 0;
  FluidStats stats;

  [[nodiscard]] std::int64_t activities(VariableId variable) const {
    return static_cast<std::int64_t>(variables[variable].finishes.size());
  }

  [[nodiscard]] double rate(VariableId variable) const {
    return bottleneck[variable].is_none() ? 0 : load[bottleneck[variable]].share;
  }
  [[nodiscard]] std::span<const ConstraintHop> hops(VariableId variable) const {
    return {arena.data() + variables[variable].first_hop, static_cast<std::size_t>(variables[variable].length)};
  }
  /// Load of a variable on one of its constraints for each unit of its rate.
  [[nodiscard]] double weight(VariableId variable, std::int32_t hop) const {
    return static_cast<double>(activities(variable)) * arena[variables[variable].first_hop + hop].weight;
  }

  [[nodiscard]] double service(ConstraintId constraint) const { return service(constraint, now_ps); }
  [[nodiscard]] double service(ConstraintId constraint, double at_ps) const {
    const double share = load[constraint].share;
    return constraints[constraint].served +
           (share < kInfinity ? share * (at_ps - constraints[constraint].since_ps) : 0);
  }
  [[nodiscard]] double variable_service(VariableId variable, double at_ps) const {
    const ConstraintId constraint = bottleneck[variable];
    return variables[variable].offset + (constraint.is_none() ? 0 : service(constraint, at_ps));
  }
  /// What each unit of weight of this variable has carried since it was enabled.
  [[nodiscard]] double variable_carried(VariableId variable, double at_ps) const {
    return static_cast<double>(activities(variable)) * variable_service(variable, at_ps) - variables[variable].base;
  }

  /// Range of loads that leave the constraint alone.
  void set_range(ConstraintId constraint) {
    const Constraint& c = constraints[constraint];
    load[constraint].low = c.is_dirty || c.bound_variables.empty() ? -kInfinity : c.capacity * (1 - tolerance);
    load[constraint].high = c.is_dirty ? kInfinity : c.capacity * (1 + tolerance);
  }

  /// One activity more or less (`sign`), at the variable's present rate; `finishes` has changed already.
  void change(VariableId variable, int sign) {
    const double step = sign * rate(variable);
    for (const ConstraintHop& hop : hops(variable)) {
      load[hop.constraint].load += step * hop.weight;
      constraints[hop.constraint].total_weight += sign * hop.weight;
    }
    if (bottleneck[variable].is_none()) return;
    const Variable& v = variables[variable];
    Constraint& c = constraints[bottleneck[variable]];
    c.bound_weight += sign * arena[v.first_hop + v.bottleneck_hop].weight;
    c.bound_variables[v.bound_at].weight = weight(variable, v.bottleneck_hop);
  }

  /// The variable gets its first activity: it becomes an element of its constraints.
  void enable(VariableId variable) {
    const Variable& v = variables[variable];
    ++enabled_variables;
    enabled_elements += v.length;
    for (std::int32_t hop = 0; hop < v.length; ++hop) {
      const ConstraintId constraint = arena[v.first_hop + hop].constraint;
      Constraint& c = constraints[constraint];
      if (c.elements.empty()) {
        c.active_at = static_cast<std::int32_t>(active.size());
        active.push_back(constraint);
        const auto room = static_cast<std::size_t>(std::min(c.declared, kFirstRoom));
        c.elements.reserve(room);
        c.bottleneck_of.reserve(room);
      }
      places[v.first_hop + hop] = static_cast<std::int32_t>(c.elements.size());
      c.elements.push_back({variable, hop});
      c.bottleneck_of.push_back(ConstraintId::none());
    }
  }

  /// The variable leaves its constraints, with what it takes there; what it has carried stays in their books. Its
  /// service counter goes on from where it is, for the activities that it still has.
  void disable(VariableId variable) {
    Variable& v = variables[variable];
    const auto count = static_cast<double>(activities(variable));
    const double carried = variable_carried(variable, now_ps);
    const double service = variable_service(variable, now_ps);
    const double taken = count * rate(variable);
    unbind(variable);
    --enabled_variables;
    enabled_elements -= v.length;
    for (std::int32_t hop = 0; hop < v.length; ++hop) {
      const auto [constraint, weight] = arena[v.first_hop + hop];
      Constraint& c = constraints[constraint];
      c.carried_units += weight * carried;
      const std::int32_t place = places[v.first_hop + hop];
      const Element last = c.elements.back();
      c.elements[place] = last;
      places[variables[last.variable].first_hop + last.hop] = place;
      c.elements.pop_back();
      c.bottleneck_of[place] = c.bottleneck_of.back();
      c.bottleneck_of.pop_back();
      load[constraint].load -= taken * weight;
      c.total_weight -= count * weight;
      if (c.elements.empty()) deactivate(constraint);
    }
    ++v.generation;
    v.offset = count > 0 ? service : 0;
    v.base = count * v.offset;
  }

  /// Freeze the service counter of a constraint: once in each repair, before its share or its bound variables change.
  void freeze(ConstraintId constraint) {
    Constraint& c = constraints[constraint];
    if (c.epoch == epoch) return;
    c.epoch = epoch;
    frozen.push_back(constraint);
    c.served = c.bound_variables.empty() ? 0 : service(constraint);
    c.since_ps = now_ps;
    if (c.served <= kCounterLimit) return;
    for (const BoundVariable& row : c.bound_variables) variables[row.variable].offset += c.served;
    for (Due& entry : c.due) entry.at -= c.served;
    c.served = 0;
  }

  /// Make hop `hop` of a variable its bottleneck. Both constraints must be frozen.
  void bind(VariableId variable, std::int32_t hop) {
    Variable& v = variables[variable];
    const ConstraintId constraint = arena[v.first_hop + hop].constraint;
    const ConstraintId before = bottleneck[variable];
    if (before == constraint) return;
    ++stats.moves;
    const double service = v.offset + (before.is_none() ? 0 : constraints[before].served);
    unbind(variable);
    Constraint& c = constraints[constraint];
    if (c.bound_variables.empty()) {
      const std::size_t room = std::min<std::size_t>(c.elements.size(), kFirstRoom);
      c.bound_variables.reserve(room);
      c.due.reserve(room);
    }
    bottleneck[variable] = constraint;
    v.bottleneck_hop = hop;
    v.offset = service - c.served;
    v.bound_at = static_cast<std::int32_t>(c.bound_variables.size());
    c.bound_variables.push_back(bound_row(variable));
    c.bound_weight += c.bound_variables.back().weight;
    for (std::int32_t i = 0; i < v.length; ++i)
      constraints[arena[v.first_hop + i].constraint].bottleneck_of[places[v.first_hop + i]] = constraint;
    set_range(constraint);
    post(variable);
  }

  /// Put the next completion of the variable on the agenda of its bottleneck; the entry before is stale then.
  void post(VariableId variable) {
    Variable& v = variables[variable];
    Constraint& c = constraints[bottleneck[variable]];
    if (c.due.size() > 4 * c.bound_variables.size() + 64) {
      std::erase_if(c.due, [&](const Due& entry) { return variables[entry.variable].generation != entry.generation; });
      std::make_heap(c.due.begin(), c.due.end());
    }
    c.due.push_back({v.finishes.front().at - v.offset, variable, ++v.generation});
    std::push_heap(c.due.begin(), c.due.end());
  }

  /// Drop stale entries from the top of a constraint's agenda; false if nothing is left.
  bool has_due(ConstraintId constraint) {
    std::vector<Due>& heap = constraints[constraint].due;
    while (!heap.empty() && variables[heap.front().variable].generation != heap.front().generation) pop_due(constraint);
    return !heap.empty();
  }
  void pop_due(ConstraintId constraint) {
    std::pop_heap(constraints[constraint].due.begin(), constraints[constraint].due.end());
    constraints[constraint].due.pop_back();
  }

  /// Tell the tournament when the next activity ends that is bound by this constraint.
  void retime(ConstraintId constraint) {
    double at_ps = kInfinity;
    if (has_due(constraint)) {
      const Constraint& c = constraints[constraint];
      const double rest = c.due.front().at - c.served;
      if (rest <= 0)
        at_ps = now_ps;                     // the counter may have stood still since long
      else if (load[constraint].share > 0)  // else it stalls
        at_ps = std::max(now_ps, c.since_ps + rest / load[constraint].share);
    }
    due.set(constraint, at_ps);
  }

  /// A constraint that binds no variable any more has no share.
  void drop_share(ConstraintId constraint) {
    if (!constraints[constraint].bound_variables.empty() || load[constraint].share == kInfinity) return;
    freeze(constraint);
    load[constraint].share = kInfinity;
  }

 private:
  [[nodiscard]] BoundVariable bound_row(VariableId variable) const {
    const Variable& v = variables[variable];
    BoundVariable row{weight(variable, v.bottleneck_hop), variable, {}};
    row.other.fill(BoundVariable::kEnd);
    if (!v.is_narrow) {
      row.other[0] = BoundVariable::kElsewhere;
      return row;
    }
    std::size_t count = 0;
    for (std::int32_t hop = 0; hop < v.length; ++hop)
      if (hop != v.bottleneck_hop) row.other[count++] = arena[v.first_hop + hop].constraint;
    return row;
  }

  void unbind(VariableId variable) {
    const ConstraintId constraint = bottleneck[variable];
    if (constraint.is_none()) return;
    Constraint& c = constraints[constraint];
    const std::int32_t place = variables[variable].bound_at;
    c.bound_weight -= c.bound_variables[place].weight;
    c.bound_variables[place] = c.bound_variables.back();
    variables[c.bound_variables[place].variable].bound_at = place;
    c.bound_variables.pop_back();
    if (c.bound_variables.empty()) c.bound_weight = 0;
    set_range(constraint);
    bottleneck[variable] = ConstraintId::none();
  }

  /// No enabled variable crosses the constraint any more: what rounding has left in its sums goes.
  void deactivate(ConstraintId constraint) {
    Constraint& c = constraints[constraint];
    load[constraint].load = 0;
    load[constraint].share = kInfinity;
    c.total_weight = 0;
    active[c.active_at] = active.back();
    constraints[active[c.active_at]].active_at = c.active_at;
    active.pop_back();
    c.active_at = kNone;
  }
};

}  // namespace weftwork::flow

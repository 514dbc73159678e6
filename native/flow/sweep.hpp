/// Repair of max-min rates after a few activities have come, gone or changed: constraints whose load does not fit get a
/// new share, in the order of that share, and hand on to other constraints what they change.
///
/// Max-min (Bertsekas and Gallager, Data Networks, section 6.5.2): every variable has a bottleneck, which is saturated
/// and on which no variable is faster. The sweep ends when that holds everywhere, whatever the order; the order makes
/// it quick. It gives up when it changes more than filling from scratch would (`filling.hpp`).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "flow/ids.hpp"
#include "flow/records.hpp"
#include "flow/sharing.hpp"

namespace weftwork::flow {

class Sweep {
 public:
  explicit Sweep(Sharing& sharing) : s_(sharing) {}

  /// `unbound`: variables that have no bottleneck yet; `touched`: constraints whose load has changed; `forced`:
  /// constraints to look at whatever their load is. False if it gave up: the rates are then of no use, and filling has
  /// to follow.
  bool run(std::span<const VariableId> unbound, std::span<const VariableId> touched_variables,
           std::span<const ConstraintId> touched, std::span<const ConstraintId> forced) {
    queue_.clear();
    for (const VariableId variable : unbound) place(variable);
    for (const ConstraintId constraint : forced) enqueue(constraint);
    for (const VariableId variable : touched_variables)
      for (const ConstraintHop& hop : s_.hops(variable)) reconsider(hop.constraint);
    for (const ConstraintId constraint : touched) reconsider(constraint);
    const std::int64_t limit = changed_hops_ + s_.enabled_elements + 512;
    while (!queue_.empty()) {
      const auto [before, constraint] = queue_.front();
      pop();
      const double target = target_share(constraint);
      if (target > before * (1 + 1e-12) && !queue_.empty() && target > queue_.front().first) {
        insert(target, constraint);  // others have taken less meanwhile
        continue;
      }
      saturate(constraint);
      for (const ConstraintId other : released_) reconsider(other);
      released_.clear();
      if (changed_hops_ > limit) {
        for (const Waiting& waiting : queue_) clean(waiting.second);
        return false;
      }
    }
    return true;
  }

 private:
  using Waiting = std::pair<double, ConstraintId>;  // target share, constraint
  struct Candidate {
    double rate;
    Element element;
    bool operator<(const Candidate& other) const {  // the fastest first
      return rate != other.rate ? rate > other.rate : element.variable < other.element.variable;
    }
  };

  /// A new variable is bound by the constraint that has least for it. That constraint is looked at even if the load
  /// happens to fit: others on it may be faster than the newcomer.
  void place(VariableId variable) {
    const auto count = static_cast<double>(s_.activities(variable));
    const std::span<const ConstraintHop> hops = s_.hops(variable);
    std::size_t at = 0;
    double least = kInfinity;
    for (std::size_t i = 0; i < hops.size(); ++i) {
      const Constraint& c = s_.constraints[hops[i].constraint];
      const ConstraintLoad& load = s_.load[hops[i].constraint];
      const double share = load.share < kInfinity ? load.share
                                                  : std::max((c.capacity - load.load) / (count * hops[i].weight),
                                                             c.capacity / c.total_weight);
      if (share >= least) continue;
      least = share;
      at = i;
    }
    const ConstraintId constraint = hops[at].constraint;
    if (s_.load[constraint].share == kInfinity) {
      s_.freeze(constraint);
      s_.load[constraint].share = least;
      s_.constraints[constraint].is_new = true;
    }
    move(variable, static_cast<std::int32_t>(at));
    enqueue(constraint);
  }

  /// The constraint of hop `hop` becomes the bottleneck of the variable, and its share the variable's rate.
  void move(VariableId variable, std::int32_t hop) {
    const std::span<const ConstraintHop> hops = s_.hops(variable);
    const ConstraintId constraint = hops[hop].constraint;
    const double step = (s_.load[constraint].share - s_.rate(variable)) * static_cast<double>(s_.activities(variable));
    s_.freeze(constraint);
    s_.bind(variable, hop);
    ++s_.stats.rates;
    changed_hops_ += static_cast<std::int64_t>(hops.size());
    for (const ConstraintHop& other : hops) {
      s_.load[other.constraint].load += step * other.weight;
      enqueue_unless_fits(other.constraint);
    }
  }

  /// Bring a constraint to its share, given the rates of the variables that are bound elsewhere. Afterwards it is
  /// saturated and no variable on it exceeds its share, or it is not saturated and binds none. Bound variables that
  /// meet a lower share elsewhere move there, which leaves this constraint with room to spare, and dirty again.
  void saturate(ConstraintId constraint) {
    ConstraintLoad& load = s_.load[constraint];
    Constraint& state = s_.constraints[constraint];
    s_.freeze(constraint);
    ++s_.stats.links;
    const double before = load.share;
    const std::size_t had = state.bound_variables.size();
    const double share = capture(constraint);
    load.share = share;
    state.is_dirty = true;  // stays out of the queue meanwhile
    state.is_new = false;
    s_.set_range(constraint);
    propagate(constraint, before, had);
    if (!state.bound_variables.empty()) load.load = state.capacity;
    for (const VariableId variable : leaving_) move_to_lowest(variable);
    clean(constraint);
    if (!leaving_.empty()) reconsider(constraint);
  }

  /// The share of a constraint, once it binds the variables that would take more than that, the fastest first. Their
  /// rates until now are in `captured_rates_`.
  double capture(ConstraintId constraint) {
    captured_rates_.clear();
    const ConstraintLoad& load = s_.load[constraint];
    const Constraint& state = s_.constraints[constraint];
    const bool is_idle = state.bound_variables.empty();
    double weight = state.bound_weight;
    double elsewhere = is_idle ? load.load : load.load - load.share * weight;
    // A dead constraint gives nothing: what rounding has left in `elsewhere` must not trickle through it.
    const auto share_now = [&] {
      return state.capacity > 0 ? std::max(0.0, (state.capacity - elsewhere) / weight) : 0.0;
    };
    double share = is_idle ? kInfinity : share_now();
    if (is_idle ? load.load <= state.capacity : share >= load.share && !state.is_new) return share;
    candidates_.clear();
    const double least = is_idle ? -kInfinity : share * (1 + s_.tolerance);
    const IdSpan<ConstraintId, const ConstraintLoad> loads(s_.load.items());
    for (std::size_t i = 0; i < state.bottleneck_of.size(); ++i) {
      const ConstraintId at = state.bottleneck_of[i];
      // Both at once: one branch that is seldom taken, where two would be guessed wrong.
      if (static_cast<int>(loads[at].share > least) & static_cast<int>(at != constraint))
        candidates_.push_back({loads[at].share, state.elements[i]});
    }
    std::sort(candidates_.begin(), candidates_.end());
    for (const auto& [rate, element] : candidates_) {
      if (weight > 0 && rate <= share * (1 + s_.tolerance)) break;
      const ConstraintId at = s_.bottleneck[element.variable];
      s_.freeze(at);
      released_.push_back(at);
      s_.bind(element.variable, element.hop);
      captured_rates_.push_back(rate);
      const double taken = state.bound_variables.back().weight;
      elsewhere -= rate * taken;
      weight += taken;
      share = share_now();
    }
    return share;
  }

  /// Tell the other constraints of a constraint's bound variables its new share; variables that are too fast for one of
  /// those are in `leaving_`. The first `had` had the share `before`, the rest have been captured. Nearly all the time
  /// goes here.
  void propagate(ConstraintId constraint, double before, std::size_t had) {
    leaving_.clear();
    const IdSpan<ConstraintId, ConstraintLoad> loads(s_.load.items());
    const std::vector<BoundVariable>& bound = s_.constraints[constraint].bound_variables;
    const double share = loads[constraint].share;
    const double low = share * (1 - s_.tolerance);
    for (std::size_t i = share == before ? had : 0; i < bound.size(); ++i) {
      const BoundVariable& row = bound[i];
      const double step = share - (i < had ? before : captured_rates_[i - had]);
      bool is_too_fast = false;
      const auto add = [&](ConstraintId other, double difference) {
        ConstraintLoad& c = loads[other];
        const double load = c.load + difference;
        c.load = load;
        is_too_fast |= c.share < low;
        if (static_cast<int>(load < c.low) | static_cast<int>(load > c.high)) enqueue(other);
      };
      if (row.other[0] != BoundVariable::kElsewhere) {
        const double each = step * row.weight;
        for (const ConstraintId other : row.other) {
          if (other == BoundVariable::kEnd) break;
          add(other, each);
        }
      } else {
        const double each = step * static_cast<double>(s_.activities(row.variable));
        const std::span<const ConstraintHop> hops = s_.hops(row.variable);
        for (const ConstraintHop& hop : hops)
          add(hop.constraint, each * hop.weight);  // this constraint too: its load is set afterwards
        changed_hops_ += static_cast<std::int64_t>(hops.size());
      }
      if (is_too_fast) leaving_.push_back(row.variable);
    }
    changed_hops_ += static_cast<std::int64_t>(bound.size() * (BoundVariable::kInline + 1));
    s_.stats.rates += static_cast<std::int64_t>(bound.size());
  }

  void move_to_lowest(VariableId variable) {
    const std::span<const ConstraintHop> hops = s_.hops(variable);
    std::size_t at = 0;
    for (std::size_t i = 1; i < hops.size(); ++i)
      if (s_.load[hops[i].constraint].share < s_.load[hops[at].constraint].share) at = i;
    move(variable, static_cast<std::int32_t>(at));
    enqueue_unless_fits(hops[at].constraint);
  }

  void reconsider(ConstraintId constraint) {
    s_.drop_share(constraint);
    enqueue_unless_fits(constraint);
  }
  void enqueue_unless_fits(ConstraintId constraint) {
    const ConstraintLoad& c = s_.load[constraint];
    if (c.load < c.low || c.load > c.high) enqueue(constraint);
  }
  void enqueue(ConstraintId constraint) {
    if (s_.constraints[constraint].is_dirty) return;
    s_.constraints[constraint].is_dirty = true;
    s_.set_range(constraint);
    insert(target_share(constraint), constraint);
  }
  void clean(ConstraintId constraint) {
    s_.constraints[constraint].is_dirty = false;
    s_.set_range(constraint);
  }

  /// Where the share of a constraint is heading.
  [[nodiscard]] double target_share(ConstraintId constraint) const {
    const ConstraintLoad& load = s_.load[constraint];
    const Constraint& c = s_.constraints[constraint];
    if (!c.bound_variables.empty()) return std::max(0.0, load.share + (c.capacity - load.load) / c.bound_weight);
    return c.total_weight > 0 ? c.capacity / c.total_weight : kInfinity;
  }

  void insert(double target, ConstraintId constraint) {
    queue_.emplace_back(target, constraint);
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  }
  void pop() {
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    queue_.pop_back();
  }

  Sharing& s_;
  std::int64_t changed_hops_ = 0;
  std::vector<Waiting> queue_;  // heap of dirty constraints
  std::vector<VariableId> leaving_;
  std::vector<ConstraintId> released_;
  std::vector<Candidate> candidates_;
  std::vector<double> captured_rates_;
};

}  // namespace weftwork::flow

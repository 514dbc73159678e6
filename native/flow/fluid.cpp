/// How rates follow from event to event; flow/fluid.hpp says what they are. Apart from it, so that its users do not
/// compile the sweep and the filling.
#include "flow/fluid.hpp"

#include <algorithm>
#include <stdexcept>

#include "flow/filling.hpp"
#include "flow/sweep.hpp"

namespace weftwork::flow {

class Fluid::Rates {
 public:
  Rates(std::span<const double> capacity, double tolerance)
      : s_(capacity, std::max(tolerance, kLeastTolerance)), sweep_(s_), filling_(s_), is_forced_(capacity.size(), 0) {}
  Rates(const Rates&) = delete;
  Rates& operator=(const Rates&) = delete;

  VariableId add_variable(std::span<const ConstraintHop> hops) {
    const VariableId variable = s_.variables.next_id();
    s_.variables.emplace_back();
    s_.bottleneck.push_back(ConstraintId::none());
    put_hops(variable, hops);
    return variable;
  }

  void start(VariableId variable, std::int64_t activity, double amount, double now) {
    set_clock(now);
    Variable& v = s_.variables[variable];
    if (v.length == 0) {
      at_once_.push_back(activity);
      return;
    }
    const bool is_first = v.finishes.empty();
    double service = s_.variable_service(variable, s_.now_ps);
    if (service > kCounterLimit) {
      for (Finish& finish : v.finishes) finish.at -= service;
      v.base -= static_cast<double>(v.finishes.size()) * service;
      v.offset -= service;
      service = 0;
    }
    v.base += service;
    v.finishes.push_back({service + amount, activity});
    std::push_heap(v.finishes.begin(), v.finishes.end());
    if (is_first) {
      s_.enable(variable);
      note_unbound(variable);
    } else if (!s_.bottleneck[variable].is_none() && v.finishes.front().activity == activity) {
      s_.post(variable);
      s_.retime(s_.bottleneck[variable]);
    }
    s_.change(variable, 1);
    touch(variable);
  }

  double stop(VariableId variable, std::int64_t activity, double now) {
    set_clock(now);
    if (const auto at = std::find(at_once_.begin(), at_once_.end(), activity); at != at_once_.end()) {
      at_once_.erase(at);
      return 0;
    }
    Variable& v = s_.variables[variable];
    const auto found = std::find_if(v.finishes.begin(), v.finishes.end(),
                                    [&](const Finish& finish) { return finish.activity == activity; });
    if (found == v.finishes.end()) throw std::invalid_argument("stop: the variable has no such activity");
    const double service = s_.variable_service(variable, s_.now_ps);
    const double rest = std::max(0.0, found->at - service);
    v.base -= found->at - rest;
    *found = v.finishes.back();
    v.finishes.pop_back();
    std::make_heap(v.finishes.begin(), v.finishes.end());
    leave(variable);
    return rest;
  }

  void set_capacity(ConstraintId constraint, double capacity, double now) {
    set_clock(now);
    s_.constraints[constraint].capacity = capacity;
    s_.set_range(constraint);
    if (is_forced_[constraint] == 0) forced_.push_back(constraint);
    is_forced_[constraint] = 1;
  }

  void set_hops(VariableId variable, std::span<const ConstraintHop> hops, double now) {
    set_clock(now);
    const bool is_active = s_.activities(variable) > 0;
    // Also where its last activity has left at this instant: `touched_` would name the new constraints only.
    for (const ConstraintHop& hop : s_.hops(variable)) touched_constraints_.push_back(hop.constraint);
    if (is_active) {
      const ConstraintId bottleneck = s_.bottleneck[variable];
      s_.disable(variable);
      if (!bottleneck.is_none()) s_.retime(bottleneck);
    }
    put_hops(variable, hops);
    if (!is_active) return;
    Variable& v = s_.variables[variable];
    if (v.length == 0) {
      std::sort_heap(v.finishes.begin(), v.finishes.end());
      std::reverse(v.finishes.begin(), v.finishes.end());  // sorted, such a heap has the earliest last
      for (const Finish& finish : v.finishes) at_once_.push_back(finish.activity);
      v.finishes.clear();
      v.offset = v.base = 0;
      return;
    }
    s_.enable(variable);
    for (const ConstraintHop& hop : s_.hops(variable))
      s_.constraints[hop.constraint].total_weight += static_cast<double>(v.finishes.size()) * hop.weight;
    note_unbound(variable);
    touch(variable);
  }

  [[nodiscard]] double next() const { return at_once_.empty() ? s_.due.least() : s_.now_ps; }

  void advance(double now, std::vector<std::int64_t>& finished) {
    set_clock(now);
    finished.insert(finished.end(), at_once_.begin(), at_once_.end());
    at_once_.clear();
    const double tie_ps = std::max(1.0, s_.now_ps * 1e-15);  // above an ulp of the clock, however late it is
    while (s_.due.least() <= s_.now_ps + tie_ps) end_at(s_.due.winner(), tie_ps, finished);
  }

  void solve(double now) {
    set_clock(now);
    if (unbound_.empty() && touched_.empty() && touched_constraints_.empty() && forced_.empty()) return;
    ++s_.stats.events;
    ++s_.epoch;
    s_.frozen.clear();
    std::erase_if(unbound_, [&](VariableId variable) {
      s_.variables[variable].is_unbound = false;
      return s_.variables[variable].finishes.empty() || !s_.bottleneck[variable].is_none();
    });
    const bool is_crowd = static_cast<std::int64_t>(unbound_.size()) * 8 > s_.enabled_variables + 64;
    const bool is_due = s_.stats.events % kRecount == 0;
    if (is_crowd || is_due || !sweep_.run(unbound_, touched_, touched_constraints_, forced_)) filling_.run();
    for (const ConstraintId constraint : s_.frozen) s_.retime(constraint);
    for (const VariableId variable : touched_) is_touched_[variable] = 0;
    for (const ConstraintId constraint : forced_) is_forced_[constraint] = 0;
    unbound_.clear();
    touched_.clear();
    touched_constraints_.clear();
    forced_.clear();
  }

  [[nodiscard]] double rate(VariableId variable) const { return s_.rate(variable); }
  [[nodiscard]] double load(ConstraintId constraint) const { return s_.load[constraint].load; }
  [[nodiscard]] std::int64_t activities(VariableId variable) const { return s_.activities(variable); }

  [[nodiscard]] double carried(ConstraintId constraint, double now) const {
    double units = s_.constraints[constraint].carried_units;
    for (const Element& element : s_.constraints[constraint].elements) {
      const double weight = s_.arena[s_.variables[element.variable].first_hop + element.hop].weight;
      units += weight * s_.variable_carried(element.variable, now);
    }
    return units;
  }

  [[nodiscard]] double worst_error() const { return worst_rate_error(s_); }
  [[nodiscard]] const FluidStats& stats() const { return s_.stats; }
  [[nodiscard]] double now() const { return s_.now_ps; }

 private:
  static constexpr double kLeastTolerance = 1e-12;     // chosen: well above the rounding of a load
  static constexpr std::int64_t kRecount = 1'000'000;  // chosen: rounding of that many changes stays below 1e-9

  void set_clock(double now) { s_.now_ps = std::max(s_.now_ps, now); }

  void touch(VariableId variable) {
    if (is_touched_.size() < s_.variables.size()) is_touched_.resize(s_.variables.size(), 0);
    if (is_touched_[variable] != 0) return;
    is_touched_[variable] = 1;
    touched_.push_back(variable);
  }

  void note_unbound(VariableId variable) {
    if (s_.variables[variable].is_unbound) return;
    s_.variables[variable].is_unbound = true;
    unbound_.push_back(variable);
  }

  /// An activity has been taken out of `finishes`.
  void leave(VariableId variable) {
    s_.change(variable, -1);
    touch(variable);
    const ConstraintId bottleneck = s_.bottleneck[variable];
    if (s_.variables[variable].finishes.empty())
      s_.disable(variable);
    else if (!bottleneck.is_none())
      s_.post(variable);
    if (!bottleneck.is_none()) s_.retime(bottleneck);
  }

  /// What ends at this instant among the activities that this constraint binds: at least one.
  void end_at(ConstraintId constraint, double tie_ps, std::vector<std::int64_t>& finished) {
    const double served = s_.service(constraint);
    double until = (served + 2 * tie_ps * s_.load[constraint].share) * (1 + 1e-15);
    until = std::max(until, s_.constraints[constraint].due.front().at);
    while (s_.has_due(constraint) && s_.constraints[constraint].due.front().at <= until) {
      const VariableId variable = s_.constraints[constraint].due.front().variable;
      s_.pop_due(constraint);
      Variable& v = s_.variables[variable];
      do {
        std::pop_heap(v.finishes.begin(), v.finishes.end());
        finished.push_back(v.finishes.back().activity);
        v.base -= v.finishes.back().at;
        v.finishes.pop_back();
        s_.change(variable, -1);
      } while (!v.finishes.empty() && v.finishes.front().at - v.offset <= until);
      touch(variable);
      if (v.finishes.empty())
        s_.disable(variable);
      else
        s_.post(variable);
    }
    s_.retime(constraint);
  }

  void put_hops(VariableId variable, std::span<const ConstraintHop> hops) {
    merged_.assign(hops.begin(), hops.end());
    std::erase_if(merged_, [](const ConstraintHop& hop) { return hop.weight == 0; });
    for (const ConstraintHop& hop : merged_)
      if (hop.constraint.is_none() || hop.constraint >= s_.constraints.next_id() || !(hop.weight > 0))
        throw std::invalid_argument("a hop needs a link that exists and a weight that is not negative");
    std::sort(merged_.begin(), merged_.end(),
              [](const ConstraintHop& a, const ConstraintHop& b) { return a.constraint < b.constraint; });
    std::size_t kept = 0;
    for (const ConstraintHop& hop : merged_) {
      if (kept > 0 && merged_[kept - 1].constraint == hop.constraint)
        merged_[kept - 1].weight += hop.weight;
      else
        merged_[kept++] = hop;
    }
    merged_.resize(kept);
    Variable& v = s_.variables[variable];
    for (const ConstraintHop& hop : s_.hops(variable)) --s_.constraints[hop.constraint].declared;
    for (const ConstraintHop& hop : merged_) ++s_.constraints[hop.constraint].declared;
    v.length = static_cast<std::int32_t>(kept);
    if (v.length > v.room) {
      v.room = v.length;
      v.first_hop = static_cast<std::int64_t>(s_.arena.size());
      s_.arena.resize(s_.arena.size() + kept);
      s_.places.resize(s_.arena.size());
    }
    std::copy(merged_.begin(), merged_.end(), s_.arena.begin() + v.first_hop);
    v.is_narrow = kept <= BoundVariable::kInline + 1 &&
                  std::all_of(merged_.begin(), merged_.end(),
                              [&](const ConstraintHop& hop) { return hop.weight == merged_.front().weight; });
  }

  Sharing s_;
  Sweep sweep_;
  Filling filling_;
  std::vector<std::int64_t> at_once_;  // activities without hops
  std::vector<VariableId> unbound_;    // variables without a bottleneck
  std::vector<VariableId> touched_;
  std::vector<ConstraintId> touched_constraints_, forced_;
  IdVector<VariableId, std::uint8_t> is_touched_;
  IdVector<ConstraintId, std::uint8_t> is_forced_;
  std::vector<ConstraintHop> merged_;
};

Fluid::Fluid(std::span<const double> capacity, double tolerance)
    : rates_(std::make_unique<Rates>(capacity, tolerance)) {
}
Fluid::~Fluid() = default;

VariableId Fluid::add_variable(std::span<const ConstraintHop> hops) {
  return rates_->add_variable(hops);
}
void Fluid::start(VariableId variable, std::int64_t activity, double amount, double now) {
  rates_->start(variable, activity, amount, now);
}
double Fluid::stop(VariableId variable, std::int64_t activity, double now) {
  return rates_->stop(variable, activity, now);
}
void Fluid::set_capacity(ConstraintId constraint, double capacity, double now) {
  rates_->set_capacity(constraint, capacity, now);
}
void Fluid::set_hops(VariableId variable, std::span<const ConstraintHop> hops, double now) {
  rates_->set_hops(variable, hops, now);
}
double Fluid::next() const {
  return rates_->next();
}
void Fluid::advance(double now, std::vector<std::int64_t>& finished) {
  rates_->advance(now, finished);
}
void Fluid::solve(double now) {
  rates_->solve(now);
}
double Fluid::rate(VariableId variable) const {
  return rates_->rate(variable);
}
double Fluid::load(ConstraintId constraint) const {
  return rates_->load(constraint);
}
std::int64_t Fluid::activities(VariableId variable) const {
  return rates_->activities(variable);
}
double Fluid::carried(ConstraintId constraint, double now) const {
  return rates_->carried(constraint, now);
}
double Fluid::worst_error() const {
  return rates_->worst_error();
}
const FluidStats& Fluid::stats() const {
  return rates_->stats();
}
double Fluid::now() const {
  return rates_->now();
}

}  // namespace weftwork::flow

/// Fluid traffic: activities that share links max-min fairly, from event to event. A class is a set of (link, weight)
/// hops; all activities of a class have one rate, and take weight x rate of each link. The weights of a link's
/// activities and their rates fill it at most; rates are max-min fair over all activities.
///
/// A class hangs at its bottleneck link, whose service counter times all activities there at once; starts and ends
/// are repaired by a sweep over the links that they touch, or by filling from scratch where that is less work.
/// Meaning: docs/models/flow-speed.md. Time is in ps, a double up to 1e15 and above; capacities are units per ps.
/// Leaves out: latency, and who starts what when (the executor).
#pragma once
#include <stdexcept>

#include "flow/filling.hpp"
#include "flow/sweep.hpp"

namespace weftwork::flow {

class Fluid {
 public:
  /// `capacity`: of each link, units per ps. `tolerance`: a load that is off by less than this share of the capacity is
  /// let be; it does not add up, since the load is remembered.
  Fluid(std::span<const double> capacity, double tolerance)
      : s_(capacity, std::max(tolerance, kLeastTolerance)), sweep_(s_), filling_(s_), is_forced_(capacity.size(), 0) {}
  Fluid(const Fluid&) = delete;
  Fluid& operator=(const Fluid&) = delete;

  /// A new class; its activities cross these links. Hops of one link add up; hops of weight 0 are dropped. An activity
  /// with no hops is done at once.
  std::int32_t add_class(std::span<const Hop> hops) {
    const auto cls = static_cast<std::int32_t>(s_.classes.size());
    s_.classes.emplace_back();
    s_.bottleneck.push_back(kNone);
    put_hops(cls, hops);
    return cls;
  }

  /// `amount`: units of service. Rates follow with the next `solve`.
  void start(std::int32_t cls, std::int64_t activity, double amount, double now) {
    pass(now);
    ClassState& c = s_.classes[cls];
    if (c.length == 0) {
      at_once_.push_back(activity);
      return;
    }
    const bool is_first = c.finishes.empty();
    double service = s_.class_service(cls, s_.now_ps);
    if (service > kCounterLimit) {
      for (Finish& finish : c.finishes) finish.at -= service;
      c.base -= static_cast<double>(c.finishes.size()) * service;
      c.offset -= service;
      service = 0;
    }
    c.base += service;
    c.finishes.push_back({service + amount, activity});
    std::push_heap(c.finishes.begin(), c.finishes.end());
    if (is_first) {
      s_.enlist(cls);
      note_fresh(cls);
    } else if (s_.bottleneck[cls] != kNone && c.finishes.front().activity == activity) {
      s_.post(cls);
      s_.retime(s_.bottleneck[cls]);
    }
    s_.change(cls, 1);
    touch(cls);
  }

  /// Take an activity away unfinished.
  /// @return what it still had to get
  double stop(std::int32_t cls, std::int64_t activity, double now) {
    pass(now);
    if (const auto at = std::find(at_once_.begin(), at_once_.end(), activity); at != at_once_.end()) {
      at_once_.erase(at);
      return 0;
    }
    ClassState& c = s_.classes[cls];
    const auto found = std::find_if(c.finishes.begin(), c.finishes.end(),
                                    [&](const Finish& finish) { return finish.activity == activity; });
    if (found == c.finishes.end()) throw std::invalid_argument("stop: the class has no such activity");
    const double service = s_.class_service(cls, s_.now_ps);
    const double rest = std::max(0.0, found->at - service);
    c.base -= found->at - rest;
    *found = c.finishes.back();
    c.finishes.pop_back();
    std::make_heap(c.finishes.begin(), c.finishes.end());
    leave(cls);
    return rest;
  }

  /// The capacity of a link from now on; at 0 its activities stall.
  void set_capacity(std::int32_t link, double capacity, double now) {
    pass(now);
    s_.links[link].capacity = capacity;
    s_.set_bounds(link);
    if (is_forced_[link] == 0) forced_.push_back(link);
    is_forced_[link] = 1;
  }

  /// The activities of a class go over other links from now on, with what they still have to get.
  void set_hops(std::int32_t cls, std::span<const Hop> hops, double now) {
    pass(now);
    const bool is_active = s_.activities(cls) > 0;
    // Also where its last activity has left at this instant: `touched_` would name the new links only.
    for (const Hop& hop : s_.hops(cls)) touched_links_.push_back(hop.link);
    if (is_active) {
      const std::int32_t bottleneck = s_.bottleneck[cls];
      s_.delist(cls);
      if (bottleneck != kNone) s_.retime(bottleneck);
    }
    put_hops(cls, hops);
    if (!is_active) return;
    ClassState& c = s_.classes[cls];
    if (c.length == 0) {
      std::sort_heap(c.finishes.begin(), c.finishes.end());
      std::reverse(c.finishes.begin(), c.finishes.end());  // sorted, such a heap has the earliest last
      for (const Finish& finish : c.finishes) at_once_.push_back(finish.activity);
      c.finishes.clear();
      c.offset = c.base = 0;
      return;
    }
    s_.enlist(cls);
    for (const Hop& hop : s_.hops(cls))
      s_.links[hop.link].all_pull += static_cast<double>(c.finishes.size()) * hop.weight;
    note_fresh(cls);
    touch(cls);
  }

  /// Instant of the next completion; infinite if there is none. Valid after `solve`.
  [[nodiscard]] double next() const { return at_once_.empty() ? s_.due.least() : s_.now_ps; }

  /// Time passes up to `now`, which is at most `next()`; what ends there is appended, all within 1 ps. `solve` follows.
  void advance(double now, std::vector<std::int64_t>& finished) {
    pass(now);
    finished.insert(finished.end(), at_once_.begin(), at_once_.end());
    at_once_.clear();
    const double tie_ps = std::max(1.0, s_.now_ps * 1e-15);  // above an ulp of the clock, however late it is
    while (s_.due.least() <= s_.now_ps + tie_ps) end_at(s_.due.winner(), tie_ps, finished);
  }

  /// New rates, after all that has happened at this instant.
  void solve(double now) {
    pass(now);
    if (fresh_.empty() && touched_.empty() && touched_links_.empty() && forced_.empty()) return;
    ++s_.stats.events;
    ++s_.epoch;
    s_.opened.clear();
    std::erase_if(fresh_, [&](std::int32_t cls) {
      s_.classes[cls].is_fresh = false;
      return s_.classes[cls].finishes.empty() || s_.bottleneck[cls] != kNone;
    });
    const bool is_crowd = static_cast<std::int64_t>(fresh_.size()) * 8 > s_.live_classes + 64;
    const bool is_due = s_.stats.events % kRecount == 0;
    if (is_crowd || is_due || !sweep_.run(fresh_, touched_, touched_links_, forced_)) filling_.run();
    for (const std::int32_t link : s_.opened) s_.retime(link);
    for (const std::int32_t cls : touched_) is_touched_[cls] = 0;
    for (const std::int32_t link : forced_) is_forced_[link] = 0;
    fresh_.clear();
    touched_.clear();
    touched_links_.clear();
    forced_.clear();
  }

  /// Rate of each activity of a class, units of service per ps.
  [[nodiscard]] double rate(std::int32_t cls) const { return s_.rate(cls); }
  /// Units per ps on a link.
  [[nodiscard]] double load(std::int32_t link) const { return s_.load[link].load; }
  [[nodiscard]] std::int64_t activities(std::int32_t cls) const { return s_.activities(cls); }
  /// Classes that have a share in a link now.
  [[nodiscard]] std::int64_t crossing(std::int32_t link) const {
    return static_cast<std::int64_t>(s_.links[link].all.size());
  }

  /// Units that the link has carried until `now`, which is at most `next()`. Takes the classes that cross it.
  [[nodiscard]] double carried(std::int32_t link, double now) const {
    double units = s_.links[link].carried_units;
    for (const Crossing& crossing : s_.links[link].all) {
      const double weight = s_.arena[s_.classes[crossing.cls].first_hop + crossing.hop].weight;
      units += weight * s_.class_carried(crossing.cls, now);
    }
    return units;
  }

  /// The largest relative difference of a rate from textbook filling. Slow.
  [[nodiscard]] double worst_error() const { return worst_rate_error(s_); }
  [[nodiscard]] const FluidStats& stats() const { return s_.stats; }
  [[nodiscard]] double now() const { return s_.now_ps; }

 private:
  static constexpr double kLeastTolerance = 1e-12;     // chosen: well above the rounding of a load
  static constexpr std::int64_t kRecount = 1'000'000;  // chosen: rounding of that many changes stays below 1e-9

  void pass(double now) { s_.now_ps = std::max(s_.now_ps, now); }

  void touch(std::int32_t cls) {
    if (is_touched_.size() < s_.classes.size()) is_touched_.resize(s_.classes.size(), 0);
    if (is_touched_[cls] != 0) return;
    is_touched_[cls] = 1;
    touched_.push_back(cls);
  }

  void note_fresh(std::int32_t cls) {
    if (s_.classes[cls].is_fresh) return;
    s_.classes[cls].is_fresh = true;
    fresh_.push_back(cls);
  }

  /// An activity has been taken out of `finishes`.
  void leave(std::int32_t cls) {
    s_.change(cls, -1);
    touch(cls);
    const std::int32_t bottleneck = s_.bottleneck[cls];
    if (s_.classes[cls].finishes.empty())
      s_.delist(cls);
    else if (bottleneck != kNone)
      s_.post(cls);
    if (bottleneck != kNone) s_.retime(bottleneck);
  }

  /// What ends at this instant among the activities that have their bottleneck at this link: at least one.
  void end_at(std::int32_t link, double tie_ps, std::vector<std::int64_t>& finished) {
    const double served = s_.service(link);
    double until = (served + 2 * tie_ps * s_.load[link].level) * (1 + 1e-15);
    until = std::max(until, s_.links[link].due.front().at);
    while (s_.has_due(link) && s_.links[link].due.front().at <= until) {
      const std::int32_t cls = s_.links[link].due.front().cls;
      s_.pop_due(link);
      ClassState& c = s_.classes[cls];
      do {
        std::pop_heap(c.finishes.begin(), c.finishes.end());
        finished.push_back(c.finishes.back().activity);
        c.base -= c.finishes.back().at;
        c.finishes.pop_back();
        s_.change(cls, -1);
      } while (!c.finishes.empty() && c.finishes.front().at - c.offset <= until);
      touch(cls);
      if (c.finishes.empty())
        s_.delist(cls);
      else
        s_.post(cls);
    }
    s_.retime(link);
  }

  void put_hops(std::int32_t cls, std::span<const Hop> hops) {
    merged_.assign(hops.begin(), hops.end());
    std::erase_if(merged_, [](const Hop& hop) { return hop.weight == 0; });
    for (const Hop& hop : merged_)
      if (hop.link < 0 || static_cast<std::size_t>(hop.link) >= s_.links.size() || !(hop.weight > 0))
        throw std::invalid_argument("a hop needs a link that exists and a weight that is not negative");
    std::sort(merged_.begin(), merged_.end(), [](const Hop& a, const Hop& b) { return a.link < b.link; });
    std::size_t kept = 0;
    for (const Hop& hop : merged_) {
      if (kept > 0 && merged_[kept - 1].link == hop.link)
        merged_[kept - 1].weight += hop.weight;
      else
        merged_[kept++] = hop;
    }
    merged_.resize(kept);
    ClassState& c = s_.classes[cls];
    for (const Hop& hop : s_.hops(cls)) --s_.links[hop.link].declared;
    for (const Hop& hop : merged_) ++s_.links[hop.link].declared;
    c.length = static_cast<std::int32_t>(kept);
    if (c.length > c.room) {
      c.room = c.length;
      c.first_hop = static_cast<std::int64_t>(s_.arena.size());
      s_.arena.resize(s_.arena.size() + kept);
      s_.places.resize(s_.arena.size());
    }
    std::copy(merged_.begin(), merged_.end(), s_.arena.begin() + c.first_hop);
    c.is_narrow = kept <= Own::kInline + 1 && std::all_of(merged_.begin(), merged_.end(), [&](const Hop& hop) {
                    return hop.weight == merged_.front().weight;
                  });
  }

  Sharing s_;
  Sweep sweep_;
  Filling filling_;
  std::vector<std::int64_t> at_once_;  // activities without hops
  std::vector<std::int32_t> fresh_;    // classes without a bottleneck
  std::vector<std::int32_t> touched_, touched_links_, forced_;
  std::vector<std::uint8_t> is_touched_, is_forced_;
  std::vector<Hop> merged_;
};

}  // namespace weftwork::flow

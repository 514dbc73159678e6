/// Repair of max-min rates after a few activities have come, gone or changed: links whose load does not fit are brought
/// to a new level in order of that level, and hand on to other links what they change.
///
/// Max-min (Bertsekas and Gallager, Data Networks, section 6.5.2): every class has a bottleneck, which is full and on
/// which nobody is faster. The sweep ends when that holds everywhere, whatever the order; the order makes it quick. It
/// gives up when it changes more than filling from scratch would (`filling.hpp`).
#pragma once
#include <functional>
#include <utility>

#include "flow/sharing.hpp"

namespace weftwork::flow {

class Sweep {
 public:
  explicit Sweep(Sharing& sharing) : s_(sharing) {}

  /// `fresh`: classes that have no bottleneck yet; `touched`: links whose load has changed; `forced`: links to look at
  /// whatever their load is. False if it gave up: the rates are then of no use, and filling has to follow.
  bool run(std::span<const std::int32_t> fresh, std::span<const std::int32_t> touched_classes,
           std::span<const std::int32_t> touched, std::span<const std::int32_t> forced) {
    queue_.clear();
    for (const std::int32_t cls : fresh) place(cls);
    for (const std::int32_t link : forced) push(link);
    for (const std::int32_t cls : touched_classes)
      for (const Hop& hop : s_.hops(cls)) reconsider(hop.link);
    for (const std::int32_t link : touched) reconsider(link);
    const std::int64_t limit = changed_hops_ + s_.live_hops + 512;
    while (!queue_.empty()) {
      const auto [was, link] = queue_.front();
      pop();
      const double target = target_level(link);
      if (target > was * (1 + 1e-12) && !queue_.empty() && target > queue_.front().first) {
        insert(target, link);  // others have taken less meanwhile
        continue;
      }
      settle(link);
      for (const std::int32_t other : robbed_) reconsider(other);
      robbed_.clear();
      if (changed_hops_ > limit) {
        for (const Waiting& waiting : queue_) clean(waiting.second);
        return false;
      }
    }
    return true;
  }

 private:
  using Waiting = std::pair<double, std::int32_t>;  // target level, link
  struct Candidate {
    double rate;
    Crossing crossing;
    bool operator<(const Candidate& other) const {  // the fastest first
      return rate != other.rate ? rate > other.rate : crossing.cls < other.crossing.cls;
    }
  };

  /// A new class begins at the link that has least for it. That link is looked at even if the load happens to fit:
  /// others on it may be faster than the newcomer.
  void place(std::int32_t cls) {
    const auto count = static_cast<double>(s_.activities(cls));
    const std::span<const Hop> hops = s_.hops(cls);
    std::size_t at = 0;
    double least = kInfinity;
    for (std::size_t i = 0; i < hops.size(); ++i) {
      const LinkState& l = s_.links[hops[i].link];
      const LinkLoad& load = s_.load[hops[i].link];
      const double share = load.level < kInfinity
                               ? load.level
                               : std::max((l.capacity - load.load) / (count * hops[i].weight), l.capacity / l.all_pull);
      if (share >= least) continue;
      least = share;
      at = i;
    }
    const std::int32_t link = hops[at].link;
    if (s_.load[link].level == kInfinity) {
      s_.open(link);
      s_.load[link].level = least;
      s_.links[link].is_new = true;
    }
    move(cls, static_cast<std::int32_t>(at));
    push(link);
  }

  /// The class gets hop `hop` as its bottleneck, and that link's level as its rate.
  void move(std::int32_t cls, std::int32_t hop) {
    const std::span<const Hop> hops = s_.hops(cls);
    const std::int32_t link = hops[hop].link;
    const double step = (s_.load[link].level - s_.rate(cls)) * static_cast<double>(s_.activities(cls));
    s_.open(link);
    s_.attach(cls, hop);
    ++s_.stats.rates;
    changed_hops_ += static_cast<std::int64_t>(hops.size());
    for (const Hop& other : hops) {
      s_.load[other.link].load += step * other.weight;
      mark(other.link);
    }
  }

  /// Bring a link to its level, given the rates of the classes that are held elsewhere. Afterwards it is full and no
  /// class on it exceeds its level, or it is not full and nobody's bottleneck. Own classes that meet a lower level
  /// elsewhere move there, which leaves this link with room to spare, and dirty again.
  void settle(std::int32_t link) {
    LinkLoad& load = s_.load[link];
    LinkState& state = s_.links[link];
    s_.open(link);
    ++s_.stats.links;
    const double before = load.level;
    const std::size_t had = state.own.size();
    const double level = capture(link);
    load.level = level;
    state.is_dirty = true;  // stays out of the queue meanwhile
    state.is_new = false;
    s_.set_bounds(link);
    raise(link, before, had);
    if (!state.own.empty()) load.load = state.capacity;
    for (const std::int32_t cls : leaving_) move_to_lowest(cls);
    clean(link);
    if (!leaving_.empty()) reconsider(link);
  }

  /// The level of a link, once the classes that would take more than it are its own, the fastest first. Their rates
  /// until now are in `captured_rates_`.
  double capture(std::int32_t link) {
    captured_rates_.clear();
    const LinkLoad& load = s_.load[link];
    const LinkState& state = s_.links[link];
    const bool is_idle = state.own.empty();
    double pull = state.own_pull;
    double others = is_idle ? load.load : load.load - load.level * pull;
    // A dead link gives nothing: what rounding has left in `others` must not trickle through it.
    const auto level_now = [&] { return state.capacity > 0 ? std::max(0.0, (state.capacity - others) / pull) : 0.0; };
    double level = is_idle ? kInfinity : level_now();
    if (is_idle ? load.load <= state.capacity : level >= load.level && !state.is_new) return level;
    candidates_.clear();
    const double least = is_idle ? -kInfinity : level * (1 + s_.tolerance);
    const LinkLoad* const loads = s_.load.data();
    for (std::size_t i = 0; i < state.held_at.size(); ++i) {
      const std::int32_t at = state.held_at[i];
      // Both at once: one branch that is seldom taken, where two would be guessed wrong.
      if (static_cast<int>(loads[at].level > least) & static_cast<int>(at != link))
        candidates_.push_back({loads[at].level, state.all[i]});
    }
    std::sort(candidates_.begin(), candidates_.end());
    for (const auto& [rate, crossing] : candidates_) {
      if (pull > 0 && rate <= level * (1 + s_.tolerance)) break;
      const std::int32_t at = s_.bottleneck[crossing.cls];
      s_.open(at);
      robbed_.push_back(at);
      s_.attach(crossing.cls, crossing.hop);
      captured_rates_.push_back(rate);
      const double taken = state.own.back().pull;
      others -= rate * taken;
      pull += taken;
      level = level_now();
    }
    return level;
  }

  /// Tell the other links of a link's own classes its new level; classes that are too fast for one of those are in
  /// `leaving_`. The first `had` had the level `before`, the rest have been captured. Nearly all the time goes here.
  void raise(std::int32_t link, double before, std::size_t had) {
    leaving_.clear();
    LinkLoad* const loads = s_.load.data();
    const std::vector<Own>& own = s_.links[link].own;
    const double level = loads[link].level;
    const double low = level * (1 - s_.tolerance);
    for (std::size_t i = level == before ? had : 0; i < own.size(); ++i) {
      const Own& row = own[i];
      const double step = level - (i < had ? before : captured_rates_[i - had]);
      bool is_too_fast = false;
      const auto add = [&](std::int32_t other, double difference) {
        LinkLoad& l = loads[other];
        const double load = l.load + difference;
        l.load = load;
        is_too_fast |= l.level < low;
        if (static_cast<int>(load < l.low) | static_cast<int>(load > l.high)) push(other);
      };
      if (row.other[0] != Own::kElsewhere) {
        const double each = step * row.pull;
        for (const std::int32_t other : row.other) {
          if (other == Own::kEnd) break;
          add(other, each);
        }
      } else {
        const double each = step * static_cast<double>(s_.activities(row.cls));
        const std::span<const Hop> hops = s_.hops(row.cls);
        for (const Hop& hop : hops) add(hop.link, each * hop.weight);  // this link too: its load is set afterwards
        changed_hops_ += static_cast<std::int64_t>(hops.size());
      }
      if (is_too_fast) leaving_.push_back(row.cls);
    }
    changed_hops_ += static_cast<std::int64_t>(own.size() * (Own::kInline + 1));
    s_.stats.rates += static_cast<std::int64_t>(own.size());
  }

  void move_to_lowest(std::int32_t cls) {
    const std::span<const Hop> hops = s_.hops(cls);
    std::size_t at = 0;
    for (std::size_t i = 1; i < hops.size(); ++i)
      if (s_.load[hops[i].link].level < s_.load[hops[at].link].level) at = i;
    move(cls, static_cast<std::int32_t>(at));
    mark(hops[at].link);
  }

  void reconsider(std::int32_t link) {
    s_.drop_level(link);
    mark(link);
  }
  void mark(std::int32_t link) {
    const LinkLoad& l = s_.load[link];
    if (l.load < l.low || l.load > l.high) push(link);
  }
  void push(std::int32_t link) {
    if (s_.links[link].is_dirty) return;
    s_.links[link].is_dirty = true;
    s_.set_bounds(link);
    insert(target_level(link), link);
  }
  void clean(std::int32_t link) {
    s_.links[link].is_dirty = false;
    s_.set_bounds(link);
  }

  /// Where the level of a link is heading.
  [[nodiscard]] double target_level(std::int32_t link) const {
    const LinkLoad& load = s_.load[link];
    const LinkState& l = s_.links[link];
    if (!l.own.empty()) return std::max(0.0, load.level + (l.capacity - load.load) / l.own_pull);
    return l.all_pull > 0 ? l.capacity / l.all_pull : kInfinity;
  }

  void insert(double target, std::int32_t link) {
    queue_.emplace_back(target, link);
    std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
  }
  void pop() {
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    queue_.pop_back();
  }

  Sharing& s_;
  std::int64_t changed_hops_ = 0;
  std::vector<Waiting> queue_;  // heap of dirty links
  std::vector<std::int32_t> leaving_, robbed_;
  std::vector<Candidate> candidates_;
  std::vector<double> captured_rates_;
};

}  // namespace weftwork::flow

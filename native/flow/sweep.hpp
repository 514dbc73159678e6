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

namespace weft::flow {

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
      s_.for_hops(cls, [&](std::int32_t, std::int32_t link, double) { reconsider(link); });
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

  /// A new class begins at the link that has least for it. That link is looked at even if the load happens to fit:
  /// others on it may be faster than the newcomer.
  void place(std::int32_t cls) {
    std::int32_t at = kNone;
    std::int32_t link_at = kNone;
    double best = kInfinity;
    s_.for_hops(cls, [&](std::int32_t hop, std::int32_t link, double pull) {
      const double level = s_.load[link].level;
      const LinkState& l = s_.links[link];
      const double share =
          level < kInfinity ? level : std::max((l.capacity - s_.load[link].load) / pull, l.capacity / l.all_pull);
      if (share < best || at == kNone) {
        best = share;
        at = hop;
        link_at = link;
      }
    });
    move(cls, at, link_at, best);
    push(link_at);
  }

  /// The class gets hop `hop` as its bottleneck, and that link's rate.
  void move(std::int32_t cls, std::int32_t hop, std::int32_t link, double rate) {
    s_.open(link);
    s_.attach(cls, hop);
    ClassRate& k = s_.rates[cls];
    const double step = rate - k.rate;
    s_.links[link].own_load += step * s_.first_pull(k);
    k.rate = rate;
    ++s_.stats.rates;
    changed_hops_ += k.length;
    s_.for_hops(cls, [&](std::int32_t, std::int32_t other, double pull) {
      s_.load[other].load += step * pull;
      mark(other);
    });
  }

  /// Bring a link to its level, given the rates of the classes that are held elsewhere. Afterwards it is full and no
  /// class on it exceeds its level, or it is not full and nobody's bottleneck. Own classes that meet a lower level
  /// elsewhere move there, which leaves this link with room to spare, and dirty again.
  void settle(std::int32_t link) {
    LinkLoad& load = s_.load[link];
    LinkState& state = s_.links[link];
    s_.open(link);
    ++s_.stats.links;
    const double level = capture(link);
    load.level = level;
    state.is_dirty = true;  // stays out of the queue meanwhile
    s_.set_bounds(link);
    const double pull = raise(link, level);
    state.own_pull = pull;
    state.own_load = pull > 0 ? level * pull : 0;
    if (pull > 0) load.load = state.capacity;
    for (const std::int32_t cls : leaving_) move_to_lowest(cls);
    clean(link);
    if (!leaving_.empty()) reconsider(link);
  }

  /// The level of a link, once the classes that would take more than it are its own, the fastest first.
  double capture(std::int32_t link) {
    const LinkLoad& load = s_.load[link];
    const LinkState& state = s_.links[link];
    double others = load.load - state.own_load;
    double pull = state.own_pull;
    // A dead link gives nothing: what rounding has left in `others` must not trickle through it.
    const auto level_now = [&] { return state.capacity > 0 ? std::max(0.0, (state.capacity - others) / pull) : 0.0; };
    double level = pull > 0 ? level_now() : kInfinity;
    if (pull > 0 ? level >= load.level : load.load <= state.capacity) return level;
    candidates_.clear();
    const std::size_t size = state.all.size();
    for (std::size_t i = 0; i < size; ++i) {
      if (i + 8 < size) __builtin_prefetch(&s_.rates[state.all[i + 8].cls]);
      const Crossing crossing = state.all[i];
      const ClassRate& k = s_.rates[crossing.cls];
      if (k.bottleneck != link && (pull == 0 || k.rate > level * (1 + s_.tolerance)))
        candidates_.emplace_back(k.rate, crossing.cls);
    }
    std::sort(candidates_.begin(), candidates_.end(), std::greater<>());
    for (const auto& [rate, cls] : candidates_) {
      if (pull > 0 && rate <= level * (1 + s_.tolerance)) break;
      const ClassRate& k = s_.rates[cls];
      if (k.bottleneck != kNone) {
        s_.open(k.bottleneck);
        robbed_.push_back(k.bottleneck);
      }
      s_.attach(cls, hop_of(cls, link));
      const double taken = s_.first_pull(k);
      others -= rate * taken;
      pull += taken;
      level = level_now();
    }
    return level;
  }

  /// Set all own classes of a link to its level; those that are too fast for another of their links are in `leaving_`.
  /// This is where nearly all the time goes. Returns the sum of their pulls.
  double raise(std::int32_t link, double level) {
    leaving_.clear();
    const double low = level * (1 - s_.tolerance);
    LinkLoad* const loads = s_.load.data();
    ClassRate* const rates = s_.rates.data();
    const std::vector<std::int32_t>& own = s_.links[link].own;
    const std::size_t size = own.size();
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (i + 4 < size) __builtin_prefetch(&rates[own[i + 4]], 1);
      ClassRate& k = rates[own[i]];
      const double step = (level - k.rate) * k.pull;
      k.rate = level;
      changed_hops_ += k.length;
      bool is_too_fast = false;
      const auto apply = [&](std::int32_t other, double difference) {
        LinkLoad& l = loads[other];
        const double now = l.load + difference;
        l.load = now;
        is_too_fast |= l.level < low;
        if (now < l.low || now > l.high) push(other);
      };
      if (k.spill == kNone) {
        sum += k.pull;
        for (std::int32_t hop = 1; hop < k.length; ++hop) apply(k.link[hop], step);  // hop 0 is this link
      } else {
        const Hop* const hops = &s_.arena[k.spill];
        sum += k.pull * hops[0].weight;
        for (std::int32_t hop = 1; hop < k.length; ++hop) apply(hops[hop].link, step * hops[hop].weight);
      }
      if (is_too_fast) leaving_.push_back(own[i]);
    }
    s_.stats.rates += static_cast<std::int64_t>(size);
    return sum;
  }

  void move_to_lowest(std::int32_t cls) {
    std::int32_t at = kNone;
    std::int32_t link_at = kNone;
    double least = kInfinity;
    s_.for_hops(cls, [&](std::int32_t hop, std::int32_t link, double) {
      if (s_.load[link].level >= least) return;
      least = s_.load[link].level;
      at = hop;
      link_at = link;
    });
    move(cls, at, link_at, least);
    mark(link_at);
  }

  [[nodiscard]] std::int32_t hop_of(std::int32_t cls, std::int32_t link) const {
    const ClassRate& k = s_.rates[cls];
    std::int32_t hop = 0;
    if (k.spill == kNone)
      while (k.link[hop] != link) ++hop;
    else
      while (s_.arena[k.spill + hop].link != link) ++hop;
    return hop;
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
    if (l.own_pull > 0 && load.level < kInfinity)
      return std::max(0.0, load.level + (l.capacity - load.load) / l.own_pull);
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
  std::vector<std::pair<double, std::int32_t>> candidates_;
};

}  // namespace weft::flow

/// Progressive filling: all rates grow together; where a link is full, the classes on it keep what they have. `Filling`
/// gives all rates anew in the order of the links' shares; `textbook_rates` does the same in the plainest way, round by
/// round over all links, and exists to check everything else.
/// Source: Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2; with weights, a link is full when the
/// weighted sum of its rates is its capacity.
#pragma once
#include <cmath>
#include <functional>
#include <utility>

#include "flow/sharing.hpp"

namespace weftwork::flow {

class Filling {
 public:
  explicit Filling(Sharing& sharing) : s_(sharing), left_(sharing.links.size()) {}

  /// All rates, loads and bottlenecks from scratch. What rounding has left in the sums goes too.
  void run() {
    ++s_.stats.full;
    queue_.clear();
    done_.resize(s_.classes.size(), 0);
    ++round_;
    std::int64_t waiting = s_.live_classes;
    queue_.reserve(s_.used.size());
    s_.opened.reserve(s_.used.size());
    for (const std::int32_t link : s_.used) {
      s_.open(link);
      LinkState& l = s_.links[link];
      l.is_dirty = false;
      l.all_pull = 0;
      for (const Crossing& crossing : l.all) l.all_pull += s_.pull(crossing.cls, crossing.hop);
      left_[link] = {l.capacity, l.all_pull, l.all_pull, static_cast<std::int64_t>(l.all.size()), kInfinity};
      queue_.emplace_back(l.capacity / l.all_pull, link);
    }
    std::make_heap(queue_.begin(), queue_.end(), std::greater<>());
    while (waiting > 0 && !queue_.empty()) {
      const std::int32_t link = queue_.front().second;
      std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
      queue_.pop_back();
      if (left_[link].classes == 0) continue;
      const double share = share_of(link);
      if (!queue_.empty() && share > queue_.front().first) {  // shares only grow while others are served
        queue_.emplace_back(share, link);
        std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
        continue;
      }
      waiting -= fill(link, share);
    }
    for (const std::int32_t link : s_.opened) finish(link);
  }

 private:
  struct Left {
    double capacity;
    double pull;
    double summed;  // pull when it was last a sum and not a difference
    std::int64_t classes;
    double level;
  };

  /// What each activity gets that is not served yet. Where little is left of a sum, the sum is made anew: differences
  /// of large numbers would have lost it.
  double share_of(std::int32_t link) {
    Left& left = left_[link];
    if (left.pull < 1e-3 * left.summed) {
      left.pull = 0;
      for (const Crossing& crossing : s_.links[link].all)
        if (done_[crossing.cls] != round_) left.pull += s_.pull(crossing.cls, crossing.hop);
      left.summed = left.pull;
    }
    return std::max(0.0, left.capacity / left.pull);
  }

  /// The classes that are left on a link get its share. Returns how many they are.
  std::int64_t fill(std::int32_t link, double share) {
    const std::int64_t served = left_[link].classes;
    left_[link].level = share;
    for (const Crossing crossing : s_.links[link].all) {
      if (done_[crossing.cls] == round_) continue;
      done_[crossing.cls] = round_;
      s_.attach(crossing.cls, crossing.hop);
      const auto count = static_cast<double>(s_.activities(crossing.cls));
      for (const Hop& hop : s_.hops(crossing.cls)) {
        Left& left = left_[hop.link];
        left.capacity -= share * count * hop.weight;
        left.pull -= count * hop.weight;
        --left.classes;
      }
    }
    return served;
  }

  void finish(std::int32_t link) {
    LinkState& l = s_.links[link];
    l.is_new = false;
    if (l.used_at == kNone) {
      s_.load[link].level = kInfinity;
      return;
    }
    s_.load[link].level = left_[link].level;
    s_.load[link].load = l.capacity - left_[link].capacity;
    l.own_pull = 0;
    for (const Own& own : l.own) l.own_pull += own.pull;
    s_.set_bounds(link);
  }

  Sharing& s_;
  std::vector<Left> left_;
  std::vector<std::pair<double, std::int32_t>> queue_;  // share, link: heap
  std::vector<std::uint32_t> done_;                     // by class: last round that served it
  std::uint32_t round_ = 0;
};

/// Rates by class as the textbook has them; 0 for classes without activities. Takes links x bottlenecks.
inline std::vector<double> textbook_rates(const Sharing& s) {
  std::vector<double> rates(s.classes.size(), 0.0);
  std::vector<bool> is_done(s.classes.size(), false);
  const auto pulls_left = [&](std::int32_t link) {
    double pull = 0;
    double capacity = s.links[link].capacity;
    for (const Crossing& crossing : s.links[link].all) {
      const double own = s.pull(crossing.cls, crossing.hop);
      if (is_done[crossing.cls])
        capacity -= own * rates[crossing.cls];
      else
        pull += own;
    }
    return std::pair{std::max(0.0, capacity), pull};
  };
  std::vector<double> share(s.links.size(), kInfinity);
  const auto review = [&](std::int32_t link) {
    const auto [capacity, pull] = pulls_left(link);
    share[link] = pull > 0 ? capacity / pull : kInfinity;
  };
  for (const std::int32_t link : s.used) review(link);
  while (true) {
    std::int32_t bottleneck = kNone;
    for (const std::int32_t link : s.used)
      if (share[link] < kInfinity && (bottleneck == kNone || share[link] < share[bottleneck])) bottleneck = link;
    if (bottleneck == kNone) return rates;
    std::vector<std::int32_t> changed;
    for (const Crossing& crossing : s.links[bottleneck].all) {
      if (is_done[crossing.cls]) continue;
      is_done[crossing.cls] = true;
      rates[crossing.cls] = share[bottleneck];
      for (const Hop& hop : s.hops(crossing.cls)) changed.push_back(hop.link);
    }
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (const std::int32_t link : changed) review(link);
  }
}

/// The largest relative difference between the rates and the textbook's.
inline double worst_rate_error(const Sharing& s) {
  const std::vector<double> rates = textbook_rates(s);
  double worst = 0;
  for (std::size_t cls = 0; cls < rates.size(); ++cls) {
    const double difference = std::fabs(s.rate(static_cast<std::int32_t>(cls)) - rates[cls]);
    if (difference > 0 || std::isnan(difference))
      worst = std::max(worst, std::isnan(difference) || rates[cls] == 0 ? kInfinity : difference / rates[cls]);
  }
  return worst;
}

}  // namespace weftwork::flow

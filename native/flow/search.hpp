/// Hops over live links from every switch to one attachment, found by search and kept. They are for destinations that
/// the tiers of a fabric do not know (a fabric without tiers, or destinations that a dead link hides).
///
/// Source: topology/routing.py, `hops_left`. Leaves out: weights.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/limit_error.hpp"
#include "flow/fabric_view.hpp"
#include "flow/rule.hpp"
#include "flow/tiers.hpp"

namespace weftwork::flow {

class Search {
 public:
  static constexpr std::int16_t kNowhere = -1;
  static constexpr std::int64_t kMostDistances = 1'000'000'000;  // chosen: 2 GB

  /// Hops by switch, or lengths where links between groups are long; under `kUpDown` with the bit `kClimbs` where the
  /// next one goes up.
  using HopsLeft = IdVector<SwitchId, std::int16_t>;

  /// `most_steps`: links that all searches together may look at.
  Search(Rule rule, std::int64_t most_steps) : rule_(rule), most_steps_(most_steps) {}

  /// Forget everything: the live links have changed. Throws LimitError where finding all distances would take too long.
  void reset(const FabricView& fabric, const Tiers& tiers) {
    distance_.assign(tiers.attachment_count(), {});
    const auto ports = static_cast<std::int64_t>(fabric.port_node.size());
    const auto switches = static_cast<std::int64_t>(tiers.switch_count());
    const std::int64_t passes = rule_.order == Order::kUpDown ? 2 : 1;
    if (tiers.unknown() * ports * passes > most_steps_ || tiers.unknown() * switches > kMostDistances)
      throw LimitError("the links of this fabric that are up do not form tiers, and it is too large to search " +
                       std::to_string(tiers.unknown()) +
                       " destinations one by one; let fewer links fail, or take a smaller fabric");
    from_top_.clear();
    if (rule_.order != Order::kUpDown || tiers.unknown() == 0) return;
    for (const SwitchId s : tiers.switches()) from_top_.push_back(tiers.node_of(s));
    std::ranges::sort(from_top_, [&](NodeId a, NodeId b) {
      return fabric.tier(a) != fabric.tier(b) ? fabric.tier(a) > fabric.tier(b) : a.value < b.value;
    });
  }

  [[nodiscard]] const Rule& rule() const { return rule_; }

  /// Whether a link from one switch to another, that of a port, lies on a path to the attachment whose hops these are.
  /// Dimension order takes some of these links alone.
  [[nodiscard]] bool leads(const FabricView& fabric, const Tiers& tiers, const HopsLeft& left, NodeId from, NodeId next,
                           PortId port) const {
    const std::int16_t own = left[tiers.switch_of(from)], rest = left[tiers.switch_of(next)];
    if (own == kNowhere || rest == kNowhere) return false;
    if (rule_.order != Order::kUpDown) return rest == own - rule_.length(port);
    const bool climbs = (own & kClimbs) != 0;
    if (fabric.tier(next) < fabric.tier(from)) return !climbs && rest == own - 1;
    return fabric.tier(next) > fabric.tier(from) && climbs && hops(rest) == hops(own) - 1;
  }

  /// Hops from each switch to the attachment; `kNowhere` where there is no path.
  const HopsLeft& to(const FabricView& fabric, const Tiers& tiers, AttachmentId attachment, NodeId node) {
    HopsLeft& distance = distance_[attachment];
    if (!distance.empty()) return distance;
    distance.assign(tiers.switch_count(), kNowhere);
    if (rule_.order == Order::kFewestGlobalHops) {
      lengths(fabric, tiers, node, distance);
      return distance;
    }
    frontier_.assign(1, node);
    distance[tiers.switch_of(node)] = 0;
    for (std::size_t at = 0; at < frontier_.size(); ++at) {
      const NodeId from = frontier_[at];
      const auto hops = static_cast<std::int16_t>(distance[tiers.switch_of(from)] + std::int16_t{1});
      for (const PortId p : fabric.ports_of(from)) {
        if (!tiers.is_live(p)) continue;
        const NodeId next = fabric.next(p);
        if (!fabric.is_switch(next)) continue;
        if (rule_.order == Order::kUpDown && fabric.tier(next) <= fabric.tier(from))
          continue;  // from there it would rise
        std::int16_t& known = distance[tiers.switch_of(next)];
        if (known != kNowhere) continue;
        known = hops;
        frontier_.push_back(next);
      }
    }
    if (rule_.order == Order::kUpDown) climb(fabric, tiers, distance);
    return distance;
  }

 private:
  static constexpr std::int16_t kClimbs = 1 << 14;

  [[nodiscard]] static std::int16_t hops(std::int16_t value) {
    return static_cast<std::int16_t>(value & (kClimbs - 1));
  }

  /// Lengths of the shortest paths, where links between groups are long: as Dijkstra's, with a bucket for each length
  /// that is not settled yet.
  void lengths(const FabricView& fabric, const Tiers& tiers, NodeId node, HopsLeft& distance) {
    constexpr std::size_t kBuckets = Rule::kGlobalLength + 1;
    std::array<std::vector<NodeId>, kBuckets> bucket;
    bucket[0].push_back(node);
    distance[tiers.switch_of(node)] = 0;
    std::size_t waiting = 1;
    for (std::size_t length = 0; waiting > 0; ++length) {
      std::vector<NodeId>& settled = bucket[length % kBuckets];
      for (const NodeId from : settled) {  // no link is as long as there are buckets, so that none comes to this one
        --waiting;
        if (std::cmp_not_equal(distance[tiers.switch_of(from)], length)) continue;  // found again, nearer
        for (const PortId p : fabric.ports_of(from)) {
          const NodeId next = fabric.next(p);
          if (!tiers.is_live(p) || !fabric.is_switch(next)) continue;
          const auto further = static_cast<std::int16_t>(length + static_cast<std::size_t>(rule_.length(p)));
          std::int16_t& known = distance[tiers.switch_of(next)];
          if (known != kNowhere && known <= further) continue;
          known = further;
          bucket[static_cast<std::size_t>(further) % kBuckets].push_back(next);
          ++waiting;
        }
      }
      settled.clear();
    }
  }

  /// Lead what has no way down up to where the fewest hops are left; what is above is known first.
  void climb(const FabricView& fabric, const Tiers& tiers, HopsLeft& distance) const {
    for (const NodeId node : from_top_) {
      std::int16_t& own = distance[tiers.switch_of(node)];
      if (own != kNowhere) continue;
      std::int16_t least = kClimbs;
      for (const PortId p : fabric.ports_of(node)) {
        if (!tiers.is_live(p)) continue;
        const NodeId next = fabric.next(p);
        if (!fabric.is_switch(next) || fabric.tier(next) <= fabric.tier(node)) continue;
        if (const std::int16_t rest = distance[tiers.switch_of(next)]; rest != kNowhere)
          least = std::min(least, hops(rest));
      }
      if (least != kClimbs) own = static_cast<std::int16_t>((least + 1) | kClimbs);
    }
  }

  Rule rule_;
  std::int64_t most_steps_;
  IdVector<AttachmentId, HopsLeft> distance_;  // empty: not searched yet
  std::vector<NodeId> frontier_;
  std::vector<NodeId> from_top_;  // switches, the highest tier first; for `climb`
};

}  // namespace weftwork::flow

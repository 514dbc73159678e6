/// Distances over live links from every switch to one attachment, found by search and kept: for destinations that the
/// tiers of a fabric do not know (a fabric without tiers, or what a dead link hides).
/// Leaves out: weights; as topology/routing.py, all shortest paths by hop count are equal.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "flow/tiers.hpp"
#include "packet/state.hpp"

namespace weftwork::flow {

class Search {
 public:
  static constexpr std::int16_t kNowhere = -1;
  static constexpr std::int64_t kMostSteps = 6'000'000'000;      // chosen: about a minute
  static constexpr std::int64_t kMostDistances = 1'000'000'000;  // chosen: 2 GB

  /// `most_steps`: links that all searches together may look at.
  explicit Search(std::int64_t most_steps) : most_steps_(most_steps) {}

  /// Forget everything: the live links have changed. Throws LimitError where finding all distances would take too long.
  void reset(const FabricView& fabric, const Tiers& tiers) {
    distance_.assign(tiers.attachment_count(), {});
    const auto ports = static_cast<std::int64_t>(fabric.port_node.size());
    const auto switches = static_cast<std::int64_t>(tiers.switch_count());
    if (tiers.unknown() * ports > most_steps_ || tiers.unknown() * switches > kMostDistances)
      throw LimitError("the links of this fabric that are up do not form tiers, and it is too large to search " +
                       std::to_string(tiers.unknown()) +
                       " destinations one by one; let fewer links fail, or take a smaller fabric");
  }

  /// Hops from each switch to the attachment; `kNowhere` where there is no path.
  const IdVector<SwitchId, std::int16_t>& to(const FabricView& fabric, const Tiers& tiers, AttachmentId attachment,
                                             NodeId node) {
    IdVector<SwitchId, std::int16_t>& distance = distance_[attachment];
    if (!distance.empty()) return distance;
    distance.assign(tiers.switch_count(), kNowhere);
    frontier_.assign(1, node);
    distance[tiers.switch_of(node)] = 0;
    for (std::size_t at = 0; at < frontier_.size(); ++at) {
      const NodeId from = frontier_[at];
      const auto hops = static_cast<std::int16_t>(distance[tiers.switch_of(from)] + std::int16_t{1});
      for (const PortId p : fabric.ports_of(from)) {
        if (!tiers.is_live(p)) continue;
        const NodeId next = fabric.next(p);
        if (!fabric.is_switch(next)) continue;
        std::int16_t& known = distance[tiers.switch_of(next)];
        if (known != kNowhere) continue;
        known = hops;
        frontier_.push_back(next);
      }
    }
    return distance;
  }

 private:
  std::int64_t most_steps_;
  IdVector<AttachmentId, IdVector<SwitchId, std::int16_t>> distance_;  // empty: not searched yet
  std::vector<NodeId> frontier_;
};

}  // namespace weftwork::flow

/// Routes of a fabric of tiers, without a table for each destination. They follow from the leaves below each switch. A
/// fabric is tiered where links between switches join neighbouring tiers, servers hang on tier 1, two switches of one
/// tier have the same leaves below them or none in common, and all parents of a switch reach the same tiers above. Then
/// the shortest paths go straight up until the leaf is below and straight down, and every port upwards is a candidate.
/// Source: folded Clos as Al-Fares et al., SIGCOMM 2008, doi:10.1145/1402958.1402967; topology/routing.py finds the
/// same candidates by search, and tests/laws/test_flow_paths.py holds the two together.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "flow/fabric_view.hpp"
#include "flow/ids.hpp"

namespace weftwork::flow {

/// Candidate ports, ascending.
using Candidates = std::span<const PortId>;

class Tiers {
 public:
  explicit Tiers(const FabricView& fabric) : fabric_(fabric) {
    number_switches();
    is_tiered_ = find_pods() && same_reach();
    if (is_tiered_) make_chains();
    live_.assign(fabric_.port_node.size(), 1);
    use_live();
  }

  /// Follow other links: `live` by port, alike at both ends of a link.
  void use(std::span<const std::uint8_t> live) {
    live_.items().assign(live.begin(), live.end());
    use_live();
  }

  [[nodiscard]] bool is_live(PortId port) const { return live_[port] != 0; }
  /// Attachments: the switches at which hosts hang, ascending, as in topology/routing.py.
  [[nodiscard]] auto attachments() const { return attach_node_.ids(); }
  [[nodiscard]] std::size_t attachment_count() const { return attach_node_.size(); }
  [[nodiscard]] AttachmentId attachment(NodeId node) const { return attach_of_[node]; }
  [[nodiscard]] auto switches() const { return switch_node_.ids(); }
  [[nodiscard]] std::size_t switch_count() const { return switch_node_.size(); }
  [[nodiscard]] NodeId node_of(SwitchId index) const { return switch_node_[index]; }
  [[nodiscard]] NodeId node_of(AttachmentId attachment) const { return attach_node_[attachment]; }
  [[nodiscard]] SwitchId switch_of(NodeId node) const { return switch_of_[node]; }
  /// Whether `candidates` knows this destination; else a search has to (it is not below its parents alone).
  [[nodiscard]] bool knows(AttachmentId attachment) const { return is_tiered_ && searched_[attachment] == 0; }
  /// Destinations that `candidates` does not know.
  [[nodiscard]] std::int64_t unknown() const { return unknown_; }
  /// Whether the leaf is below the switch.
  [[nodiscard]] bool is_above(NodeId node, AttachmentId attachment) const {
    return chain(attachment, fabric_.tier(node)) == pod_of(node);
  }
  [[nodiscard]] PodId pod_of(NodeId node) const { return pod_[node]; }
  /// The pod that has the leaf below it in a tier, or none.
  [[nodiscard]] PodId chain(AttachmentId attachment, std::int32_t tier) const {
    return chain_[chain_place(attachment, tier)];
  }

  /// Ports of a switch on a shortest path to an attachment that is `known`; empty: no path.
  [[nodiscard]] Candidates candidates(NodeId node, AttachmentId attachment) const {
    const SwitchId s = switch_of(node);
    if (!is_above(node, attachment)) return slice(up_begin_[s], row_begin_[s + 1]);
    const PodId child = chain(attachment, fabric_.tier(node) - 1);
    const std::int64_t first = group_ptr_[s];
    const std::int64_t count = group_ptr_[s + 1] - first;
    if (count == 0) return {};
    std::int64_t at = child - group_pod_[first];  // pods mostly follow each other
    if (at < 0 || at >= count || group_pod_[first + at] != child) {
      const auto begin = group_pod_.begin() + first;
      at = std::lower_bound(begin, begin + count, child) - begin;
      if (at == count || group_pod_[first + at] != child) return {};
    }
    const std::int32_t begin = group_begin_[first + at];
    return slice(begin, at + 1 < count ? group_begin_[first + at + 1] : up_begin_[s]);
  }

 private:
  [[nodiscard]] std::size_t chain_place(AttachmentId attachment, std::int32_t tier) const {
    return attachment.index() * static_cast<std::size_t>(tiers_) + static_cast<std::size_t>(tier - 1);
  }
  [[nodiscard]] Candidates slice(std::int32_t begin, std::int32_t end) const {
    return {row_.data() + begin, static_cast<std::size_t>(end - begin)};
  }

  void number_switches() {
    const std::size_t nodes = fabric_.node_kind.size();
    switch_of_.assign(nodes, SwitchId::none());
    attach_of_.assign(nodes, AttachmentId::none());
    IdVector<NodeId, char> attaches(nodes, 0);
    for (const NodeId node : fabric_.nodes()) {
      if (fabric_.is_switch(node)) {
        switch_of_[node] = switch_node_.next_id();
        switch_node_.push_back(node);
        tiers_ = std::max(tiers_, fabric_.tier(node));
      } else {
        for (const PortId p : fabric_.ports_of(node)) attaches[fabric_.next(p)] = 1;
      }
    }
    for (const NodeId node : fabric_.nodes())
      if (attaches[node] != 0 && fabric_.is_switch(node)) {
        attach_of_[node] = attach_node_.next_id();
        attach_node_.push_back(node);
      }
  }

  template <typename Visit>
  void each_switch_port(NodeId node, Visit&& visit) const {
    for (const PortId p : fabric_.ports_of(node))
      if (const NodeId next = fabric_.next(p); fabric_.is_switch(next)) visit(p, next);
  }

  /// Pods of every tier: switches with the same leaves below them. False where the fabric is not tiered.
  bool find_pods() {
    pod_.assign(fabric_.node_kind.size(), PodId::none());
    by_tier_.assign(static_cast<std::size_t>(tiers_) + 1, {});
    for (const NodeId node : switch_node_) {
      const std::int32_t tier = fabric_.tier(node);
      if (tier < 1 || (!attachment(node).is_none() && tier != 1)) return false;
      bool neighbours = true;
      each_switch_port(node, [&](PortId, NodeId next) {
        neighbours = neighbours && (fabric_.tier(next) == tier + 1 || fabric_.tier(next) == tier - 1);
      });
      if (!neighbours) return false;
      by_tier_[tier].push_back(node);
    }
    parent_pod_.assign(static_cast<std::size_t>(tiers_) + 1, {});
    std::size_t below = 0;  // pods of the tier below
    for (std::int32_t tier = 1; tier <= tiers_; ++tier) {
      auto& owner = parent_pod_[tier - 1];
      owner.assign(below, PodId::none());
      IdVector<PodId, std::size_t> size;  // pods below
      if (tier == 1) {                    // attachments first, in their order
        size.resize(attach_node_.size(), 0);
        for (const AttachmentId a : attachments()) pod_[attach_node_[a]] = PodId(a.value);
      }
      std::vector<PodId> children;
      for (const NodeId node : by_tier_[tier]) {
        if (!pod_of(node).is_none()) continue;
        children.clear();
        each_switch_port(node, [&](PortId, NodeId next) {
          if (fabric_.tier(next) < tier) children.push_back(pod_of(next));
        });
        std::sort(children.begin(), children.end());
        children.erase(std::unique(children.begin(), children.end()), children.end());
        const PodId known = children.empty() ? PodId::none() : owner[children.front()];
        for (const PodId child : children)
          if (owner[child] != known) return false;
        if (!known.is_none() && size[known] != children.size()) return false;
        const PodId own = known.is_none() ? size.next_id() : known;  // nothing below: a pod of its own
        if (known.is_none()) size.push_back(children.size());
        for (const PodId child : children) owner[child] = own;
        pod_[node] = own;
      }
      below = size.size();
    }
    parent_pod_[tiers_].assign(below, PodId::none());
    return true;
  }

  /// Tiers that each switch reaches by links upwards, a bit each; false where parents of a switch differ in that, or
  /// where live links reach less than all links do.
  bool same_reach() {
    const bool all = live_.empty();
    if (tiers_ > 31) return false;
    IdVector<NodeId, std::uint32_t> reach(fabric_.node_kind.size(), 0);
    if (all) full_reach_.assign(reach.size(), 0);
    bool same = true;
    for (std::int32_t tier = tiers_; tier >= 1; --tier)
      for (const NodeId node : by_tier_[tier]) {
        bool first = true;
        std::uint32_t& own = reach[node];
        each_switch_port(node, [&](PortId p, NodeId next) {
          if (fabric_.tier(next) < tier || !(all || is_live(p))) return;
          const std::uint32_t through = reach[next] | 1U << static_cast<unsigned>(fabric_.tier(next));
          same = same && (first || own == through) && (all || through == full_reach_[node]);
          own |= through;
          first = false;
        });
      }
    if (all) full_reach_ = std::move(reach);
    return same;
  }

  void make_chains() {
    chain_.assign(attach_node_.size() * static_cast<std::size_t>(tiers_), PodId::none());
    for (const AttachmentId a : attachments()) {
      PodId own = pod_of(attach_node_[a]);
      for (std::int32_t tier = 1; tier <= tiers_ && !own.is_none(); ++tier) {
        chain_[chain_place(a, tier)] = own;
        own = parent_pod_[tier][own];
      }
    }
  }

  /// Rows of ports of every switch over the live links, and the destinations that they do not lead to as before.
  void use_live() {
    const bool all_known = is_tiered_ && same_reach();
    searched_.assign(attach_node_.size(), all_known ? 0 : 1);
    unknown_ = all_known ? 0 : static_cast<std::int64_t>(attach_node_.size());
    if (!is_tiered_) return;
    row_.clear();
    row_begin_.assign(1, 0);
    up_begin_.assign(0, 0);
    group_ptr_.assign(1, 0);
    group_pod_.clear();
    group_begin_.clear();
    std::vector<IdVector<PodId, char>> hit(static_cast<std::size_t>(tiers_) + 1);  // pods below a dead link, by tier
    for (std::int32_t tier = 1; tier <= tiers_; ++tier) hit[tier].assign(parent_pod_[tier].size(), 0);
    std::vector<std::pair<PodId, PortId>> down;  // pod, port
    for (const NodeId node : switch_node_) {
      const std::int32_t tier = fabric_.tier(node);
      down.clear();
      each_switch_port(node, [&](PortId p, NodeId next) {
        if (fabric_.tier(next) > tier) return;
        if (is_live(p))
          down.emplace_back(pod_of(next), p);
        else
          hit[tier - 1][pod_of(next)] = 1;
      });
      if (!std::is_sorted(down.begin(), down.end())) std::sort(down.begin(), down.end());
      for (const auto& [child, port] : down) {
        if (std::cmp_equal(group_ptr_.back(), group_pod_.size()) || group_pod_.back() != child) {
          group_pod_.push_back(child);
          group_begin_.push_back(static_cast<std::int32_t>(row_.size()));
        }
        row_.push_back(port);
      }
      group_ptr_.push_back(static_cast<std::int64_t>(group_pod_.size()));
      up_begin_.push_back(static_cast<std::int32_t>(row_.size()));
      each_switch_port(node, [&](PortId p, NodeId next) {
        if (fabric_.tier(next) > tier && is_live(p)) row_.push_back(p);
      });
      row_begin_.push_back(static_cast<std::int32_t>(row_.size()));
    }
    for (const AttachmentId a : attachments())
      for (std::int32_t tier = 1; tier <= tiers_; ++tier)
        if (const PodId own = chain(a, tier); !own.is_none() && hit[tier][own] != 0) {
          unknown_ += searched_[a] == 0 ? 1 : 0;
          searched_[a] = 1;
          break;
        }
  }

  FabricView fabric_;
  IdVector<NodeId, SwitchId> switch_of_;
  IdVector<SwitchId, NodeId> switch_node_;
  IdVector<NodeId, AttachmentId> attach_of_;
  IdVector<AttachmentId, NodeId> attach_node_;
  std::int32_t tiers_ = 0;
  bool is_tiered_ = false;
  std::vector<std::vector<NodeId>> by_tier_;
  IdVector<NodeId, PodId> pod_;
  std::vector<IdVector<PodId, PodId>> parent_pod_;  // by tier and pod: the pod above
  std::vector<PodId> chain_;                        // by attachment and tier
  IdVector<NodeId, std::uint32_t> full_reach_;
  IdVector<PortId, std::uint8_t> live_;
  IdVector<AttachmentId, std::uint8_t> searched_;
  std::int64_t unknown_ = 0;
  // By switch: ports downwards in groups by pod, then ports upwards; ascending within each.
  std::vector<PortId> row_;
  IdVector<SwitchId, std::int32_t> row_begin_, up_begin_;
  IdVector<SwitchId, std::int64_t> group_ptr_;
  std::vector<PodId> group_pod_;
  std::vector<std::int32_t> group_begin_;
};

}  // namespace weftwork::flow

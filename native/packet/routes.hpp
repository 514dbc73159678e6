/// A table of next hops, read by id: to which group of ports a node sends what goes to an attachment. Beside its
/// shortest paths it may have layers, each with groups of its own; a packet's entropy or word chooses one.
/// Source: docs/models/packet-engine.md, "Route".
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.hpp"
#include "packet/ids.hpp"
#include "paths/way_table.hpp"
#include "rows/packet_run.hpp"

namespace weftwork {

/// Members of a group that are up: places in `RoutingTables::way_ports` and `RoutingTables::candidates`.
struct Ways {
  CandidateId first;
  std::int32_t count = 0;
};

class Routes {
 public:
  static constexpr GroupId kUnreachable{-1};
  static constexpr GroupId kAttached{-2};             // the destination hangs on this very node
  static constexpr std::int64_t kShortestPaths = -1;  // instead of a layer

  Routes(const RouteTable& table, std::size_t nodes)
      : groups_(table.group_of),
        seconds_(table.second_of),
        distances_(table.distance),
        attachments_(table.group_of.size() / nodes),
        first_(table.group_ptr),
        ports_({reinterpret_cast<const PortId*>(table.group_ports.data()), table.group_ports.size()}),
        weights_(table.group_weights),
        layer_groups_(table.layer_group),
        layers_(table.group_of.empty() ? 0 : table.layer_group.size() / table.group_of.size()),
        ways_(table.layer_of, attachments_, table.pinned_ways, table.ways) {}

  [[nodiscard]] GroupId group(NodeId node, AttachmentId attachment) const {
    return GroupId(groups_[place(node, attachment)]);
  }
  /// The group of ports that are on no shortest path; unreachable where there are none, or nobody asks.
  [[nodiscard]] GroupId second(NodeId node, AttachmentId attachment) const {
    return seconds_.empty() ? kUnreachable : GroupId(seconds_[place(node, attachment)]);
  }
  /// Hops over switches; only where somebody asks.
  [[nodiscard]] std::int64_t distance(NodeId node, AttachmentId attachment) const {
    return distances_[place(node, attachment)];
  }
  [[nodiscard]] bool has_layers() const { return layers_ > 0; }
  /// The layer of a packet whose word chooses it.
  [[nodiscard]] std::int64_t layer_by_word(std::int64_t word) const {
    const auto count = static_cast<std::int64_t>(layers_) + 1;
    const std::int64_t rest = word % count;
    return (rest < 0 ? rest + count : rest) - 1;
  }
  /// The layer of a packet from one attachment to another whose entropy chooses a way.
  [[nodiscard]] std::int64_t layer_by_entropy(AttachmentId from, AttachmentId to, std::uint16_t entropy) const {
    const std::span<const std::int32_t> layer = ways_.layer_of(from, to, entropy);
    return layer.empty() ? kShortestPaths : layer.front();
  }
  /// The group of a layer; negative where the shortest paths hold.
  [[nodiscard]] GroupId group_of_layer(std::int64_t layer, NodeId node, AttachmentId attachment) const {
    if (layer < 0) return kUnreachable;
    return GroupId(layer_groups_[static_cast<std::size_t>(layer) * groups_.size() + place(node, attachment)]);
  }
  [[nodiscard]] std::size_t attachments() const { return attachments_; }
  [[nodiscard]] std::size_t groups() const { return first_.size() - 1; }
  [[nodiscard]] CandidateId first(GroupId group) const { return CandidateId(first_[group]); }
  [[nodiscard]] IdRange<CandidateId> candidates() const { return ports_.ids(); }
  [[nodiscard]] PortId port(CandidateId candidate) const { return ports_[candidate]; }
  [[nodiscard]] std::int32_t weight(CandidateId candidate) const { return weights_[candidate]; }

 private:
  [[nodiscard]] std::size_t place(NodeId node, AttachmentId attachment) const {
    return node.index() * attachments_ + attachment.index();
  }

  std::span<const std::int32_t> groups_, seconds_;  // by node, then attachment
  std::span<const std::int16_t> distances_;         // the same
  std::size_t attachments_;
  IdSpan<GroupId, const std::int64_t> first_;  // candidate of each group; one more at the end
  IdSpan<CandidateId, const PortId> ports_;
  IdSpan<CandidateId, const std::int32_t> weights_;
  std::span<const std::int32_t> layer_groups_;  // by layer, then as groups_
  std::size_t layers_;
  WayTable ways_;
};

}  // namespace weftwork

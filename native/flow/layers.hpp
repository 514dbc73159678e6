/// Layers of routes: paths between two switches besides the shortest paths.
/// Source: docs/models/packet-engine.md, "Route". Tables come from weftwork.topology.layers.
/// Leaves out: how ways are found; port selections that choose a layer by a packet's word.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"

namespace weftwork::flow {

/// Ways over the links of one table of routes; all borrowed. N nodes, A attachments.
struct LayerTable {
  std::span<const std::int32_t> next_port;  // (layers, N, A): -1 where the shortest paths hold
  std::span<const std::int32_t> layer_of;   // (A, A, ways): -1 for the shortest paths
  std::int64_t ways = 0, pinned_ways = 0;
};

class Layers {
 public:
  static constexpr std::int32_t kShortest = -1;

  Layers() = default;
  /// `attachment` by node, -1 for those without hosts. `spreads_ways`: every flow takes all ways of its pair alike.
  Layers(std::vector<LayerTable> tables, IdSpan<NodeId, const std::int32_t> attachment, std::size_t attachments,
         bool spreads_ways)
      : tables_(std::move(tables)), attachment_(attachment), attachments_(attachments), spreads_ways_(spreads_ways) {}

  [[nodiscard]] bool empty() const { return tables_.empty(); }
  [[nodiscard]] bool spreads_ways() const { return spreads_ways_; }
  void use(std::size_t table) { table_ = table; }

  /// The layers of a flow from one switch to another, each with an equal share of it.
  [[nodiscard]] std::span<const std::int32_t> of(NodeId from, NodeId to, std::uint16_t entropy) const {
    static constexpr std::int32_t kNone[] = {kShortest};
    const LayerTable& table = tables_[table_];
    const auto pair =
        static_cast<std::size_t>(attachment_[from]) * attachments_ + static_cast<std::size_t>(attachment_[to]);
    const auto ways =
        table.layer_of.subspan(pair * static_cast<std::size_t>(table.ways), static_cast<std::size_t>(table.ways));
    const auto pinned = static_cast<std::size_t>(table.pinned_ways);
    const auto free = ways.subspan(pinned);
    if (!spreads_ways_ && entropy < pinned) return ways.subspan(entropy, 1);
    if (free.empty()) return kNone;
    return spreads_ways_ ? free : free.subspan(entropy % free.size(), 1);
  }

  /// The port of a switch towards another in a layer; none: the shortest paths hold.
  [[nodiscard]] PortId next_port(std::int32_t layer, NodeId node, NodeId goal) const {
    if (layer == kShortest) return PortId::none();
    const auto row = static_cast<std::size_t>(layer) * attachment_.size() + node.index();
    return PortId(tables_[table_].next_port[row * attachments_ + static_cast<std::size_t>(attachment_[goal])]);
  }

 private:
  std::vector<LayerTable> tables_;  // by table of routes
  IdSpan<NodeId, const std::int32_t> attachment_;
  std::size_t attachments_ = 0, table_ = 0;
  bool spreads_ways_ = false;
};

}  // namespace weftwork::flow

/// Layers of routes: paths between two switches besides the shortest paths.
/// Source: docs/models/packet-engine.md, "Route". Tables come from weftwork.topology.layers.
/// Leaves out: how ways are found; port selections that choose a layer by a packet's word.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "paths/way_table.hpp"
#include "rows/flow_run.hpp"

namespace weftwork::flow {

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
    const WayTable ways(table.layer_of, attachments_, table.pinned_ways, table.ways);
    const AttachmentId origin(attachment_[from]), goal(attachment_[to]);
    const auto layers = spreads_ways_ ? ways.free_layers(origin, goal) : ways.layer_of(origin, goal, entropy);
    return layers.empty() ? kNone : layers;
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

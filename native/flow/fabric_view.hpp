/// What routes and links are told of a fabric.
#pragma once
#include <cstdint>

#include "base/ids.hpp"
#include "flow/ids.hpp"
#include "rows/fabric.hpp"
#include "rows/flow_run.hpp"

namespace weftwork::flow {

/// What a router reads of a fabric; borrowed.
struct FabricView : FabricRows {
  [[nodiscard]] auto nodes() const { return node_kind.ids(); }
  [[nodiscard]] auto ports() const { return port_node.ids(); }
  [[nodiscard]] auto ports_of(NodeId node) const { return id_range(first(node), end(node)); }
  [[nodiscard]] bool is_switch(NodeId node) const { return node_kind[node] != 0; }
  [[nodiscard]] std::int32_t tier(NodeId node) const { return node_tier[node]; }
  [[nodiscard]] PortId first(NodeId node) const { return PortId(port_base[node]); }
  [[nodiscard]] PortId end(NodeId node) const { return first(node + 1); }
  [[nodiscard]] NodeId owner(PortId port) const { return port_node[port]; }
  [[nodiscard]] PortId peer(PortId port) const { return port_peer[port]; }
  [[nodiscard]] NodeId next(PortId port) const { return owner(peer(port)); }  // node at the other end
};

}  // namespace weftwork::flow

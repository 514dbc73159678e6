/// What routes and links are told of a fabric.
#pragma once
#include <cstdint>

#include "base/wiring.hpp"
#include "flow/ids.hpp"

namespace weftwork::flow {

/// What a router reads of a fabric; borrowed. N nodes, P ports, as in weftwork.engine.packet_input.
struct FabricView {
  IdSpan<NodeId, const std::int8_t> node_kind;  // 0: host, 1: switch
  IdSpan<NodeId, const std::int8_t> node_tier;
  IdSpan<NodeId, const DeviceId> node_device;
  IdSpan<NodeId, const std::int64_t> port_base;  // (N + 1)
  IdSpan<PortId, const NodeId> port_node;
  IdSpan<PortId, const PortId> port_peer;
  IdSpan<PortId, const std::int64_t> port_rate_bps, port_delay_ps;  // of the direction that leaves the port
  IdSpan<DeviceId, const SwitchRow> switches;

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

/// Failover of NIC ports: one rule for both engines.
/// Source: docs/models/packet-engine.md, "Instants", FAILOVER. Leaves out: when they change (packet/failover.hpp,
/// flow/instants.hpp).
#pragma once
#include <cstddef>

#include "base/ids.hpp"

namespace weftwork {

/// NIC ports at both ends of a queue pair.
struct PortPair {
  PortId source, destination;
};

/// Of the columns from `column` on, cyclic, the first whose two ports work; where there is none, at each end the first
/// port that does; `otherwise` where an end has none. `ports_of(column)` is a PortPair, `works(port)` a bool.
template <typename Works, typename PortsOf>
PortPair working_ports(std::size_t columns, std::size_t column, PortPair otherwise, Works&& works, PortsOf&& ports_of) {
  PortPair apart;
  for (std::size_t step = 0; step < columns; ++step) {
    const PortPair ports = ports_of((column + step) % columns);
    const bool source_works = works(ports.source), destination_works = works(ports.destination);
    if (source_works && destination_works) return ports;
    if (source_works && apart.source.is_none()) apart.source = ports.source;
    if (destination_works && apart.destination.is_none()) apart.destination = ports.destination;
  }
  return apart.source.is_none() || apart.destination.is_none() ? otherwise : apart;
}

}  // namespace weftwork

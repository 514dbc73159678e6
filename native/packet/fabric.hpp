/// Ports, their queues, what is on the wire between them, and the buffers of switches. NIC ports are among the ports.
/// Invariants: a packet stands in the stream of one (port, class), from the reader's position at the far end over
/// `departure` to `tail`; a queue's `bytes` are those of the frames from `departure` to `tail`; an ingress's `used` and
/// `headroom_used` are what packets that came in by it hold of their switch, and `shared_used` of the switch is what
/// exceeds the reserves.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "packet/containers.hpp"
#include "packet/ids.hpp"
#include "packet/input.hpp"
#include "packet/packet.hpp"
#include "packet/path_load.hpp"
#include "packet/port_records.hpp"
#include "packet/rate_table.hpp"
#include "packet/setup.hpp"

namespace weftwork {

struct Fabric {
  PacketPool pool;
  std::int64_t interframe_bytes;
  // Ports.
  IdVector<PortId, Port> ports;
  IdVector<PortId, std::int64_t> rate_bps;
  RateTable rates;                   // empty without telemetry
  IdVector<PortId, PortLoad> loads;  // of switches' ports; empty where no policy asks for loads of paths
  IdVector<PortId, double> loss;     // probability that a packet that leaves the port is lost
  IdVector<PortId, Fifo<ControlFrame>> frames_waiting;      // to be sent
  IdVector<PortId, Fifo<ControlFrame>> frames_inbound;      // on the wire towards this port
  IdVector<PortId, std::vector<Ps>> inexact_serialisation;  // filled on demand; only where ps_per_byte is 0
  // One traffic class at one port.
  IdVector<QueueId, Queue> queues;
  IdVector<QueueId, QueueControl> queue_controls;
  IdVector<QueueId, Packet*> inbound;  // next packet on the wire towards this port
  IdVector<QueueId, Ingress> ingresses;
  IdVector<QueueId, CreditLane> credit_lanes;  // empty without credits between links
  // Switches.
  IdVector<SwitchId, SwitchNode> switches;
  IdVector<NodeId, SwitchId> switch_of_node;  // none for hosts
  std::int64_t paused_ingresses = 0;          // of all switches

  Fabric(const Input& input, std::size_t stride) : pool(stride), interframe_bytes(input.transport.interframe_bytes) {}

  /// Time on the line of a frame and what follows it.
  [[gnu::always_inline]] Ps serialisation(const Port& port, std::int64_t frame_bytes) {
    const std::int64_t bytes = frame_bytes + interframe_bytes;
    if (port.ps_per_byte != 0) [[likely]]
      return bytes * port.ps_per_byte;
    return inexact(ports.id_of(port), bytes);
  }
  [[gnu::noinline]] Ps inexact(PortId port, std::int64_t bytes) {
    std::vector<Ps>& known = inexact_serialisation[port];
    const auto index = static_cast<std::size_t>(bytes);
    if (known.size() <= index) known.resize(index + 1, kOff);
    if (known[index] == kOff) known[index] = serialisation_ps(bytes, rate_bps[port]);
    return known[index];
  }
};

/// Bytes of all classes that wait at an egress port.
inline std::int64_t queued_bytes(const Setup& setup, const Fabric& fabric, PortId port) {
  std::int64_t bytes = 0;
  for (const TrafficClass klass : setup.classes()) bytes += fabric.queues[setup.at(port, klass)].bytes;
  return bytes;
}

}  // namespace weftwork

/// Records of ports, of their traffic classes, and of switches. Records that a packet touches are kept small and apart
/// from those that it does not.
#pragma once
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "packet/ids.hpp"
#include "packet/packet.hpp"
#include "rows/fabric.hpp"
#include "rows/outcome.hpp"
#include "rows/waits.hpp"

namespace weftwork {

/// One class of packets at an egress port: what every enqueue and departure touches.
/// The reader at the far end keeps its own position (`Fabric::inbound`).
struct Queue {
  Packet* tail = nullptr;       // where the next packet is written
  Packet* departure = nullptr;  // first packet that has not departed
  std::int32_t bytes = 0;       // of frames between the two
  std::int32_t max_bytes = 0;
};

/// The rest of a queue, touched where a class is paused or shares a port by weight.
struct QueueControl {
  Ps paused_until_ps = 0;
  std::int64_t deficit = 0;
};

/// One class at a port under credits between links: of what the port sends, and of what it receives.
struct CreditLane {
  std::int64_t credit_bytes = 0;  // that may leave by the port
  std::int64_t owed_bytes = 0;    // that have come in by the port, are gone, and are not given back yet
};

/// What one (ingress port, class) holds of its switch's buffer; at a NIC only `paused` and `refresh_at_ps` are used,
/// and under credits `used`.
struct Ingress {
  std::int32_t used = 0;
  std::int32_t headroom_used = 0;
  std::int32_t max_bytes = 0;  // of both together
  bool paused = false;
  Ps refresh_at_ps = kOff;
};

/// An egress port: what a transmission touches, in one cache line.
struct alignas(64) Port {
  Ps free_at_ps = 0;
  Ps delay_ps = 0;
  std::int64_t ps_per_byte = 0;  // 0: the rate does not divide evenly, see `Fabric::serialisation`
  Ps announced_until_ps = 0;     // the far end knows of arrivals before that instant
  std::int64_t frames = 0;
  std::int64_t bytes = 0;
  NodeId peer_node;
  LocalPort peer_local;       // the far end at its node
  std::uint16_t pending = 0;  // classes with a packet
  std::uint16_t paused = 0;   // classes with paused_until_ps set, may be stale; under credits those that lack some
  std::uint16_t current = 0;  // deficit round robin: class being served
  bool up = true;
  bool frame_waits = false;  // a flow-control frame has not departed
};
static_assert(sizeof(Port) == 64);

struct ControlFrame {
  Ps at_ps;  // arrival
  TrafficClass klass;
  std::int32_t quanta;  // under credits: bytes given back
};

struct SwitchNode {
  std::int64_t shared_used = 0;
  std::int64_t shared_bytes = 0;
  Ps next_due_at_ps = kNeverPs;   // no port can start anything earlier
  std::int32_t in_order_for = 0;  // reasons to keep departures in order: paused ingresses, or credits between links
  DeviceId device;
  AttachmentId edge;                       // that this switch is; none
  std::uint32_t weighted = 0;              // classes that share a port by weight
  std::vector<QueueId> paused;             // ingresses, ascending
  std::vector<std::uint64_t> port_policy;  // state record of port selection
  std::vector<std::uint64_t> port_states;  // its records of the ports, one after the other
};

}  // namespace weftwork

/// The host's processor, one for each NIC port: it has work with each data packet, where it is sent and where it
/// arrives. Source: docs/models/packet-engine.md, "The host's processor".
/// Leaves out: what it waits for, which is the port that sends (pipe) and the host interface (receiver).
#pragma once
#include <cstdint>

#include "base/clock.hpp"
#include "packet/input.hpp"
#include "rows/transport.hpp"

namespace weftwork {

inline bool has_host_processor(const TransportRow& transport) {
  return transport.host_packet_ps > 0 || transport.host_byte_ps > 0;
}

/// Time that it takes for a data packet.
inline Ps host_cost_ps(const TransportRow& transport, std::int64_t payload_bytes) {
  return transport.host_packet_ps + payload_bytes * transport.host_byte_ps / 1000;  // of 1,000 bytes
}

}  // namespace weftwork

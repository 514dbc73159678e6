/// The line behind a port: a packet takes its time on it and arrives, whole, a delay later.
/// Leaves out: flow-control frames, which go first (flow_control), and what is lost on the line (loss).
#pragma once
#include "packet/state.hpp"

namespace weftwork {

/// Hand a packet, filled in the stream of `out`, to the line at `at_ps`; the port is idle.
[[gnu::always_inline]] inline void transmit(State& s, Port& out, Packet* packet, Ps at_ps) {
  out.frames += 1;
  out.bytes += packet->bytes;
  out.free_at_ps = at_ps + s.serialisation(out, packet->bytes);
  packet->at_ps = out.free_at_ps + out.delay_ps;
  s.announce(out, packet->at_ps);
}

}  // namespace weftwork

/// The line behind a port: a packet takes its time on it and arrives, whole, a delay later.
/// Leaves out: flow-control frames, which go first (flow_control), and what is lost on the line (loss).
#pragma once
#include "base/clock.hpp"
#include "base/invariant.hpp"
#include "packet/fabric.hpp"
#include "packet/packet.hpp"
#include "packet/port_records.hpp"
#include "packet/schedule.hpp"

namespace weftwork {

/// Hand a packet, filled in the stream of `out`, to the line at `at_ps`; the port is idle.
[[gnu::always_inline]] inline void transmit(Fabric& fabric, Schedule& schedule, Port& out, Packet* packet, Ps at_ps) {
  must_hold(out.up && out.free_at_ps <= at_ps, Invariant::line_carries_one_frame_at_a_time,
            "at_ps free_at_ps port queue_pair", at_ps, out.free_at_ps, fabric.ports.id_of(out), packet->queue_pair);
  out.frames += 1;
  out.bytes += packet->bytes;
  out.free_at_ps = at_ps + fabric.serialisation(out, packet->bytes);
  packet->at_ps = out.free_at_ps + out.delay_ps;
  schedule.announce(out, packet->at_ps);
}

}  // namespace weftwork

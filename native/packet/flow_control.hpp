/// Priority flow control: frames that wait for the packet in flight, go first and take wire time; quanta, refresh,
/// expiry. Source: IEEE 802.1Qbb; IEEE 802.3 annex 31B (quanta of 512 bit times).
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/agenda.hpp"
#include "packet/capture.hpp"
#include "packet/fabric.hpp"
#include "packet/ids.hpp"
#include "packet/port_records.hpp"
#include "packet/recordings.hpp"
#include "packet/schedule.hpp"
#include "packet/setup.hpp"
#include "rows/outcome.hpp"

namespace weftwork {

inline constexpr std::int64_t kQuantumBytes = 64;  // 512 bit times

inline Ps pause_ps(const Fabric& fabric, PortId port, std::int64_t quanta) {
  return serialisation_ps(kQuantumBytes * quanta, fabric.rate_bps[port]);
}

/// Put the first waiting frame of `port` on the wire at `at_ps`; the port is idle.
inline void start_frame(const Setup& setup, Fabric& fabric, Schedule& schedule, Recordings& recordings, PortId port,
                        Ps at_ps) {
  Port& out = fabric.ports[port];
  auto& waiting = fabric.frames_waiting[port];
  must_hold(!waiting.empty() && out.up && out.free_at_ps <= at_ps, Invariant::line_carries_one_frame_at_a_time,
            "at_ps free_at_ps port waiting", at_ps, out.free_at_ps, port, waiting.size());
  ControlFrame frame = waiting.front();
  waiting.pop();
  if (!recordings.captured.empty()) [[unlikely]]
    capture_frame(setup, recordings, port, frame, at_ps);
  out.frame_waits = !waiting.empty();
  out.free_at_ps = at_ps + fabric.serialisation(out, setup.in.transport.pause_frame_bytes);
  frame.at_ps = out.free_at_ps + out.delay_ps;
  must_hold(frame.at_ps > at_ps, Invariant::time_never_runs_back, "at_ps arrives_at_ps port", at_ps, frame.at_ps, port);
  PortCounters& counters = recordings.port_counters[port];
  if (setup.link_credits) {
    counters.credit_frames += 1;
  } else {
    (frame.quanta > 0 ? counters.pauses_sent : counters.resumes_sent) += 1;
    recordings.note(at_ps, frame.quanta > 0 ? EventKind::kPause : EventKind::kResume, port.value, frame.klass.value);
  }
  fabric.frames_inbound[setup.peer_of(port)].push(frame);
  schedule.announce_frame(out, frame.at_ps);
}

/// Ask the far end of `port` to pause one class, or with 0 quanta to resume it. The port's owner starts the frame.
inline void queue_frame(const Setup& setup, Fabric& fabric, Schedule& schedule, PortId port, TrafficClass klass,
                        std::int64_t quanta) {
  Port& out = fabric.ports[port];
  must_hold(setup.link_credits ? quanta > 0 : quanta >= 0 && contains(setup.lossless, klass),
            Invariant::pause_only_where_lossless, "port class quanta", port, klass, quanta);
  must_hold(out.up, Invariant::line_carries_one_frame_at_a_time, "port class quanta free_at_ps", port, klass, quanta,
            out.free_at_ps);
  fabric.frames_waiting[port].push({0, klass, static_cast<std::int32_t>(quanta)});
  out.frame_waits = true;
  schedule.set_outbound(setup.local_port(port, setup.in.port_node[port]), setup.in.port_node[port], true);
}

/// Set the refresh of a pause that was sent at `at_ps`.
inline void schedule_refresh(const Setup& setup, Fabric& fabric, Schedule& schedule, NodeId node, PortId port,
                             TrafficClass klass, std::int64_t quanta, Ps at_ps) {
  Ingress& ingress = fabric.ingresses[setup.at(port, klass)];
  must_hold(ingress.paused && quanta > 0, Invariant::pause_is_counted_once, "at_ps port class quanta", at_ps, port,
            klass, quanta);
  must_hold(contains(setup.lossless, klass), Invariant::pause_only_where_lossless, "at_ps port class quanta", at_ps,
            port, klass, quanta);
  ingress.refresh_at_ps = at_ps + pause_ps(fabric, port, quanta) / 2;
  schedule.agendas[node].push(ingress.refresh_at_ps,
                              port_key(AgendaKind::kPauseRefresh, setup.local_port(port), klass.index()));
}

/// A frame arrives at `port`: the class stops, or goes on, or may send more.
inline void obey_frame(const Setup& setup, Fabric& fabric, Recordings& recordings, PortId port,
                       const ControlFrame& frame, Ps at_ps) {
  if (setup.link_credits) {
    std::int64_t& credit_bytes = fabric.credit_lanes[setup.at(port, frame.klass)].credit_bytes;
    credit_bytes += frame.quanta;
    must_hold(frame.quanta >= 0 && credit_bytes <= setup.in.port_credit_bytes[setup.peer_of(port)],
              Invariant::credits_never_negative, "at_ps port class credit_bytes room_bytes", at_ps, port, frame.klass,
              credit_bytes, setup.in.port_credit_bytes[setup.peer_of(port)]);
    return;
  }
  QueueControl& queue = fabric.queue_controls[setup.at(port, frame.klass)];
  Port& out = fabric.ports[port];
  PortCounters& counters = recordings.port_counters[port];
  const auto mask = static_cast<std::uint16_t>(bit_of(frame.klass));
  if (frame.quanta > 0) {
    must_hold(contains(setup.lossless, frame.klass), Invariant::pause_only_where_lossless, "at_ps port class quanta",
              at_ps, port, frame.klass, frame.quanta);
    const Ps until = at_ps + pause_ps(fabric, port, frame.quanta);
    counters.paused_ps += until - std::max(at_ps, queue.paused_until_ps);
    queue.paused_until_ps = until;
    out.paused |= mask;
  } else {
    if (queue.paused_until_ps > at_ps) counters.paused_ps -= queue.paused_until_ps - at_ps;
    queue.paused_until_ps = at_ps;
    out.paused &= static_cast<std::uint16_t>(~mask);
  }
  must_hold(counters.paused_ps >= 0, Invariant::time_never_runs_back, "at_ps port class paused_ps", at_ps, port,
            frame.klass, counters.paused_ps);
}

}  // namespace weftwork

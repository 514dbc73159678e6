/// Priority flow control: frames that wait for the packet in flight, go first and take wire time; quanta, refresh,
/// expiry. Source: IEEE 802.1Qbb; IEEE 802.3 annex 31B (quanta of 512 bit times).
#pragma once
#include <algorithm>

#include "packet/capture.hpp"
#include "packet/state.hpp"

namespace weftwork {

inline constexpr std::int64_t kQuantumBytes = 64;  // 512 bit times

inline Ps pause_ps(const State& s, PortId port, std::int64_t quanta) {
  return serialisation_ps(kQuantumBytes * quanta, s.rate_bps[port]);
}

/// Put the first waiting frame of `port` on the wire at `at_ps`; the port is idle.
inline void start_frame(State& s, PortId port, Ps at_ps) {
  Port& out = s.ports[port];
  auto& waiting = s.frames_waiting[port];
  ControlFrame frame = waiting.front();
  waiting.pop();
  if (!s.captured.empty()) [[unlikely]]
    capture_frame(s, port, frame, at_ps);
  out.frame_waits = !waiting.empty();
  out.free_at_ps = at_ps + s.serialisation(out, s.in.transport.pause_frame_bytes);
  frame.at_ps = out.free_at_ps + out.delay_ps;
  PortCounters& counters = s.port_counters[port];
  if (s.link_credits) {
    counters.credit_frames += 1;
  } else {
    (frame.quanta > 0 ? counters.pauses_sent : counters.resumes_sent) += 1;
    s.note(at_ps, frame.quanta > 0 ? EventKind::kPause : EventKind::kResume, port.value, frame.klass.value);
  }
  s.frames_inbound[s.peer_of(port)].push(frame);
  s.announce_frame(out, frame.at_ps);
}

/// Ask the far end of `port` to pause one class, or with 0 quanta to resume it. The port's owner starts the frame.
inline void queue_frame(State& s, PortId port, TrafficClass klass, std::int64_t quanta) {
  Port& out = s.ports[port];
  s.frames_waiting[port].push({0, klass, static_cast<std::int32_t>(quanta)});
  out.frame_waits = true;
  s.set_outbound(port, s.in.port_node[port], true);
}

/// Set the refresh of a pause that was sent at `at_ps`.
inline void schedule_refresh(State& s, NodeId node, PortId port, TrafficClass klass, std::int64_t quanta, Ps at_ps) {
  Ingress& ingress = s.ingresses[s.at(port, klass)];
  ingress.refresh_at_ps = at_ps + pause_ps(s, port, quanta) / 2;
  s.agendas[node].push(ingress.refresh_at_ps, port_key(AgendaKind::kPauseRefresh, s.local_port(port), klass.index()));
}

/// A frame arrives at `port`: the class stops, or goes on, or may send more.
inline void obey_frame(State& s, PortId port, const ControlFrame& frame, Ps at_ps) {
  if (s.link_credits) {
    s.credit_lanes[s.at(port, frame.klass)].credit_bytes += frame.quanta;
    return;
  }
  QueueControl& queue = s.queue_controls[s.at(port, frame.klass)];
  Port& out = s.ports[port];
  PortCounters& counters = s.port_counters[port];
  const auto mask = static_cast<std::uint16_t>(bit_of(frame.klass));
  if (frame.quanta > 0) {
    const Ps until = at_ps + pause_ps(s, port, frame.quanta);
    counters.paused_ps += until - std::max(at_ps, queue.paused_until_ps);
    queue.paused_until_ps = until;
    out.paused |= mask;
  } else {
    if (queue.paused_until_ps > at_ps) counters.paused_ps -= queue.paused_until_ps - at_ps;
    queue.paused_until_ps = at_ps;
    out.paused &= static_cast<std::uint16_t>(~mask);
  }
}

}  // namespace weftwork

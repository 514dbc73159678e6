/// Faults and their consequences at given instants: states of links, slow hosts, routes, ports of queue pairs.
#pragma once
#include "packet/failover.hpp"
#include "packet/switch.hpp"

namespace weftwork {

inline bool is_host(const State& s, NodeId node) {
  return s.in.node_kind[node] == 0;
}

inline void set_rate(State& s, PortId port, std::int64_t rate) {
  s.rate_bps[port] = rate;
  if (s.in.has_telemetry) s.rates.set(port, rate);
  s.ports[port].ps_per_byte = 8 * kSecondPs % rate == 0 ? 8 * kSecondPs / rate : 0;
  s.inexact_serialisation[port].clear();
}

/// What is on the wire towards `port` will never arrive.
inline void lose_inbound(State& s, PortId port) {
  s.frames_inbound[port].clear();
  const PortId peer = s.peer_of(port);
  for (const TrafficClass klass : s.classes())
    for (Packet* packet = s.inbound[s.at(port, klass)]; packet != s.queues[s.at(peer, klass)].departure;
         packet = s.pool.next(packet))
      packet->flags = with(packet->flags, kLost);
}

/// Packets that wait at a dead port are dropped. They stay in the stream, where the reader passes over them.
inline void flush_queue(State& s, NodeId node, PortId port, TrafficClass klass, Ps now_ps) {
  Queue& queue = s.queues[s.at(port, klass)];
  if (queue.departure == queue.tail) return;
  const bool host = is_host(s, node);
  for (Packet* packet = queue.departure; packet != queue.tail; packet = s.pool.next(packet)) {
    drop(s, port, s.count.drop_link_down, now_ps);
    if (!host) {
      const SwitchView view = switch_view(s, node);
      release(view, view.ingresses[LocalQueueId(packet->ingress)], packet->bytes);
      if (s.link_credits) return_credit(s, view.node, lane_of(s, node, *packet), packet->bytes, now_ps);
    }
    packet->at_ps = kFlushedPs;
  }
  queue.departure = queue.tail;
  queue.bytes = 0;
  s.queue_controls[s.at(port, klass)].deficit = 0;
}

inline void bring_down(State& s, PortId port, Ps now_ps) {
  const NodeId node = s.in.port_node[port];
  Port& out = s.ports[port];
  out.up = false;
  for (const TrafficClass klass : s.classes()) {
    flush_queue(s, node, port, klass, now_ps);
    obey_frame(s, port, {now_ps, klass, 0}, now_ps);
    Ingress& ingress = s.ingresses[s.at(port, klass)];
    if (!is_host(s, node)) {
      const SwitchView view = switch_view(s, node);
      if (ingress.paused) {
        auto& paused = view.node.paused;
        paused.erase(std::find(paused.begin(), paused.end(), s.at(port, klass)));
        view.node.in_order_for -= 1;
        s.paused_ingresses -= 1;
      }
      fold_headroom(view, ingress);
    }
    ingress.paused = false;
    ingress.refresh_at_ps = kOff;
  }
  if (is_host(s, node)) nic_of(s, port).pauses = false;
  out.pending = 0;
  if (s.link_credits) out.paused = 0;
  out.frame_waits = false;
  s.frames_waiting[port].clear();
  s.set_outbound(port, node, false);
  s.due_at_ps[port] = kNeverPs;
}

/// Everything of a node that departs up to and at `at_ps`.
inline void drain_node(State& s, NodeId node, Ps at_ps) {
  if (is_host(s, node)) {
    for (const PortId port : s.ports_of(node)) drain_nic(s, port, at_ps);
  } else {
    drain_switch(s, switch_view(s, node), at_ps);
  }
}

inline void bring_up(State& s, PortId port, Ps now_ps) {
  const NodeId node = s.in.port_node[port];
  Port& out = s.ports[port];
  out.up = true;
  if (s.link_credits) renew_credits(s, port);
  if (is_host(s, node))
    kick_nic(s, port, now_ps);
  else
    set_due(s, switch_view(s, node).node, port, switch_due(s, out, port));
}

/// A link goes down, comes up or has another rate.
inline void change_link(State& s, const InstantRow& instant) {
  const auto code = static_cast<InstantCode>(instant.code);
  const PortId port(instant.port);
  const Ps now_ps = instant.at_ps;
  const PortId ends[2] = {port, s.peer_of(port)};
  for (const PortId end : ends) drain_node(s, s.in.port_node[end], now_ps);
  if (code == InstantCode::kLinkDown)
    for (const PortId end : ends) lose_inbound(s, end);
  for (const PortId end : ends) {
    const NodeId node = s.in.port_node[end];
    if (code == InstantCode::kLinkDown) {
      bring_down(s, end, now_ps);
      if (!is_host(s, node) && !s.link_credits) test_resume(s, switch_view(s, node), now_ps);
    } else if (code == InstantCode::kLinkUp) {
      bring_up(s, end, now_ps);
    } else {
      set_rate(s, end, instant.value);
    }
    s.calendar.schedule(node, now_ps);
  }
  use_routes(s, s.route_table);
}

inline void apply_instant(State& s, const InstantRow& instant) {
  constexpr double kLossParts = 1e9;  // weftwork.engine.instants.LOSS_PARTS
  const PortId port(instant.port);
  switch (static_cast<InstantCode>(instant.code)) {
    case InstantCode::kLinkDown:
    case InstantCode::kLinkUp:
    case InstantCode::kRate:
      change_link(s, instant);
      return;
    case InstantCode::kRoutes:
      use_routes(s, RouteTableId(instant.value));
      return;
    case InstantCode::kLoss:
      for (const PortId end : {port, s.peer_of(port)}) s.loss[end] = static_cast<double>(instant.value) / kLossParts;
      return;
    case InstantCode::kHostRate:
      nic_of(s, port).pcie_rate_bps = instant.value;
      nic_of(s, port).has_host_interface = true;
      return;
    case InstantCode::kFailover:
      fail_over(s, instant.at_ps);
      return;
  }
}

}  // namespace weftwork

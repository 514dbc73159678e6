/// Faults and their consequences at given instants: states of links, slow hosts, routes, ports of queue pairs.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/buffer.hpp"
#include "packet/credits.hpp"
#include "packet/departures.hpp"
#include "packet/fabric.hpp"
#include "packet/failover.hpp"
#include "packet/flow_control.hpp"
#include "packet/ids.hpp"
#include "packet/loss.hpp"
#include "packet/packet.hpp"
#include "packet/pipe.hpp"
#include "packet/port_records.hpp"
#include "packet/recordings.hpp"
#include "packet/routing.hpp"
#include "packet/schedule.hpp"
#include "packet/scheduling.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "packet/switch.hpp"
#include "rows/fabric.hpp"

namespace weftwork {

inline bool is_host(const Setup& setup, NodeId node) {
  return setup.in.node_kind[node] == 0;
}

inline void set_rate(const Setup& setup, Fabric& fabric, PortId port, std::int64_t rate) {
  must_hold(rate > 0, Invariant::line_carries_one_frame_at_a_time, "port rate_bps", port, rate);
  fabric.rate_bps[port] = rate;
  if (setup.in.has_telemetry) fabric.rates.set(port, rate);
  fabric.ports[port].ps_per_byte = 8 * kSecondPs % rate == 0 ? 8 * kSecondPs / rate : 0;
  fabric.inexact_serialisation[port].clear();
}

/// What is on the wire towards `port` will never arrive.
inline void lose_inbound(const Setup& setup, Fabric& fabric, PortId port) {
  fabric.frames_inbound[port].clear();
  const PortId peer = setup.peer_of(port);
  for (const TrafficClass klass : setup.classes())
    for (Packet* packet = fabric.inbound[setup.at(port, klass)];
         packet != fabric.queues[setup.at(peer, klass)].departure; packet = fabric.pool.next(packet))
      packet->flags = with(packet->flags, kLost);
}

/// Packets that wait at a dead port are dropped. They stay in the stream, where the reader passes over them.
inline void flush_queue(const Setup& setup, Fabric& fabric, Schedule& schedule, Recordings& recordings, NodeId node,
                        PortId port, TrafficClass klass, Ps now_ps) {
  Queue& queue = fabric.queues[setup.at(port, klass)];
  if (queue.departure == queue.tail) return;
  std::int64_t flushed_bytes = 0;
  const bool host = is_host(setup, node);
  for (Packet* packet = queue.departure; packet != queue.tail; packet = fabric.pool.next(packet)) {
    must_hold(packet->at_ps == kNeverPs, Invariant::queue_holds_what_it_counts, "at_ps port class arrives_at_ps",
              now_ps, port, klass, packet->at_ps);
    drop(recordings, port, recordings.count.drop_link_down, now_ps);
    if (!host) {
      const SwitchView view = switch_view(setup, fabric, node);
      release(view, view.ingresses[LocalQueueId(packet->ingress)], packet->bytes);
      if (setup.link_credits)
        return_credit(setup, fabric, schedule, recordings, view.node, lane_of(setup, node, *packet), packet->bytes,
                      now_ps);
    }
    flushed_bytes += packet->bytes;
    packet->at_ps = kFlushedPs;
  }
  must_hold(flushed_bytes == queue.bytes, Invariant::queue_holds_what_it_counts,
            "at_ps port class flushed_bytes queue_bytes", now_ps, port, klass, flushed_bytes, queue.bytes);
  queue.departure = queue.tail;
  queue.bytes = 0;
  fabric.queue_controls[setup.at(port, klass)].deficit = 0;
}

inline void bring_down(State& s, PortId port, Ps now_ps) {
  const NodeId node = s.setup.in.port_node[port];
  Port& out = s.fabric.ports[port];
  out.up = false;
  for (const TrafficClass klass : s.setup.classes()) {
    flush_queue(s.setup, s.fabric, s.schedule, s.recordings, node, port, klass, now_ps);
    obey_frame(s.setup, s.fabric, s.recordings, port, {now_ps, klass, 0}, now_ps);
    Ingress& ingress = s.fabric.ingresses[s.setup.at(port, klass)];
    if (!is_host(s.setup, node)) {
      const SwitchView view = switch_view(s.setup, s.fabric, node);
      if (ingress.paused) {
        auto& paused = view.node.paused;
        must_hold(std::find(paused.begin(), paused.end(), s.setup.at(port, klass)) != paused.end(),
                  Invariant::pause_is_counted_once, "at_ps port class listed", now_ps, port, klass, paused.size());
        paused.erase(std::find(paused.begin(), paused.end(), s.setup.at(port, klass)));
        view.node.in_order_for -= 1;
        s.fabric.paused_ingresses -= 1;
        must_hold(std::cmp_equal(view.node.in_order_for, paused.size()), Invariant::pause_is_counted_once,
                  "at_ps port class listed counted_at_node", now_ps, port, klass, paused.size(),
                  view.node.in_order_for);
        must_hold(s.fabric.paused_ingresses >= 0 && view.node.in_order_for >= 0, Invariant::pause_is_counted_once,
                  "at_ps port class counted", now_ps, port, klass, s.fabric.paused_ingresses);
      }
      fold_headroom(view, ingress);
    }
    ingress.paused = false;
    ingress.refresh_at_ps = kOff;
  }
  must_hold(queued_bytes(s.setup, s.fabric, port) == 0, Invariant::queue_holds_what_it_counts, "at_ps port queue_bytes",
            now_ps, port, queued_bytes(s.setup, s.fabric, port));
  if (is_host(s.setup, node)) nic_of(s.hosts, port).pauses = false;
  out.pending = 0;
  if (s.setup.link_credits) out.paused = 0;
  out.frame_waits = false;
  s.fabric.frames_waiting[port].clear();
  s.schedule.set_outbound(s.setup.local_port(port, node), node, false);
  s.schedule.due_at_ps[port] = kNeverPs;
}

/// Everything of a node that departs up to and at `at_ps`.
inline void drain_node(State& s, NodeId node, Ps at_ps) {
  if (is_host(s.setup, node)) {
    for (const PortId port : s.setup.ports_of(node)) drain_nic(s, port, at_ps);
  } else {
    drain_switch(s, switch_view(s.setup, s.fabric, node), at_ps);
  }
}

inline void bring_up(State& s, PortId port, Ps now_ps) {
  const NodeId node = s.setup.in.port_node[port];
  Port& out = s.fabric.ports[port];
  must_hold(out.up || s.schedule.due_at_ps[port] == kNeverPs, Invariant::line_carries_one_frame_at_a_time,
            "at_ps port due_at_ps", now_ps, port, s.schedule.due_at_ps[port]);
  must_hold(out.up || (!out.frame_waits && (out.pending == 0 || is_host(s.setup, node))),
            Invariant::line_carries_one_frame_at_a_time, "at_ps port pending frame_waits", now_ps, port, out.pending,
            out.frame_waits);
  out.up = true;
  if (s.setup.link_credits) renew_credits(s.setup, s.fabric, port);
  if (is_host(s.setup, node))
    kick_nic(s, port, now_ps);
  else
    set_due(s.schedule, switch_view(s.setup, s.fabric, node).node, port, switch_due(s.setup, s.fabric, out, port));
}

/// A link goes down, comes up or has another rate.
inline void change_link(State& s, const InstantRow& instant) {
  const auto code = static_cast<InstantCode>(instant.code);
  const PortId port(instant.port);
  const Ps now_ps = instant.at_ps;
  const PortId ends[2] = {port, s.setup.peer_of(port)};
  for (const PortId end : ends) drain_node(s, s.setup.in.port_node[end], now_ps);
  if (code == InstantCode::kLinkDown)
    for (const PortId end : ends) lose_inbound(s.setup, s.fabric, end);
  for (const PortId end : ends) {
    const NodeId node = s.setup.in.port_node[end];
    if (code == InstantCode::kLinkDown) {
      bring_down(s, end, now_ps);
      if (!is_host(s.setup, node) && !s.setup.link_credits)
        test_resume(s.setup, s.fabric, s.schedule, s.recordings, switch_view(s.setup, s.fabric, node), now_ps);
    } else if (code == InstantCode::kLinkUp) {
      bring_up(s, end, now_ps);
    } else {
      set_rate(s.setup, s.fabric, end, instant.value);
    }
    s.schedule.calendar.schedule(node, now_ps);
  }
  use_routes(s.setup, s.fabric, s.routing, s.routing.route_table);
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
      use_routes(s.setup, s.fabric, s.routing, RouteTableId(instant.value));
      return;
    case InstantCode::kLoss:
      for (const PortId end : {port, s.setup.peer_of(port)})
        s.fabric.loss[end] = static_cast<double>(instant.value) / kLossParts;
      return;
    case InstantCode::kHostRate:
      nic_of(s.hosts, port).pcie_rate_bps = instant.value;
      nic_of(s.hosts, port).has_host_interface = true;
      return;
    case InstantCode::kFailover:
      fail_over(s, instant.at_ps);
      return;
  }
}

}  // namespace weftwork

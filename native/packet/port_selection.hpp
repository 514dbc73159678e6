/// Calls of a port selection: the signal, the candidates, and what the step has written.
/// Source: docs/models/packet-engine.md, "Signals" and "Route". Leaves out: which ports are candidates (routing).
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/random.hpp"
#include "packet/buffer.hpp"
#include "packet/credits.hpp"
#include "packet/departures.hpp"
#include "packet/hashing.hpp"
#include "packet/ids.hpp"
#include "packet/packet.hpp"
#include "packet/policy.hpp"
#include "packet/policy_calls.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/routing_tables.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "packet/step_calls.hpp"
#include "paths/detours.hpp"
#include "rows/policies.hpp"

namespace weftwork {

/// Where a packet leaves a switch: a port, or none, and the class of its queue there.
struct Egress {
  PortId port;
  TrafficClass klass;
};

/// What a port selection is asked.
struct PortQuestion {
  Candidate* candidates;
  std::int32_t count;
  AttachmentId target;
  const PortId* ports = nullptr;  // of the candidates, closer together than their rows; null: the rows tell
  bool delivered = false;         // the only candidate leads to the receiver
  std::int64_t via_changes = 0;   // how often it has changed `via` of this packet at this switch
};

/// The port of a candidate.
[[gnu::always_inline]] inline PortId candidate_port(const SwitchView& view, const PortQuestion& question,
                                                    std::int64_t place) {
  if (question.ports != nullptr) [[likely]]
    return question.ports[place];
  return view.first + LocalPort(question.candidates[place].port);
}

/// Fill what is the same for all packets of a switch.
[[gnu::noinline]] inline void describe_switch(const Setup& setup, const RoutingTables& routing, PolicyCalls& calls,
                                              const SwitchView& view) {
  PortSignal& signal = calls.port_signal;
  signal.node = view.id.value;
  signal.tier = setup.in.node_tier[view.id];
  signal.group = setup.in.node_group[view.id];
  signal.ports = static_cast<std::int64_t>(setup.ports_of(view.id).size());
  signal.edge = view.node.edge.value;
  signal.edges = static_cast<std::int64_t>(routing.routes.attachments());
}

inline std::int64_t virtual_channel(const Setup& setup, TrafficClass klass) {
  return klass.value % setup.in.virtual_channels;
}

/// Fill what a port selection asks to know of the queues and ways behind its candidates.
[[gnu::always_inline]] inline void look_at_candidates(State& s, const SwitchView& view, const PortQuestion& question,
                                                      TrafficClass klass, Ps at_ps) {
  const bool reads_paused = s.setup.in.port.paused;
  const Candidate* const end = question.candidates + question.count;
  if (s.setup.in.port.queue) {
    for (Candidate* candidate = question.candidates; candidate != end; ++candidate) {
      const PortId port = view.first + LocalPort(candidate->port);
      drain_port(s, view, port, at_ps);
      candidate->queue_bytes = s.fabric.queues[s.setup.at(port, klass)].bytes;
      if (!reads_paused) continue;
      if (s.setup.link_credits)
        candidate->paused = !has_credit(s.setup, s.fabric, port, klass, s.calls.port_signal.bytes);
      else
        candidate->paused = contains(s.fabric.ports[port].paused, klass) &&
                            s.fabric.queue_controls[s.setup.at(port, klass)].paused_until_ps > at_ps;
    }
  }
  if (s.setup.in.port.channel && question.delivered) {
    question.candidates->channel = question.candidates->turn_channel = s.calls.port_signal.virtual_channel;
  } else if (s.setup.in.port.channel) {
    const std::int64_t in_kind =
        s.setup.in.port_kind[view.first + LocalPort(static_cast<std::int32_t>(s.calls.port_signal.in_port))];
    const std::int64_t held = s.calls.port_signal.virtual_channel, channels = s.setup.in.virtual_channels;
    for (Candidate* candidate = question.candidates; candidate != end; ++candidate) {
      const std::int64_t kind = s.setup.in.port_kind[view.first + LocalPort(candidate->port)];
      candidate->channel = s.setup.in.channels.channel(0, in_kind, held, kind, channels);
      candidate->turn_channel = s.setup.in.channels.channel(1, in_kind, held, kind, channels);
    }
  }
  if (!s.setup.in.port.hops_left) return;
  for (Candidate* candidate = question.candidates; candidate != end; ++candidate) {
    const PortId port = view.first + LocalPort(candidate->port);
    candidate->hops_left = s.routing.routes.distance(s.fabric.ports[port].peer_node, question.target) + 1;
  }
}

/// Fill what a port selection asks to know of detours; `via` and the ends' edges are there.
[[gnu::always_inline]] inline void describe_detour(const Setup& setup, const RoutingTables& routing,
                                                   PolicyCalls& calls) {
  PortSignal& signal = calls.port_signal;
  const Detours& detours = setup.in.detours;
  const auto node_of = [&](std::int64_t edge) { return NodeId(detours.node[static_cast<std::size_t>(edge)]); };
  signal.from_group = setup.in.node_group[node_of(signal.from_edge)];
  signal.detour = detours.pick(signal.from_edge, signal.to_edge, signal.draw);
  signal.queue_pair_detour = detours.pick(signal.from_edge, signal.to_edge, signal.queue_pair_hash);
  signal.via_group = signal.via == kOff ? -1 : setup.in.node_group[node_of(signal.via)];
  signal.hops_after_via = 0;
  if (setup.in.port.hops_left && signal.via != kOff)
    signal.hops_after_via =
        routing.routes.distance(node_of(signal.via), AttachmentId(static_cast<std::int32_t>(signal.to_edge)));
}

/// Ask port selection by which candidate a packet leaves; the packet takes `word` and `via` with it, and its class.
[[gnu::noinline]] inline Egress call_port_selection(State& s, const SwitchView& view, const PortQuestion& question,
                                                    Packet* packet, TrafficClass klass, Ps at_ps) {
  const PortPolicy& policy = s.setup.in.port;
  const std::uint32_t hash = switch_hash(s.setup, s.hosts, s.routing.hash_functions[view.node.device], packet);
  PortSignal& signal = s.calls.port_signal;
  if (signal.node != view.id.value) [[unlikely]]
    describe_switch(s.setup, s.routing, s.calls, view);
  const QueuePair& qp = s.hosts.queue_pairs[packet->queue_pair];
  signal.now_ps = at_ps;
  signal.hash = static_cast<std::int64_t>(hash);
  signal.draw = static_cast<std::int64_t>(
      draw(s.setup.in.seed, Stream::kPortChoice, qp.flow, identity(*packet), view.id.index()) >> 2);
  signal.bytes = packet->bytes;
  signal.candidates = question.count;
  signal.is_data = packet->kind == PacketKind::kData ? 1 : 0;
  signal.destination = s.setup.in.destination_number[packet->destination_port];
  signal.stride = s.setup.in.port_stride[candidate_port(view, question, 0)];
  signal.in_port = s.setup.ingress_port(*packet).value;
  if (policy.origin || policy.detour) {
    signal.queue_pair_hash = static_cast<std::int64_t>(draw(s.setup.in.seed, Stream::kQueuePair, qp.flow, 0, 0) >> 2);
    signal.from_edge = s.setup.in.attachment[origin_port(s.setup, qp, packet)].value;
    signal.to_edge = s.setup.in.attachment[packet->destination_port].value;
  }
  signal.delivered = question.delivered ? 1 : 0;
  signal.choice = 0;
  if (s.setup.extended) signal.hops = counts_switches(*packet) ? extension(packet).hops : 0;
  const std::int64_t channel = s.setup.in.virtual_channels > 1 ? virtual_channel(s.setup, klass) : 0;
  signal.virtual_channel = channel;
  const std::int64_t via = s.setup.wide ? wide(packet).via.value : kOff;
  signal.word = s.setup.wide ? wide(packet).word : 0;
  signal.via = via;
  if (policy.detour) describe_detour(s.setup, s.routing, s.calls);
  if (policy.queue || policy.hops_left || policy.channel) look_at_candidates(s, view, question, klass, at_ps);
  auto* record = reinterpret_cast<std::uint8_t*>(view.node.port_policy.data());
  auto* ports = reinterpret_cast<std::uint8_t*>(view.node.port_states.data());
  const CallRecords records{{record, policy.state.size()},
                            {},
                            bytes_of(&signal),
                            bytes_of(question.candidates, static_cast<std::size_t>(question.count))};
  count_call(s.calls, "port_selection", false, records,
             {{ports, policy.port_state.size() * s.setup.ports_of(view.id).size()}, question.via_changes});
  const std::int32_t status =
      policy.step(const_cast<std::uint8_t*>(policy.params.data()), record, ports, &signal, question.candidates);
  const bool is_refused = status != 0 || signal.choice < 0 || signal.choice >= question.count ||
                          signal.virtual_channel < 0 || signal.virtual_channel >= s.setup.in.virtual_channels ||
                          signal.via < kOff || signal.via >= signal.edges;
  if (is_refused) [[unlikely]]
    stop_with(s.calls, "port_selection", false, {});
  if (s.setup.wide) {
    const std::int64_t ahead = signal.via == signal.edge ? kOff : signal.via;  // one that is this switch is off
    const bool is_kept = question.via_changes == 0 || ahead == via || (question.via_changes == 1 && ahead == kOff);
    if (!is_kept) [[unlikely]]
      stop_with(s.calls, "port_selection", false, {});
    wide(packet).word = signal.word;
    wide(packet).via = AttachmentId(ahead);
  }
  return {candidate_port(view, question, signal.choice),
          klass + static_cast<std::int32_t>(signal.virtual_channel - channel)};
}

}  // namespace weftwork

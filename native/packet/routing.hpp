/// The choice of a packet's port at a switch, among the live ports towards its target.
/// Source: docs/models/packet-engine.md, "Route". Leaves out: what happens to the packet at that port (admission).
#pragma once
#include "packet/port_selection.hpp"

namespace weftwork {

/// From now on packets follow this table; also called when a link has changed, since ports that are down stand aside.
inline void use_routes(State& s, RouteTableId table) {
  s.route_table = table;
  s.routes = Routes(s.in.routes[table], s.in.node_kind.size());
  s.ways.resize(s.routes.groups());
  s.way_ports.resize(s.routes.candidates().size());
  s.candidates.resize(s.routes.candidates().size());
  for (const GroupId group : s.ways.ids()) {
    Ways& ways = s.ways[group];
    ways = {s.routes.first(group), 0};
    for (const CandidateId listed : id_range(ways.first, s.routes.first(group + 1))) {
      const PortId port = s.routes.port(listed);
      if (!s.ports[port].up && !s.in.port.waits_for_routes) continue;
      const CandidateId place = ways.first + ways.count++;
      s.way_ports[place] = port;
      s.candidates[place] = {0, s.rate_bps[port], s.routes.weight(listed), s.local_port(port).value, 0, 0, 1, 0, 0};
    }
  }
}

/// The candidates of one packet: none, and perhaps a port that would be one if it were up; or the question for the
/// step.
struct FoundWays {
  PortQuestion question;
  PortId down;
};

/// The candidate that leads to the receiver's NIC port, if this is its switch and the port is up.
inline FoundWays way_to_receiver(State& s, PortId port, AttachmentId target) {
  if (!s.ports[port].up) return {{nullptr, 0, target}, port};
  s.joined_candidates.assign(1, {0, s.rate_bps[port], 1, s.local_port(port).value, 0, 0, 1, 0, 0});
  return {{s.joined_candidates.data(), 1, target, nullptr, true}, PortId::none()};
}

/// The layer of routes that a packet follows from this switch on.
inline std::int64_t layer_of(const State& s, Packet* packet) {
  if (!s.routes.has_layers()) return Routes::kShortestPaths;
  if (s.in.port.layer_by_word) return s.routes.layer_by_word(s.wide ? wide(packet).word : 0);
  const QueuePair& qp = s.queue_pairs[packet->queue_pair];
  return s.routes.layer_by_entropy(s.in.attachment[origin_port(s, qp, packet)],
                                   s.in.attachment[packet->destination_port], entropy_of(s, qp, packet));
}

/// The candidates towards `target`: those of the layer, or those on shortest paths and then the others where port
/// selection asks for them.
inline FoundWays ways_to(State& s, const SwitchView& view, PortId destination, AttachmentId target,
                         std::int64_t layer) {
  const GroupId shortest = s.routes.group(view.id, target);
  if (shortest == Routes::kAttached) return way_to_receiver(s, s.in.port_peer[destination], target);
  const GroupId of_layer = s.routes.group_of_layer(layer, view.id, target);
  const bool has_layer = of_layer.value >= 0;
  const GroupId group = has_layer ? of_layer : shortest;
  const GroupId second = has_layer ? GroupId::none() : s.routes.second(view.id, target);
  const Ways minimal = group.is_none() ? Ways() : s.ways[group];
  const Ways others = second.is_none() ? Ways() : s.ways[second];
  FoundWays found{{nullptr, minimal.count + others.count, target}, PortId::none()};
  if (found.question.count == 0) {
    if (!group.is_none() || !second.is_none())
      found.down = s.routes.port(s.routes.first(group.is_none() ? second : group));
  } else if (others.count == 0) {
    found.question.candidates = &s.candidates[minimal.first];
  } else {
    auto& joined = s.joined_candidates;
    joined.clear();
    for (std::int32_t i = 0; i < minimal.count; ++i) joined.push_back(s.candidates[minimal.first + i]);
    for (std::int32_t i = 0; i < others.count; ++i) joined.push_back(s.candidates[others.first + i]);
    for (std::int32_t i = minimal.count; i < found.question.count; ++i) joined[static_cast<std::size_t>(i)].minimal = 0;
    found.question.candidates = joined.data();
  }
  return found;
}

/// The attachment to which a packet goes next: `via`, which ends at this switch, or its destination.
inline AttachmentId target_of(const State& s, const SwitchView& view, Packet* packet) {
  const AttachmentId destination = s.in.attachment[packet->destination_port];
  if (!s.wide) return destination;
  AttachmentId& via = wide(packet).via;
  if (via == view.node.edge) via = AttachmentId::none();
  return via.is_none() ? destination : via;
}

/// What the catalogue's ECMP chooses.
inline PortId choose_by_hash(const State& s, const SwitchView& view, const PortQuestion& question, Packet* packet) {
  const std::uint32_t hash = switch_hash(s, s.hash_functions[view.node.device], packet);
  return view.first + LocalPort(question.candidates[hash % static_cast<std::uint32_t>(question.count)].port);
}

/// Route a packet where there are layers, or port selection may do more than choose among several ports of shortest
/// paths.
[[gnu::noinline]] inline Egress steer(State& s, const SwitchView& view, Packet* packet, TrafficClass klass, Ps at_ps) {
  const std::int64_t layer = layer_of(s, packet);
  bool gives_up = false;  // no way leads to the packet's `via`, and the step may not set it again
  for (std::int64_t via_changes = 0;;) {
    const AttachmentId target = target_of(s, view, packet);
    FoundWays found = ways_to(s, view, packet->destination_port, target, layer);
    PortQuestion& question = found.question;
    if (question.count == 0 && found.down.is_none() && s.wide && !wide(packet).via.is_none()) {
      wide(packet).via = AttachmentId::none();
      gives_up = true;
      continue;
    }
    if (question.count == 0) return {found.down, klass};
    const bool asks = question.delivered ? s.in.port.at_delivery : question.count > 1 || s.in.port.always;
    if (!asks && via_changes == 0) return {view.first + LocalPort(question.candidates[0].port), klass};
    if (s.in.port.plain_ecmp) return {choose_by_hash(s, view, question, packet), klass};
    question.via_changes = gives_up ? 0 : via_changes;
    const AttachmentId via = s.wide ? wide(packet).via : AttachmentId::none();
    const Egress egress = call_port_selection(s, view, question, packet, klass, at_ps);
    if (gives_up) wide(packet).via = AttachmentId::none();  // whatever the step has written
    if (!s.wide || wide(packet).via == via) return egress;
    klass = egress.klass;
    ++via_changes;
  }
}

/// The egress of a packet. Its port is none where there is no route, and one that is down where there is no other.
[[gnu::always_inline]] inline Egress route(State& s, const SwitchView& view, Packet* packet, TrafficClass klass,
                                           Ps at_ps) {
  if (s.steers) [[unlikely]]
    return steer(s, view, packet, klass, at_ps);
  const PortId destination = packet->destination_port;
  const AttachmentId target = s.in.attachment[destination];
  const GroupId group = s.routes.group(view.id, target);
  if (group == Routes::kAttached) return {s.in.port_peer[destination], klass};
  if (group.is_none()) return {PortId::none(), klass};
  const Ways ways = s.ways[group];
  if (ways.count == 1) return {s.way_ports[ways.first], klass};
  if (ways.count == 0) [[unlikely]]
    return {s.routes.port(s.routes.first(group)), klass};
  if (s.in.port.plain_ecmp) {
    const std::uint32_t hash = switch_hash(s, s.hash_functions[view.node.device], packet);
    return {s.way_ports[ways.first + static_cast<std::int32_t>(hash % static_cast<std::uint32_t>(ways.count))], klass};
  }
  return call_port_selection(s, view, {&s.candidates[ways.first], ways.count, target, &s.way_ports[ways.first]}, packet,
                             klass, at_ps);
}

}  // namespace weftwork

/// The choice of a packet's port at a switch, among the live ports towards its target.
/// Source: docs/models/packet-engine.md, "Route". Leaves out: what happens to the packet at that port (admission).
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "packet/buffer.hpp"
#include "packet/fabric.hpp"
#include "packet/hashing.hpp"
#include "packet/hosts.hpp"
#include "packet/ids.hpp"
#include "packet/packet.hpp"
#include "packet/port_selection.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/routes.hpp"
#include "packet/routing_tables.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"

namespace weftwork {

/// From now on packets follow this table; also called when a link has changed, since ports that are down stand aside.
inline void use_routes(const Setup& setup, const Fabric& fabric, RoutingTables& routing, RouteTableId table) {
  routing.route_table = table;
  routing.routes = Routes(setup.in.routes[table], setup.in.node_kind.size());
  routing.ways.resize(routing.routes.groups());
  routing.way_ports.resize(routing.routes.candidates().size());
  routing.candidates.resize(routing.routes.candidates().size());
  for (const GroupId group : routing.ways.ids()) {
    Ways& ways = routing.ways[group];
    ways = {routing.routes.first(group), 0};
    for (const CandidateId listed : id_range(ways.first, routing.routes.first(group + 1))) {
      const PortId port = routing.routes.port(listed);
      if (!fabric.ports[port].up && !setup.in.port.waits_for_routes) continue;
      const CandidateId place = ways.first + ways.count++;
      routing.way_ports[place] = port;
      routing.candidates[place] = {
          0, fabric.rate_bps[port], routing.routes.weight(listed), setup.local_port(port).value, 0, 0, 1, 0, 0};
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
inline FoundWays way_to_receiver(const Setup& setup, const Fabric& fabric, RoutingTables& routing, PortId port,
                                 AttachmentId target) {
  if (!fabric.ports[port].up) return {{nullptr, 0, target}, port};
  routing.joined_candidates.assign(1, {0, fabric.rate_bps[port], 1, setup.local_port(port).value, 0, 0, 1, 0, 0});
  return {{routing.joined_candidates.data(), 1, target, nullptr, true}, PortId::none()};
}

/// The layer of routes that a packet follows from this switch on.
inline std::int64_t layer_of(const Setup& setup, const RoutingTables& routing, const Hosts& hosts, Packet* packet) {
  if (!routing.routes.has_layers()) return Routes::kShortestPaths;
  if (setup.in.port.layer_by_word) return routing.routes.layer_by_word(setup.wide ? wide(packet).word : 0);
  const QueuePair& qp = hosts.queue_pairs[packet->queue_pair];
  return routing.routes.layer_by_entropy(setup.in.attachment[origin_port(setup, qp, packet)],
                                         setup.in.attachment[packet->destination_port], entropy_of(setup, qp, packet));
}

/// The candidates towards `target`: those of the layer, or those on shortest paths and then the others where port
/// selection asks for them.
inline FoundWays ways_to(const Setup& setup, const Fabric& fabric, RoutingTables& routing, const SwitchView& view,
                         PortId destination, AttachmentId target, std::int64_t layer) {
  const GroupId shortest = routing.routes.group(view.id, target);
  if (shortest == Routes::kAttached)
    return way_to_receiver(setup, fabric, routing, setup.in.port_peer[destination], target);
  const GroupId of_layer = routing.routes.group_of_layer(layer, view.id, target);
  const bool has_layer = of_layer.value >= 0;
  const GroupId group = has_layer ? of_layer : shortest;
  const GroupId second = has_layer ? GroupId::none() : routing.routes.second(view.id, target);
  const Ways minimal = group.is_none() ? Ways() : routing.ways[group];
  const Ways others = second.is_none() ? Ways() : routing.ways[second];
  FoundWays found{{nullptr, minimal.count + others.count, target}, PortId::none()};
  if (found.question.count == 0) {
    if (!group.is_none() || !second.is_none())
      found.down = routing.routes.port(routing.routes.first(group.is_none() ? second : group));
  } else if (others.count == 0) {
    found.question.candidates = &routing.candidates[minimal.first];
  } else {
    auto& joined = routing.joined_candidates;
    joined.clear();
    for (std::int32_t i = 0; i < minimal.count; ++i) joined.push_back(routing.candidates[minimal.first + i]);
    for (std::int32_t i = 0; i < others.count; ++i) joined.push_back(routing.candidates[others.first + i]);
    for (std::int32_t i = minimal.count; i < found.question.count; ++i) joined[static_cast<std::size_t>(i)].minimal = 0;
    found.question.candidates = joined.data();
  }
  return found;
}

/// The attachment to which a packet goes next: `via`, which ends at this switch, or its destination.
inline AttachmentId target_of(const Setup& setup, const SwitchView& view, Packet* packet) {
  const AttachmentId destination = setup.in.attachment[packet->destination_port];
  if (!setup.wide) return destination;
  AttachmentId& via = wide(packet).via;
  if (via == view.node.edge) via = AttachmentId::none();
  return via.is_none() ? destination : via;
}

/// What the catalogue's ECMP chooses.
inline PortId choose_by_hash(const Setup& setup, const RoutingTables& routing, const Hosts& hosts,
                             const SwitchView& view, const PortQuestion& question, Packet* packet) {
  const std::uint32_t hash = switch_hash(setup, hosts, routing.hash_functions[view.node.device], packet);
  return view.first + LocalPort(question.candidates[hash % static_cast<std::uint32_t>(question.count)].port);
}

/// Route a packet where there are layers, or port selection may do more than choose among several ports of shortest
/// paths.
[[gnu::noinline]] inline Egress steer(State& s, const SwitchView& view, Packet* packet, TrafficClass klass, Ps at_ps) {
  const std::int64_t layer = layer_of(s.setup, s.routing, s.hosts, packet);
  bool gives_up = false;  // no way leads to the packet's `via`, and the step may not set it again
  for (std::int64_t via_changes = 0;;) {
    const AttachmentId target = target_of(s.setup, view, packet);
    FoundWays found = ways_to(s.setup, s.fabric, s.routing, view, packet->destination_port, target, layer);
    PortQuestion& question = found.question;
    if (question.count == 0 && found.down.is_none() && s.setup.wide && !wide(packet).via.is_none()) {
      wide(packet).via = AttachmentId::none();
      gives_up = true;
      continue;
    }
    if (question.count == 0) return {found.down, klass};
    const bool asks = question.delivered ? s.setup.in.port.at_delivery : question.count > 1 || s.setup.in.port.always;
    if (!asks && via_changes == 0) return {view.first + LocalPort(question.candidates[0].port), klass};
    if (s.setup.in.port.plain_ecmp) return {choose_by_hash(s.setup, s.routing, s.hosts, view, question, packet), klass};
    question.via_changes = gives_up ? 0 : via_changes;
    const AttachmentId via = s.setup.wide ? wide(packet).via : AttachmentId::none();
    const Egress egress = call_port_selection(s, view, question, packet, klass, at_ps);
    if (gives_up) wide(packet).via = AttachmentId::none();  // whatever the step has written
    if (!s.setup.wide || wide(packet).via == via) return egress;
    klass = egress.klass;
    ++via_changes;
  }
}

/// The egress of a packet. Its port is none where there is no route, and one that is down where there is no other.
[[gnu::always_inline]] inline Egress route(State& s, const SwitchView& view, Packet* packet, TrafficClass klass,
                                           Ps at_ps) {
  if (s.setup.steers) [[unlikely]]
    return steer(s, view, packet, klass, at_ps);
  const PortId destination = packet->destination_port;
  const AttachmentId target = s.setup.in.attachment[destination];
  const GroupId group = s.routing.routes.group(view.id, target);
  if (group == Routes::kAttached) return {s.setup.in.port_peer[destination], klass};
  if (group.is_none()) return {PortId::none(), klass};
  const Ways ways = s.routing.ways[group];
  if (ways.count == 1) return {s.routing.way_ports[ways.first], klass};
  if (ways.count == 0) [[unlikely]]
    return {s.routing.routes.port(s.routing.routes.first(group)), klass};
  if (s.setup.in.port.plain_ecmp) {
    const std::uint32_t hash = switch_hash(s.setup, s.hosts, s.routing.hash_functions[view.node.device], packet);
    return {s.routing.way_ports[ways.first + static_cast<std::int32_t>(hash % static_cast<std::uint32_t>(ways.count))],
            klass};
  }
  return call_port_selection(s, view,
                             {&s.routing.candidates[ways.first], ways.count, target, &s.routing.way_ports[ways.first]},
                             packet, klass, at_ps);
}

}  // namespace weftwork

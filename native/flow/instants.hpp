/// Faults in the flow engine: changes of capacities, then of paths. Paths change once routes or NIC ports follow.
/// Links of a bundle carry alike, so that the slowest holds back all: packets that are sprayed over it wait for it.
/// What is in flight on a link that is down stands still until routes know of it. Source: docs/models/flow-engine.md,
/// "Faults".
#pragma once
#include <array>

#include "flow/fluid.hpp"
#include "flow/lanes.hpp"

namespace weftwork::flow {

/// What a port can send now, bytes per ps.
inline double port_capacity(const State& s, PortId port) {
  return s.is_down[port] != 0 ? 0.0 : s.links.capacity[link_of(port)];
}

/// Also that of its copies in other epochs.
inline void set_capacity(State& s, LinkId link, double capacity) {
  for (std::int32_t epoch = 0; epoch < s.link_copies(); ++epoch) {
    const ConstraintId constraint = s.constraint_of(link, epoch);
    if (!constraint.is_none()) s.fluid->set_capacity(constraint, capacity, static_cast<double>(s.now_ps));
  }
}

/// Give the link that stands for a port's bundle the capacity of the slowest.
inline void settle_bundle(State& s, PortId port) {
  const PortId bundle = s.router->bundle_of_port(port);
  std::vector<PortId> ports;
  s.router->members(bundle, ports);
  double least = port_capacity(s, port);
  for (const PortId member : ports) least = std::min(least, port_capacity(s, member));
  set_capacity(s, link_of(bundle), least);
}

/// How many links each port stands for by the bundles that hold now.
inline void count_bundles(State& s) {
  s.bundle_links.assign(s.in.fabric.port_node.size(), 0.0);
  for (const PortId port : s.in.fabric.ports()) s.bundle_links[s.router->bundle_of_port(port)] += 1.0;
}

/// What a port has carried so far, and what it stands for.
inline double carried_by(const State& s, PortId port) {
  double bytes = 0.0;
  for (std::int32_t epoch = 0; epoch < s.link_copies(); ++epoch) {
    const ConstraintId constraint = s.constraint_of(link_of(port), epoch);
    if (!constraint.is_none()) bytes += s.fluid->carried(constraint, static_cast<double>(s.now_ps));
  }
  return bytes;
}

/// Tell what every port has sent, by the bundles that hold now.
inline void settle_carried(State& s) {
  IdVector<PortId, double> total(s.carried_bytes.size());
  for (const PortId port : total.ids()) total[port] = carried_by(s, port);
  for (const PortId port : total.ids()) {
    const PortId bundle = s.router->bundle_of_port(port);
    s.carried_bytes[port] += total[bundle] - s.seen_bytes[bundle];
  }
  s.seen_bytes = std::move(total);
}

/// The activities of the network take the paths of another epoch, with what they still have to get.
inline void begin_epoch(State& s, std::int32_t epoch) {
  if (epoch == s.epoch) return;
  for (const ActivityCell activity : s.adapted.ids())
    if (s.adapted[activity].rate > 0.0) {
      let_go(s, activity);
      s.adapted[activity].rate = -1.0;  // it goes on
    }
  s.epoch = epoch;
  std::vector<ConstraintHop> hops;
  for (const ActivityCell activity : s.network->activities()) {
    if (!s.adapted.empty() && s.adapted[activity].rate < 0.0) {
      adapt(s, activity);
      continue;
    }
    s.hops_now(activity, hops);
    s.fluid->set_hops(s.variable_of_activity[activity], hops, static_cast<double>(s.now_ps));
  }
}

inline void use_routes(State& s, std::size_t table) {
  const std::size_t ports = s.carried_bytes.size();
  settle_carried(s);
  s.router->use(s.in.live.subspan(table * ports, ports), table);
  count_bundles(s);
  IdVector<PortId, double> least(ports, kInfinity);
  for (const PortId port : least.ids()) {
    const PortId bundle = s.router->bundle_of_port(port);
    least[bundle] = std::min(least[bundle], port_capacity(s, port));
  }
  for (const PortId port : least.ids())
    if (least[port] < kInfinity) set_capacity(s, link_of(port), least[port]);
  reroute(s, false);
}

inline void apply_instant(State& s, std::size_t number) {
  const InstantRow& row = s.in.instants[number];
  const PortId port(row.port);
  const auto code = static_cast<InstantCode>(row.code);
  switch (code) {
    case InstantCode::kLinkDown:
    case InstantCode::kLinkUp:
    case InstantCode::kRate:
      for (const PortId end : std::array{port, s.in.fabric.peer(port)}) {
        if (code == InstantCode::kRate)
          s.links.capacity[link_of(end)] = static_cast<double>(row.value) * kBytesPerPs;
        else
          s.is_down[end] = code == InstantCode::kLinkDown ? 1 : 0;
        settle_bundle(s, end);
      }
      break;
    case InstantCode::kHostRate: {
      const LinkId link = s.links.host_interface(port);
      const std::int64_t rate_bps = row.value > 0 ? row.value : s.in.fabric.port_rate_bps[port];
      s.links.capacity[link] = static_cast<double>(rate_bps) * kBytesPerPs;
      set_capacity(s, link, s.links.capacity[link]);
      break;
    }
    case InstantCode::kRoutes:
      use_routes(s, static_cast<std::size_t>(row.value));
      break;
    case InstantCode::kFailover:
      s.down_at_failover = s.is_down;
      reroute(s, true);
      break;
    case InstantCode::kLoss:  // refused before the run
      break;
  }
  if (s.network != nullptr && s.ground.epoch_begins[number] >= 0) begin_epoch(s, s.ground.epoch_begins[number]);
}

}  // namespace weftwork::flow

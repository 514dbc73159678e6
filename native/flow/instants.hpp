/// Faults as the flow engine sees them: capacities that change, and new ways once routes or NIC ports follow.
/// Links of a bundle carry alike, so that the slowest holds back all: packets that are sprayed over it wait for it.
/// What is under way on a link that is down stands still until routes know of it. Source: docs/models/flow-engine.md,
/// "Faults".
#pragma once
#include <array>

#include "flow/lanes.hpp"

namespace weftwork::flow {

/// What a port can send now, bytes per ps.
inline double port_capacity(const State& s, std::int32_t port) {
  return s.is_down[static_cast<std::size_t>(port)] ? 0.0 : s.links.capacity[static_cast<std::size_t>(port)];
}

inline void set_capacity(State& s, std::int32_t link, double capacity) {
  const ConstraintId constraint = s.constraint_of(link);
  if (!constraint.is_none()) s.fluid->set_capacity(constraint, capacity, static_cast<double>(s.now_ps));
}

/// Give the link that stands for a port's bundle the capacity of the slowest.
inline void settle_bundle(State& s, std::int32_t port) {
  const std::int32_t bundle = s.router->bundle_of_port(port);
  std::vector<std::int32_t> ports;
  s.router->members(bundle, ports);
  double least = port_capacity(s, port);
  for (const std::int32_t member : ports) least = std::min(least, port_capacity(s, member));
  set_capacity(s, bundle, least);
}

/// Tell what every port has sent, by the bundles that hold now.
inline void settle_carried(State& s) {
  const std::size_t ports = s.carried_bytes.size();
  std::vector<double> total(ports);
  for (std::size_t link = 0; link < ports; ++link)
    total[link] = s.fluid->carried(ConstraintId(link), static_cast<double>(s.now_ps));
  for (std::size_t port = 0; port < ports; ++port) {
    const auto bundle = static_cast<std::size_t>(s.router->bundle_of_port(static_cast<std::int32_t>(port)));
    s.carried_bytes[port] += total[bundle] - s.seen_bytes[bundle];
  }
  s.seen_bytes = std::move(total);
}

/// The activities of a network that is not folded take the ways that hold now; where one of them has none, all stay.
inline void reroute_network(State& s) {
  Graph now;
  try {
    now = build_graph(s.in.job, s.links, Routed(*s.router), fold_options(s, Folding::kNever).wire);
  } catch (const NoPath&) {
    return;  // what has no way stands still on the one that it had, over a link that is down
  }
  std::vector<ConstraintHop> hops;
  for (std::size_t a = 0; a < s.variable_of_activity.size(); ++a) {
    hops.clear();
    for (const Share& share : now.hops_of(a)) hops.push_back({ConstraintId(share.link), now.weights[share.weight]});
    s.fluid->set_hops(s.variable_of_activity[a], hops, static_cast<double>(s.now_ps));
  }
}

inline void use_routes(State& s, std::size_t table) {
  const std::size_t ports = s.carried_bytes.size();
  settle_carried(s);
  s.router->use(s.in.live.subspan(table * ports, ports));
  std::vector<double> least(ports, kInfinity);
  for (std::size_t port = 0; port < ports; ++port) {
    const auto bundle = static_cast<std::size_t>(s.router->bundle_of_port(static_cast<std::int32_t>(port)));
    least[bundle] = std::min(least[bundle], port_capacity(s, static_cast<std::int32_t>(port)));
  }
  for (std::size_t link = 0; link < ports; ++link)
    if (least[link] < kInfinity) set_capacity(s, static_cast<std::int32_t>(link), least[link]);
  reroute(s, false);
  if (s.network != nullptr) reroute_network(s);
}

inline void apply_instant(State& s, const InstantRow& row) {
  const auto port = static_cast<std::int32_t>(row.port);
  const auto code = static_cast<InstantCode>(row.code);
  switch (code) {
    case InstantCode::kLinkDown:
    case InstantCode::kLinkUp:
    case InstantCode::kRate:
      for (const std::int32_t end : std::array{port, s.in.fabric.peer(port)}) {
        if (code == InstantCode::kRate)
          s.links.capacity[static_cast<std::size_t>(end)] = static_cast<double>(row.value) * kBytesPerPs;
        else
          s.is_down[static_cast<std::size_t>(end)] = code == InstantCode::kLinkDown;
        settle_bundle(s, end);
      }
      break;
    case InstantCode::kHostRate: {
      const std::int32_t link = s.links.host_interface(port);
      const std::int64_t rate_bps =
          row.value > 0 ? row.value : s.in.fabric.port_rate_bps[static_cast<std::size_t>(port)];
      s.links.capacity[static_cast<std::size_t>(link)] = static_cast<double>(rate_bps) * kBytesPerPs;
      set_capacity(s, link, s.links.capacity[static_cast<std::size_t>(link)]);
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
}

}  // namespace weftwork::flow

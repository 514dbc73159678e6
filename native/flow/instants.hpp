/// Faults in the flow engine: changes of capacities, then of paths. Paths change once routes or NIC ports follow.
/// Links of a bundle carry alike, so that the slowest holds back all: packets that are sprayed over it wait for it.
/// What is in flight on a link that is down stands still until routes know of it. Source: docs/models/flow-engine.md,
/// "Faults".
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "flow/adaptive.hpp"
#include "flow/epochs.hpp"
#include "flow/fluid.hpp"
#include "flow/ids.hpp"
#include "flow/job_state.hpp"
#include "flow/lanes.hpp"
#include "flow/links.hpp"
#include "flow/records.hpp"
#include "flow/run_clock.hpp"
#include "flow/setup.hpp"
#include "flow/traffic.hpp"
#include "rows/fabric.hpp"

namespace weftwork::flow {

/// What a port can send now, bytes per ps.
inline double port_capacity(const Traffic& traffic, PortId port) {
  return traffic.is_down[port] != 0 ? 0.0 : traffic.links.capacity[link_of(port)];
}

/// Also that of its copies in other epochs.
inline void set_capacity(const Setup& setup, Traffic& traffic, const RunClock& clock, LinkId link, double capacity) {
  for (std::int32_t epoch = 0; epoch < setup.link_copies(); ++epoch) {
    const ConstraintId constraint = setup.constraint_of(link, epoch);
    if (!constraint.is_none()) traffic.fluid->set_capacity(constraint, capacity, static_cast<double>(clock.now_ps));
  }
}

/// Give the link that stands for a port's bundle the capacity of the slowest.
inline void settle_bundle(const Setup& setup, Traffic& traffic, const RunClock& clock, PortId port) {
  const PortId bundle = traffic.router->bundle_of_port(port);
  std::vector<PortId> ports;
  traffic.router->members(bundle, ports);
  double least = port_capacity(traffic, port);
  for (const PortId member : ports) least = std::min(least, port_capacity(traffic, member));
  set_capacity(setup, traffic, clock, link_of(bundle), least);
}

/// How many links each port stands for by the bundles that hold now.
inline void count_bundles(const Setup& setup, Traffic& traffic) {
  traffic.bundle_links.assign(setup.in.fabric.port_node.size(), 0.0);
  for (const PortId port : setup.in.fabric.ports()) traffic.bundle_links[traffic.router->bundle_of_port(port)] += 1.0;
}

/// What a port has carried so far, and what it stands for.
inline double carried_by(const Setup& setup, const Traffic& traffic, const RunClock& clock, PortId port) {
  double bytes = 0.0;
  for (std::int32_t epoch = 0; epoch < setup.link_copies(); ++epoch) {
    const ConstraintId constraint = setup.constraint_of(link_of(port), epoch);
    if (!constraint.is_none()) bytes += traffic.fluid->carried(constraint, static_cast<double>(clock.now_ps));
  }
  return bytes;
}

/// Tell what every port has sent, by the bundles that hold now.
inline void settle_carried(const Setup& setup, Traffic& traffic, const RunClock& clock) {
  IdVector<PortId, double> total(traffic.carried_bytes.size());
  for (const PortId port : total.ids()) total[port] = carried_by(setup, traffic, clock, port);
  for (const PortId port : total.ids()) {
    const PortId bundle = traffic.router->bundle_of_port(port);
    traffic.carried_bytes[port] += total[bundle] - traffic.seen_bytes[bundle];
  }
  traffic.seen_bytes = std::move(total);
}

/// The activities of the network take the paths of another epoch, with what they still have to get.
inline void begin_epoch(const Setup& setup, Traffic& traffic, const RunClock& clock, std::int32_t epoch) {
  if (epoch == traffic.epoch) return;
  for (const ActivityCell activity : traffic.adapted.ids())
    if (traffic.adapted[activity].rate > 0.0) {
      let_go(setup, traffic, activity);
      traffic.adapted[activity].rate = -1.0;  // it goes on
    }
  traffic.epoch = epoch;
  std::vector<ConstraintHop> hops;
  for (const ActivityCell activity : setup.network->activities()) {
    if (!traffic.adapted.empty() && traffic.adapted[activity].rate < 0.0) {
      adapt(setup, traffic, clock, activity);
      continue;
    }
    hops_now(setup, traffic, activity, hops);
    traffic.fluid->set_hops(traffic.variable_of_activity[activity], hops, static_cast<double>(clock.now_ps));
  }
}

inline void use_routes(const Setup& setup, Traffic& traffic, JobState& job, const RunClock& clock, std::size_t table) {
  const std::size_t ports = traffic.carried_bytes.size();
  settle_carried(setup, traffic, clock);
  traffic.router->use(setup.in.live.subspan(table * ports, ports), table);
  count_bundles(setup, traffic);
  IdVector<PortId, double> least(ports, kInfinity);
  for (const PortId port : least.ids()) {
    const PortId bundle = traffic.router->bundle_of_port(port);
    least[bundle] = std::min(least[bundle], port_capacity(traffic, port));
  }
  for (const PortId port : least.ids())
    if (least[port] < kInfinity) set_capacity(setup, traffic, clock, link_of(port), least[port]);
  reroute(setup, traffic, job, clock, false);
}

inline void apply_instant(const Setup& setup, Traffic& traffic, JobState& job, const RunClock& clock,
                          std::size_t number) {
  const InstantRow& row = setup.in.instants[number];
  const PortId port(row.port);
  const auto code = static_cast<InstantCode>(row.code);
  switch (code) {
    case InstantCode::kLinkDown:
    case InstantCode::kLinkUp:
    case InstantCode::kRate:
      for (const PortId end : std::array{port, setup.in.fabric.peer(port)}) {
        if (code == InstantCode::kRate)
          traffic.links.capacity[link_of(end)] = static_cast<double>(row.value) * kBytesPerPs;
        else
          traffic.is_down[end] = code == InstantCode::kLinkDown ? 1 : 0;
        settle_bundle(setup, traffic, clock, end);
      }
      break;
    case InstantCode::kHostRate: {
      const LinkId link = traffic.links.host_interface(port);
      const std::int64_t rate_bps = row.value > 0 ? row.value : setup.in.fabric.port_rate_bps[port];
      traffic.links.capacity[link] = static_cast<double>(rate_bps) * kBytesPerPs;
      set_capacity(setup, traffic, clock, link, traffic.links.capacity[link]);
      break;
    }
    case InstantCode::kRoutes:
      use_routes(setup, traffic, job, clock, static_cast<std::size_t>(row.value));
      break;
    case InstantCode::kFailover:
      traffic.down_at_failover = traffic.is_down;
      reroute(setup, traffic, job, clock, true);
      break;
    case InstantCode::kLoss:
      set_loss(traffic.loss, setup.in.fabric, row);
      reroute(setup, traffic, job, clock, false);
      break;
  }
  if (setup.network != nullptr && setup.ground.epoch_begins[number] >= 0)
    begin_epoch(setup, traffic, clock, setup.ground.epoch_begins[number]);
}

}  // namespace weftwork::flow

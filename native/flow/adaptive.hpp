/// Adaptive routing as flows see it: a flow that begins divides itself between its shortest paths and its detours, by
/// what flows in progress offer to the links of both, and keeps the shares. An approximation of UGAL and PAR.
/// A link that is offered more than it can carry has a queue, which grows with the excess. The flow equalises what a
/// byte meets of these queues on either way, added up over its links, as UGAL compares queue times hops.
///
/// Source: Singh, PhD thesis, Stanford 2005 (the comparison); docs/models/flow-engine-paths.md, "Adaptive routing".
/// Leaves out: second thoughts, and which queues a switch can see.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "flow/fabric_view.hpp"
#include "flow/fluid.hpp"
#include "flow/graph.hpp"
#include "flow/ids.hpp"
#include "flow/records.hpp"
#include "flow/run_clock.hpp"
#include "flow/setup.hpp"
#include "flow/traffic.hpp"

namespace weftwork::flow {

inline bool is_between_switches(const Setup& setup, const Traffic& traffic, LinkId link) {
  const FabricView& fabric = setup.in.fabric;
  return traffic.links.is_port(link) && fabric.is_switch(fabric.owner(PortId(link.value))) &&
         fabric.is_switch(fabric.next(PortId(link.value)));
}

namespace detail {

inline LinkId link_of(ConstraintId constraint) {
  return LinkId(constraint.value);  // without folding, constraints are links
}

/// The rate of a flow whose links between switches are all free: its NICs and servers limit it.
inline double free_rate(const Setup& setup, const Traffic& traffic, std::span<const ConstraintHop> hops) {
  double slowest = 0.0, any = 0.0;
  for (const ConstraintHop& hop : hops) {
    const double ps_per_byte = hop.weight / traffic.links.capacity[link_of(hop.constraint)];
    any = std::max(any, ps_per_byte);
    if (!is_between_switches(setup, traffic, link_of(hop.constraint))) slowest = std::max(slowest, ps_per_byte);
  }
  return 1.0 / (slowest > 0.0 ? slowest : any);
}

/// A link between switches that a flow may cross: bytes for each byte of the flow on both of its ways.
struct TwoWays {
  LinkId link;
  double minimal, detour;
};

/// The links of both ways, each once.
inline void choices(const Setup& setup, Traffic& traffic, std::span<const ConstraintHop> minimal,
                    std::span<const ConstraintHop> detour, std::vector<TwoWays>& found) {
  found.clear();
  const auto add = [&](const ConstraintHop& hop, double TwoWays::* weight) {
    const LinkId link = link_of(hop.constraint);
    if (!is_between_switches(setup, traffic, link)) return;
    std::int32_t& place = traffic.choice_of_link[link];
    if (place < 0) {
      place = static_cast<std::int32_t>(found.size());
      found.push_back({link, 0.0, 0.0});
    }
    found[static_cast<std::size_t>(place)].*weight += hop.weight;
  };
  for (const ConstraintHop& hop : minimal) add(hop, &TwoWays::minimal);
  for (const ConstraintHop& hop : detour) add(hop, &TwoWays::detour);
  for (const TwoWays& choice : found) traffic.choice_of_link[choice.link] = -1;
}

}  // namespace detail

/// The share of a flow that detours.
inline double detoured_share(const Setup& setup, Traffic& traffic, std::span<const ConstraintHop> minimal,
                             std::span<const ConstraintHop> detour, double rate) {
  constexpr double kSlack = 1e-9;  // sums of rates that come and go
  constexpr double kParts = 64.0;  // chosen: a share is known to 1.6 %
  std::vector<detail::TwoWays> choices;
  detail::choices(setup, traffic, minimal, detour, choices);
  /// Cost of the shortest paths less that of the detours, where `share` detours.
  const auto balance = [&](double share) {
    double sum = 0.0;
    for (const detail::TwoWays& choice : choices) {
      const double own = rate * ((1.0 - share) * choice.minimal + share * choice.detour);
      const double excess = (traffic.offered[choice.link] + own) / traffic.links.capacity[choice.link] - 1.0 - kSlack;
      if (excess > 0.0)
        sum += excess * (choice.minimal - choice.detour) * traffic.bundle_links[PortId(choice.link.value)];
    }
    return sum;
  };
  if (balance(0.0) <= 0.0) return 0.0;
  if (balance(1.0) >= 0.0) return 1.0;
  double low = 0.0, high = kParts;
  while (high - low > 1.0) {
    const double middle = std::floor((low + high) / 2.0);
    (balance(middle / kParts) > 0.0 ? low : high) = middle;
  }
  return high / kParts;
}

/// Both ways of a flow with their shares.
inline std::vector<ConstraintHop> mixed_hops(std::span<const ConstraintHop> minimal,
                                             std::span<const ConstraintHop> detour, double share) {
  std::vector<ConstraintHop> hops;
  hops.reserve(minimal.size() + detour.size());
  if (share < 1.0)
    for (const ConstraintHop& hop : minimal) hops.push_back({hop.constraint, hop.weight * (1.0 - share)});
  if (share > 0.0)
    for (const ConstraintHop& hop : detour) hops.push_back({hop.constraint, hop.weight * share});
  return hops;
}

/// A flow begins: what it offers counts from now on. Without a detour, `detour` is empty.
inline Adapted offer(const Setup& setup, Traffic& traffic, std::span<const ConstraintHop> minimal,
                     std::span<const ConstraintHop> detour) {
  Adapted flow;
  flow.rate = detail::free_rate(setup, traffic, minimal);
  if (!detour.empty()) flow.share = detoured_share(setup, traffic, minimal, detour, flow.rate);
  for (const ConstraintHop& hop : minimal)
    traffic.offered[detail::link_of(hop.constraint)] += flow.rate * (1.0 - flow.share) * hop.weight;
  for (const ConstraintHop& hop : detour)
    traffic.offered[detail::link_of(hop.constraint)] += flow.rate * flow.share * hop.weight;
  return flow;
}

/// It has ended.
inline void withdraw(Traffic& traffic, std::span<const ConstraintHop> minimal, std::span<const ConstraintHop> detour,
                     Adapted& flow) {
  for (const ConstraintHop& hop : minimal)
    traffic.offered[detail::link_of(hop.constraint)] -= flow.rate * (1.0 - flow.share) * hop.weight;
  for (const ConstraintHop& hop : detour)
    traffic.offered[detail::link_of(hop.constraint)] -= flow.rate * flow.share * hop.weight;
  flow.rate = 0.0;  // the share is still asked for, by what is recorded of it
}

/// The detour of an activity of the network in the epoch that holds now; empty: it has none.
inline std::vector<ConstraintHop> detour_now(const Setup& setup, const Traffic& traffic, ActivityCell activity) {
  std::vector<ConstraintHop> hops;
  const Graph& graph = setup.ground.detours[static_cast<std::size_t>(traffic.epoch)];
  for (const GraphHop& hop : graph.hops_of(ActivityId(activity.value)))
    hops.push_back({ConstraintId(hop.link.value), graph.weights[hop.weight]});
  return hops;
}

/// An activity of the network begins, or goes on in another epoch.
inline void adapt(const Setup& setup, Traffic& traffic, const RunClock& clock, ActivityCell activity) {
  std::vector<ConstraintHop> minimal;
  hops_now(setup, traffic, activity, minimal);
  const std::vector<ConstraintHop> detour = detour_now(setup, traffic, activity);
  traffic.adapted[activity] = offer(setup, traffic, minimal, detour);
  traffic.fluid->set_hops(traffic.variable_of_activity[activity],
                          mixed_hops(minimal, detour, traffic.adapted[activity].share),
                          static_cast<double>(clock.now_ps));
}

/// It has ended, or an epoch has.
inline void let_go(const Setup& setup, Traffic& traffic, ActivityCell activity) {
  std::vector<ConstraintHop> minimal;
  hops_now(setup, traffic, activity, minimal);
  withdraw(traffic, minimal, detour_now(setup, traffic, activity), traffic.adapted[activity]);
}

}  // namespace weftwork::flow

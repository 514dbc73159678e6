/// The fabric as it is now, and what crosses it: capacities, routes, variables of the fluid.
/// Invariants: what flows has one variable of the fluid for each of its paths, whose hops are those of the epoch that
/// holds; a port is down or up as the last instant said, and its bundle's capacity is that of the links that are up.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "flow/graph.hpp"
#include "flow/ids.hpp"
#include "flow/links.hpp"
#include "flow/message_path.hpp"
#include "flow/network.hpp"
#include "flow/records.hpp"
#include "flow/router.hpp"
#include "flow/setup.hpp"

namespace weftwork::flow {

class Fluid;  // flow/fluid.hpp

/// How a flow in progress divides itself under adaptive routing.
struct Adapted {
  double rate = 0.0;   // bytes per ps that it offers to its path; 0: it has ended
  double share = 0.0;  // that detours
};

/// A path that messages share, with its variable of the fluid.
struct SharedPath {
  MessagePath path;
  VariableId variable;
  double packets = 0;  // that went over it whole
  std::vector<double> tier_weight;
  std::vector<ConstraintHop> hops;  // each link once; under adaptive routing alone
};

struct Traffic {
  Links links;                            // capacities that hold now, a link of the fabric by itself
  std::int32_t epoch = 0;                 // of the ground's, that holds now
  IdVector<PortId, double> bundle_links;  // how many links a port stands for now
  std::unique_ptr<Router> router;
  std::unique_ptr<Fluid> fluid;
  IdVector<ActivityCell, VariableId> variable_of_activity;
  IdVector<ActivityCell, char> is_companion_busy;
  IdVector<ActivityCell, Adapted> adapted;        // of the network, under adaptive routing
  IdVector<LinkId, double> offered;               // bytes per ps, by flows in progress; adaptive routing alone
  IdVector<LinkId, std::int32_t> choice_of_link;  // scratch of flow/adaptive.hpp, -1 between calls
  IdVector<PathId, SharedPath> paths;
  std::unordered_map<std::uint64_t, std::vector<PathId>> paths_of_key;
  IdVector<PortId, char> is_down, down_at_failover;
  IdVector<PortId, double> loss;                       // of a packet that a port sends now; empty: nothing is ever lost
  IdVector<PortId, double> carried_bytes, seen_bytes;  // by former bundles; what was told already, by bundle
};

/// Of an activity of the network now.
inline Ps latency_now_ps(const Setup& setup, const Traffic& traffic, ActivityCell activity) {
  if (!traffic.adapted.empty() && traffic.adapted[activity].share > 0.0)
    return setup.ground.detours[static_cast<std::size_t>(traffic.epoch)].latency_ps[ActivityId(activity.value)];
  const Epoch& now = setup.ground.epochs[static_cast<std::size_t>(traffic.epoch)];
  return now.latency_ps.empty() ? setup.network->latency_ps[activity] : now.latency_ps[activity];
}

/// Let a share of what `weight` tells go by detours.
inline void mix_tiers(std::vector<double>& weight, std::span<const double> detour, double share) {
  for (std::size_t tier = 0; tier < weight.size(); ++tier)
    weight[tier] = (1.0 - share) * weight[tier] + share * detour[tier];
}

/// Of what `done_of` names, now.
inline std::vector<double> tier_weight_now(const Setup& setup, const Traffic& traffic, ActivityCell done_cell) {
  const Epoch& now = setup.ground.epochs[static_cast<std::size_t>(traffic.epoch)];
  const double share = traffic.adapted.empty() ? 0.0 : traffic.adapted[done_cell].share;
  std::vector<double> weight = now.tier_weight[done_cell];
  if (share > 0.0) mix_tiers(weight, now.detour_tier_weight[done_cell], share);
  return weight;
}

/// Hops of an activity of the network now, as the fluid has them.
inline void hops_now(const Setup& setup, const Traffic& traffic, ActivityCell activity,
                     std::vector<ConstraintHop>& hops) {
  const Ground& ground = setup.ground;
  hops.clear();
  for (const CellHop& hop : setup.network->hops_of(activity)) {
    if (!ground.epoch_of_cell.empty() && ground.epoch_of_cell[hop.link] != traffic.epoch) continue;
    hops.push_back(
        {ConstraintId(setup.has_link_cells() ? hop.link.value : ground.link_of_cell[hop.link].value), hop.weight});
  }
}

}  // namespace weftwork::flow

/// Epochs of a run: times between two changes of routes or NIC ports, with constant paths.
/// All of them are known before the run, so that a job is folded once for all: links have a copy for each epoch, an
/// activity crosses those of every epoch, and a partition that is equitable over all of them is so in each.
/// Meaning: docs/models/flow-engine-folding.md, "Faults".
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/random.hpp"
#include "flow/fabric_view.hpp"
#include "flow/graph.hpp"
#include "flow/ids.hpp"
#include "flow/tiers.hpp"
#include "rows/fabric.hpp"

namespace weftwork::flow {

/// What paths are found from: a table of routes, which ports were down at the last failover (empty: none was yet), and
/// what ports lose (empty: nothing is ever lost).
struct PathRules {
  std::size_t table = 0;
  IdVector<PortId, char> down;
  IdVector<PortId, double> loss;

  [[nodiscard]] bool operator==(const PathRules& other) const {
    return table == other.table && down.items() == other.down.items() && loss.items() == other.loss.items();
  }
};

/// A link loses packets from now on, both ways.
inline void set_loss(IdVector<PortId, double>& loss, const FabricView& fabric, const InstantRow& row) {
  constexpr double kLossParts = 1e9;  // weftwork.engine.instants.LOSS_PARTS
  for (const PortId end : std::array{PortId(row.port), fabric.peer(PortId(row.port))})
    loss[end] = static_cast<double>(row.value) / kLossParts;
}

/// The rules that hold one after the other, each once, and which of them each instant begins (-1: none).
struct Schedule {
  std::vector<PathRules> rules{1};
  std::vector<std::int32_t> begins;
};

inline Schedule schedule_of(std::span<const InstantRow> instants, const FabricView& fabric,
                            const IdVector<PortId, double>& loss) {
  Schedule schedule;
  IdVector<PortId, char> is_down(fabric.port_node.size(), 0);
  PathRules now;
  now.loss = loss;
  schedule.rules.front().loss = loss;
  for (const InstantRow& row : instants) {
    schedule.begins.push_back(-1);
    const auto code = static_cast<InstantCode>(row.code);
    if (code == InstantCode::kLinkDown || code == InstantCode::kLinkUp)
      for (const PortId end : std::array{PortId(row.port), fabric.peer(PortId(row.port))})
        is_down[end] = code == InstantCode::kLinkDown ? 1 : 0;
    if (code == InstantCode::kLoss)
      set_loss(now.loss, fabric, row);
    else if (code != InstantCode::kRoutes && code != InstantCode::kFailover)
      continue;
    if (code == InstantCode::kRoutes)
      now.table = static_cast<std::size_t>(row.value);
    else if (code == InstantCode::kFailover)
      now.down = is_down;
    const auto known = std::find(schedule.rules.begin(), schedule.rules.end(), now);
    schedule.begins.back() = static_cast<std::int32_t>(known - schedule.rules.begin());
    if (known == schedule.rules.end()) schedule.rules.push_back(now);
  }
  return schedule;
}

/// Whether two graphs of one job have the same paths.
inline bool have_same_paths(const Graph& a, const Graph& b) {
  return a.hop_ptr.items() == b.hop_ptr.items() && a.latency_ps.items() == b.latency_ps.items() &&
         std::equal(a.hops.begin(), a.hops.end(), b.hops.begin(), [&](const GraphHop& x, const GraphHop& y) {
           return x.link == y.link && a.weights[x.weight] == b.weights[y.weight];
         });
}

/// The graphs of a job in all its epochs as one: link `l` of epoch `e` is link `e x copy + l`. Everything else is as in
/// the first.
inline Graph joined(const std::vector<Graph>& graphs, std::int32_t copy) {
  Graph all = graphs.front();
  all.hops.clear();
  all.hop_ptr.assign(1, 0);
  for (const ActivityId a : graphs.front().activities()) {
    std::int32_t first_link = 0;
    for (const Graph& graph : graphs) {
      for (const GraphHop& hop : graph.hops_of(a))
        all.hops.push_back({hop.link + first_link, all.weights.id(graph.weights[hop.weight])});
      first_link += copy;
    }
    all.hop_ptr.push_back(static_cast<std::int64_t>(all.hops.size()));
  }
  return all;
}

/// Equal for activities whose latencies are the same in all epochs.
inline IdVector<ActivityId, std::uint64_t> latency_fates(const std::vector<Graph>& graphs) {
  IdVector<ActivityId, std::uint64_t> fate(graphs.front().latency_ps.size(), 0);
  for (const Graph& graph : graphs)
    for (const ActivityId a : fate.ids()) fate[a] = mix(fate[a], static_cast<std::uint64_t>(graph.latency_ps[a]), 1);
  return fate;
}

}  // namespace weftwork::flow

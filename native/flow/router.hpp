/// Links of a flow between two NIC ports, and the time of its bytes over them.
///   spray          every switch splits evenly over all its candidates; hops are bundles of links that carry alike
///   hashed         one path: the ports that the packet engine's ECMP takes for the same flow
///   weighted       one path: the ports that the packet engine's WCMP takes for the same flow
///   deterministic  one path: the destination alone chooses, so that what goes to a host comes down one path
/// Candidates are those of a rule (flow/rule.hpp). With detours, a flow that is spread goes by all intermediates alike,
/// and a flow of one path by the intermediate of its queue pair (flow/detours.hpp).
/// Where the fabric has layers a flow keeps to the one of its entropy, or takes all ways of its two switches alike. The
/// mode then says what it does where a layer leaves it to the shortest paths.
///
/// Source: docs/models/packet-engine.md, "Route" and "Hash"; d-mod-k: Zahavi, J. Parallel Distrib. Comput. 2012,
/// Fat-tree routing and node ordering; topology/digits.py does the same. Meaning: docs/models/flow-engine-paths.md.
/// Leaves out: unequal shares of one flow, layers by a packet's word, and what a packet queues for.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "flow/fabric_view.hpp"
#include "flow/layers.hpp"
#include "flow/rule.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/flow_run.hpp"

namespace weftwork::flow {

/// What a router tells of a path besides its hops.
struct PathFacts {
  bool reachable = false;
  std::int32_t links = 0;  // crossed, one after the other
  std::int64_t latency_ps =
      0;  // delays of its ports; of several paths the longest, since a message is there with its last byte
  double rate_bps = 0;  // that its links could carry for it alone
  std::vector<std::size_t>
      stage_ends;  // where the hops of each link crossed end, counted from the first hop; empty: tiers tell it
};

/// Routes of a fabric over the links that are up. Not thread-safe: `path` keeps scratch. Both the constructor and `use`
/// throw LimitError where a fabric without tiers is too large to be searched.
class Router {
 public:
  static constexpr std::int64_t kMostSteps = 6'000'000'000;  // chosen: about a minute

  /// `most_steps`: links that all searches together may look at.
  Router(const FabricView& fabric, Mode mode, Layers layers = {}, Rule rule = {}, const DetourRule& detours = {},
         std::int64_t most_steps = kMostSteps);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// From now on, routes over these links alone: `live` by port, not 0 where the link is up, alike at both its ends.
  /// `table` is the number of their layers.
  void use(std::span<const std::uint8_t> live, std::size_t table = 0);

  /// Append the hops from one NIC port to another, two different ones: the sending port, links between switches, the
  /// port towards the destination. Routes decide alone whether a destination is reached: that the link of a NIC port
  /// itself is down is for its capacity to say. Nothing is appended where there is no path. `queue_pair_hash` draws the
  /// intermediate of a flow of one path.
  void path(PortId source_port, PortId destination_port, std::uint16_t entropy, std::uint32_t destination_qp,
            std::int64_t queue_pair_hash, std::vector<Hop>& hops, PathFacts& about) const;

  /// Whether paths by detours tell stages; the graph of a job needs none, and has each link once then.
  void tell_stages(bool tells_stages);

  /// Whether flows that are spread detour, where detours are made at all.
  void take_detours(bool takes_detours);

  [[nodiscard]] Mode mode() const;
  [[nodiscard]] const Layers& layers() const;
  /// Whether a flow may take several paths at once.
  [[nodiscard]] bool splits() const;
  [[nodiscard]] const FabricView& fabric() const;
  /// By port: the link that stands for its bundle in hops; all links of a bundle carry the same. Itself where the
  /// mode has no bundles. Changes with `use`.
  [[nodiscard]] PortId bundle_of_port(PortId port) const;
  /// Ports by bundle: those of the bundle that `link` stands for, ascending.
  void members(PortId bundle, std::vector<PortId>& ports) const;

 private:
  class Routes;
  std::unique_ptr<Routes> routes_;
};

}  // namespace weftwork::flow

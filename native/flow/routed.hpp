/// The routes of a fabric, as the graph of a job asks for them: flow/router.hpp behind the calls of `PathFinder`.
#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "flow/fabric_view.hpp"
#include "flow/hop_finder.hpp"
#include "flow/router.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/flow_run.hpp"

namespace weftwork::flow {

class Routed {
 public:
  explicit Routed(const Router& router) : router_(router), fabric_(router.fabric()) {}

  std::int64_t path(PortId from, PortId to, std::uint32_t entropy, std::uint32_t queue_pair,
                    std::int64_t queue_pair_hash, std::vector<Hop>& hops) const {
    PathFacts about;
    router_.path(from, to, static_cast<std::uint16_t>(entropy), queue_pair, queue_pair_hash, hops, about);
    return about.reachable ? about.latency_ps : -1;
  }
  [[nodiscard]] Blindness blindness() const {
    if (!router_.layers().empty() && !router_.layers().spreads_ways()) return Blindness::kFlow;  // by its entropy
    if (router_.mode() == Mode::kSpray) return Blindness::kLeaves;
    return router_.mode() == Mode::kDeterministic ? Blindness::kDestination : Blindness::kFlow;
  }
  [[nodiscard]] PortId rail_port(PortId own, PortId other) const {
    const NodeId node = fabric_.owner(own);
    const PortId port = fabric_.first(node) + (other - fabric_.first(fabric_.owner(other)));
    return port < fabric_.end(node) ? port : PortId::none();
  }
  [[nodiscard]] NodeId leaf(PortId port) const { return fabric_.next(port); }
  [[nodiscard]] PortId entry(PortId port) const { return fabric_.peer(port); }

 private:
  const Router& router_;
  const FabricView& fabric_;
};
static_assert(PathFinder<Routed>);

}  // namespace weftwork::flow

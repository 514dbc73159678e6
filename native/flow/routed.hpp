/// The routes of a fabric, as the graph of a job asks for them: flow/paths.hpp behind the calls of `PathFinder`.
#pragma once
#include <cstdint>
#include <vector>

#include "flow/hop_finder.hpp"
#include "flow/paths.hpp"

namespace weftwork::flow {

class Routed {
 public:
  explicit Routed(const Router& router) : router_(router), fabric_(router.fabric()) {}

  std::int64_t path(std::int32_t from, std::int32_t to, std::uint32_t entropy, std::uint32_t queue_pair,
                    std::vector<Hop>& hops) const {
    Path about;
    router_.path(from, to, static_cast<std::uint16_t>(entropy), queue_pair, hops, about);
    return about.reachable ? about.latency_ps : -1;
  }
  [[nodiscard]] Blindness blindness() const {
    if (router_.mode() == Mode::kSpray) return Blindness::kLeaves;
    return router_.mode() == Mode::kDeterministic ? Blindness::kDestination : Blindness::kFlow;
  }
  [[nodiscard]] std::int32_t rail_port(std::int32_t own, std::int32_t other) const {
    const std::int32_t node = fabric_.owner(own);
    const std::int32_t port = fabric_.first(node) + other - fabric_.first(fabric_.owner(other));
    return port < fabric_.end(node) ? port : -1;
  }
  [[nodiscard]] std::int32_t leaf(std::int32_t port) const { return fabric_.next(port); }
  [[nodiscard]] std::int32_t entry(std::int32_t port) const { return fabric_.peer(port); }

 private:
  const Router& router_;
  const FabricView& fabric_;
};
static_assert(PathFinder<Routed>);

}  // namespace weftwork::flow

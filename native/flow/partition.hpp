/// A partition of a job's graph into cells, whose members do everything alike (flow/refine.hpp).
#pragma once
#include <cstdint>

#include "base/ids.hpp"
#include "flow/ids.hpp"

namespace weftwork::flow {

/// A cell for every link, activity, communicator and rank; none for links that nothing crosses.
struct Partition {
  IdVector<LinkId, LinkCell> link;
  IdVector<ActivityId, ActivityCell> activity;
  IdVector<CommunicatorId, CommunicatorCell> communicator;
  IdVector<RankId, ActorId> rank;
  std::int32_t links = 0, activities = 0, communicators = 0, ranks = 0;  // cells of each
  int rounds = 0;
  bool is_stable = false;  // false: given up, since there would be more cells than allowed
};

}  // namespace weftwork::flow

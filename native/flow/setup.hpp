/// What a flow run is given, and what is made of it before flows begin.
/// Invariant: nothing here changes once the run has begun; a second run of the same input takes the ground over.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "flow/fold.hpp"
#include "flow/graph.hpp"
#include "flow/ids.hpp"
#include "flow/input.hpp"
#include "flow/network.hpp"

namespace weftwork::flow {

/// What the network's activities are in one epoch: see flow/epochs.hpp.
struct Epoch {
  IdVector<ActivityCell, Ps> latency_ps;                    // empty: there is one epoch, and the network tells it
  IdVector<ActivityCell, std::vector<double>> tier_weight;  // bytes by tier for each unit of amount; see done_of
  IdVector<ActivityCell, std::vector<double>> detour_tier_weight;  // under adaptive routing, of detours
};

/// What a run is made on; a second run of the same input takes it over.
struct Ground {
  std::unique_ptr<Folded> folded;           // where the job is run by cells, or has whole collectives
  IdVector<LinkCell, LinkId> link_of_cell;  // where no links are folded
  std::vector<Epoch> epochs;                // of the network
  std::vector<Graph> detours;               // by epoch, of the same activities by their detours; adaptive routing alone
  std::vector<std::int32_t> epoch_begins;   // by instant: the epoch that it begins, or -1
  std::int32_t copy = 0;                    // links of an epoch: how far its copies are from those of the one before
  IdVector<LinkCell, std::int32_t> epoch_of_cell;  // where there are several
};

struct Setup {
  Input in;
  Ground ground;
  bool is_ideal = false;             // the network takes no time
  const Network* network = nullptr;  // of the ground; null: lanes open as messages are posted

  /// Whether a constraint is a cell of links.
  [[nodiscard]] bool has_link_cells() const { return network != nullptr && ground.link_of_cell.empty(); }
  /// The constraint that a link is in an epoch, or none where nothing crosses it then.
  [[nodiscard]] ConstraintId constraint_of(LinkId link, std::int32_t in_epoch) const {
    return ConstraintId(has_link_cells() ? network->link_cell[link + in_epoch * ground.copy].value : link.value);
  }
  /// How many copies of its links the network has as constraints of their own.
  [[nodiscard]] std::int32_t link_copies() const {
    return has_link_cells() ? static_cast<std::int32_t>(ground.epochs.size()) : 1;
  }
  [[nodiscard]] RankId rank_of(ActorId actor) const {
    return network != nullptr ? network->actor_rank[actor] : RankId(actor.value);
  }
  [[nodiscard]] ProgramId program_of(ActorId actor) const {
    return network != nullptr ? network->actor_program[actor] : in.job.rank_program[rank_of(actor)];
  }
  [[nodiscard]] std::int64_t ranks_of(ActorId actor) const {
    return network != nullptr ? network->actor_ranks[actor] : 1;
  }
  [[nodiscard]] double factor_of(ActorId actor) const {
    return network != nullptr ? network->actor_factor[actor] : in.job.factor(rank_of(actor));
  }
};

}  // namespace weftwork::flow

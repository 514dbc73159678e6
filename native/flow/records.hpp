/// Records of max-min sharing. What the inner loop reads is apart from what it seldom needs, and fills whole cache
/// lines.
///
/// Words, those of Bertsekas and Gallager (Data Networks, 2nd edition, section 6.5.2) and of SimGrid's LMM solver
/// (Velho, Schnorr, Casanova and Legrand, ACM TOMACS 23(4), 2013, doi:10.1145/2517448):
///   constraint  a link with a capacity: the loads of the variables that cross it add up to that at most
///   variable    activities that cross the same constraints with the same weights, and therefore have one rate
///   enabled     of a variable: it has activities; of a constraint, *active*: an enabled variable crosses it
///   element     a variable on one of its constraints
///   weight      load of a variable on a constraint for each unit of its rate (in SimGrid: consumption weight)
///   share       the rate of every variable that is bound by a constraint
///   saturated   of a constraint: its capacity is used up
///   bottleneck  the saturated constraint of a variable on which no variable is faster; it *binds* the variable. Rates
///               are max-min fair when every variable has one
/// Leaves out: what is done with them (`sharing.hpp`, `sweep.hpp`, `filling.hpp`).
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "flow/ids.hpp"

namespace weftwork::flow {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr std::int32_t kNone = -1;

/// One constraint that a variable crosses: each activity puts `weight` units on it for each unit of service that it
/// gets.
struct ConstraintHop {
  ConstraintId constraint;
  double weight;
};

/// What the sweep reads of a constraint for every rate that it changes. A load outside [low, high] makes the constraint
/// dirty; the range is unbounded while it waits in the queue.
struct alignas(32) ConstraintLoad {
  double load = 0;           // units per ps
  double low = -kInfinity;   // unbounded too where the constraint is no variable's bottleneck
  double high = kInfinity;   //
  double share = kInfinity;  // rate of every variable bound here; infinite if there is none
};

/// A variable on a constraint: `hop` is the index of the constraint among the hops of the variable.
struct Element {
  VariableId variable;
  std::int32_t hop;
};

/// The next completion of a variable that is bound by a constraint, on the constraint's service counter. Stale if the
/// generation of the variable has moved on.
struct Due {
  double at;
  VariableId variable;
  std::uint32_t generation;
  bool operator<(const Due& other) const { return at > other.at; }  // the earliest on top of a heap
};

/// A variable in the list of its bottleneck: all that the sweep reads of it, in one row that is never looked up. Its
/// rate is the share of that constraint. Where its hops are few and of one weight they are here, without the
/// bottleneck; else they are in the arena.
struct alignas(32) BoundVariable {
  static constexpr std::size_t kInline = 5;                   // chosen: a path of a three-tier fat tree has six links
  static constexpr ConstraintId kEnd = ConstraintId::none();  // no more constraints
  static constexpr ConstraintId kElsewhere = ConstraintId(-2);

  double weight;  // load on each constraint, or on the bottleneck where hops are in the arena, per unit of rate
  VariableId variable;
  std::array<ConstraintId, kInline> other;
};
static_assert(sizeof(BoundVariable) == 32);

/// The rest of a constraint. Its service counter `served` is what one activity that is bound here has got since some
/// instant: it grows with `share`, so that a new share re-times all those activities at once.
struct Constraint {
  double capacity = 0;  // units per ps
  double served = 0;    // at `since_ps`
  double since_ps = 0;
  double bound_weight = 0;         // sum over the variables bound here; they take share x bound_weight
  double total_weight = 0;         // sum over all variables that cross
  double carried_units = 0;        // of variables that have left
  std::int64_t epoch = 0;          // last repair that froze the service counter
  std::int32_t active_at = kNone;  // place among the active constraints
  std::int32_t declared = 0;       // variables that may cross, enabled or not
  bool is_dirty = false;
  bool is_new = false;            // has got a share from a newcomer: others on it may be faster, whatever the load
  std::vector<Element> elements;  // enabled variables that cross
  std::vector<ConstraintId> bottleneck_of;     // by element: a scan finds the variables' rates without the variables
  std::vector<BoundVariable> bound_variables;  // those of them that have their bottleneck here
  std::vector<Due> due;                        // heap
};

/// When an activity ends, on the service counter of its variable.
struct Finish {
  double at;
  std::int64_t activity;
  bool operator<(const Finish& other) const {  // the earliest on top of a heap, ties by activity
    return at != other.at ? at > other.at : activity > other.activity;
  }
};

/// A variable. Its bottleneck is kept apart, since scans read nothing else. Its service counter is that of its
/// bottleneck plus `offset`.
struct Variable {
  double offset = 0;
  double base = 0;  // the variable has got activities x service - base since it was enabled
  std::uint32_t generation = 0;
  std::int32_t bound_at = kNone;    // place among the bound variables of its bottleneck
  std::int64_t first_hop = 0;       // in the arena
  std::int32_t length = 0;          // hops
  std::int32_t room = 0;            // hops that fit there
  std::int32_t bottleneck_hop = 0;  // index of the bottleneck among the hops
  bool is_narrow = false;           // few hops, of one weight
  bool is_unbound = false;
  std::vector<Finish> finishes;  // heap
};

/// The least of the constraints' numbers, which change one at a time: a tournament, so that a change costs the
/// logarithm.
class Tournament {
 public:
  explicit Tournament(std::size_t players) {
    while (leaves_ < players) leaves_ *= 2;
    nodes_.assign(2 * leaves_, kInfinity);
  }

  [[nodiscard]] double least() const { return nodes_[1]; }

  [[nodiscard]] ConstraintId winner() const {
    std::size_t node = 1;
    while (node < leaves_) node = nodes_[2 * node] <= nodes_[2 * node + 1] ? 2 * node : 2 * node + 1;
    return ConstraintId(node - leaves_);
  }

  void set(ConstraintId player, double value) {
    std::size_t node = leaves_ + player.index();
    nodes_[node] = value;
    while ((node /= 2) > 0) {
      const double least = std::min(nodes_[2 * node], nodes_[2 * node + 1]);
      if (nodes_[node] == least) break;
      nodes_[node] = least;
    }
  }

 private:
  std::size_t leaves_ = 1;
  std::vector<double> nodes_;
};

/// How much work the repairs were.
struct FluidStats {
  std::int64_t events = 0;  // repairs after starts, ends and changes of one instant
  std::int64_t full = 0;    // of which by filling from scratch
  std::int64_t links = 0;   // constraints brought to a new share
  std::int64_t rates = 0;   // rates of variables changed by the sweep
  std::int64_t moves = 0;   // variables that got another bottleneck
};

}  // namespace weftwork::flow

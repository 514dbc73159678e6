/// Records of the fluid engine: links, and classes of activities that use the same links. What the inner loop reads
/// is apart from what it seldom needs, and fills whole cache lines.
/// Leaves out: what is done with them (`sharing.hpp`, `sweep.hpp`, `filling.hpp`).
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "flow/hop.hpp"

namespace weftwork::flow {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr std::int32_t kNone = -1;

/// What the sweep reads of a link for every rate that it changes. A load outside [low, high] makes the link dirty; the
/// range is unbounded while it waits in the queue.
struct alignas(32) LinkLoad {
  double load = 0;           // units per ps
  double low = -kInfinity;   // unbounded too where the link is nobody's bottleneck
  double high = kInfinity;   //
  double level = kInfinity;  // rate of every activity that has its bottleneck here; infinite if there is none
};

/// A class on a link: `hop` is its index among the hops of the class.
struct Crossing {
  std::int32_t cls, hop;
};

/// The next completion of a class that has its bottleneck at a link, on the link's service counter. Stale if the
/// generation of the class has moved on.
struct Due {
  double at;
  std::int32_t cls;
  std::uint32_t generation;
  bool operator<(const Due& other) const { return at > other.at; }  // the earliest on top of a heap
};

/// A class among the own classes of its bottleneck: all that the sweep reads of it, in one row that is never looked up.
/// Its rate is the level of that link. Where its hops are few and of one weight they are here, without the bottleneck;
/// else they are in the arena.
struct alignas(32) Own {
  static constexpr std::size_t kInline = 5;  // chosen: a path of a three-tier fat tree has six links
  static constexpr std::int32_t kEnd = -1;   // no more links
  static constexpr std::int32_t kElsewhere = -2;

  double pull;  // load on each link, or on the bottleneck where hops are in the arena, per unit of rate
  std::int32_t cls;
  std::array<std::int32_t, kInline> other;
};
static_assert(sizeof(Own) == 32);

/// The rest of a link. Its service counter `served` is what one activity with its bottleneck here has got since some
/// instant: it grows with `level`, so that a new level re-times all those activities at once.
struct LinkState {
  double capacity = 0;  // units per ps
  double served = 0;    // at `since_ps`
  double since_ps = 0;
  double own_pull = 0;           // pulls of the own classes; they take level x own_pull
  double own_load = 0;           // what the own classes take; at rest own_pull x level
  double all_pull = 0;           // pulls of all classes that cross
  double carried_units = 0;      // of classes that have left
  std::int64_t epoch = 0;        // last repair that froze the service counter
  std::int32_t used_at = kNone;  // place among the links in use
  std::int32_t declared = 0;     // classes that may cross, active or not
  bool is_dirty = false;
  bool is_new = false;                // has got a level from a newcomer: others on it may be faster, whatever the load
  std::vector<Crossing> all;          // classes that cross
  std::vector<std::int32_t> held_at;  // bottlenecks of those classes: a scan finds their rates without the classes
  std::vector<Own> own;               // those of them that have their bottleneck here
  std::vector<Due> due;               // heap
};

/// When an activity ends, on the service counter of its class.
struct Finish {
  double at;
  std::int64_t activity;
  bool operator<(const Finish& other) const {  // the earliest on top of a heap, ties by activity
    return at != other.at ? at > other.at : activity > other.activity;
  }
};

/// A class. Its bottleneck is kept apart, since scans read nothing else. Its service counter is that of its bottleneck
/// plus `offset`.
struct ClassState {
  double offset = 0;
  double base = 0;  // the class has got activities x service - base since it became active
  std::uint32_t generation = 0;
  std::int32_t own_at = kNone;      // place among the own classes of its bottleneck
  std::int64_t first_hop = 0;       // in the arena
  std::int32_t length = 0;          // hops
  std::int32_t room = 0;            // hops that fit there
  std::int32_t bottleneck_hop = 0;  // index of the bottleneck among the hops
  bool is_narrow = false;           // few hops, of one weight
  bool is_fresh = false;
  std::vector<Finish> finishes;  // heap
};

/// The least of many numbers that change one at a time: a tournament, so that a change costs the logarithm.
class Tournament {
 public:
  explicit Tournament(std::size_t players) {
    while (leaves_ < players) leaves_ *= 2;
    nodes_.assign(2 * leaves_, kInfinity);
  }

  [[nodiscard]] double least() const { return nodes_[1]; }

  [[nodiscard]] std::int32_t winner() const {
    std::size_t node = 1;
    while (node < leaves_) node = nodes_[2 * node] <= nodes_[2 * node + 1] ? 2 * node : 2 * node + 1;
    return static_cast<std::int32_t>(node - leaves_);
  }

  void set(std::int32_t player, double value) {
    std::size_t node = leaves_ + static_cast<std::size_t>(player);
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
  std::int64_t links = 0;   // links brought to a new level
  std::int64_t rates = 0;   // rates of classes changed by the sweep
  std::int64_t moves = 0;   // classes that got another bottleneck
};

}  // namespace weftwork::flow

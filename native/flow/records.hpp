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

namespace weft::flow {

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

/// The rest of a link. Its service counter `served` is what one activity with its bottleneck here has got since some
/// instant: it grows with `level`, so that a new level re-times all those activities at once.
struct LinkState {
  double capacity = 0;  // units per ps
  double served = 0;    // at `since_ps`
  double since_ps = 0;
  double own_pull = 0;           // load per unit of level: pulls of the own classes
  double own_load = 0;           // what the own classes take; at rest own_pull x level
  double all_pull = 0;           // pulls of all classes that cross
  double carried_units = 0;      // of classes that have left
  std::int64_t epoch = 0;        // last repair that froze the service counter
  std::int32_t used_at = kNone;  // place among the links in use
  bool is_dirty = false;
  std::vector<Crossing> all;      // classes that cross
  std::vector<std::int32_t> own;  // those of them that have their bottleneck here
  std::vector<Due> due;           // heap
};

/// What the sweep reads of a class, in one cache line. The hop at the bottleneck comes first. Up to `kInline` hops of
/// one weight are held here; others lie in an arena.
struct alignas(64) ClassRate {
  static constexpr std::int32_t kInline = 9;

  double rate = 0;  // of each activity, units of service per ps
  double pull = 0;  // inline: activities x weight, load per unit of rate on each link; else: activities
  std::int32_t bottleneck = kNone;
  std::int32_t length = 0;     // hops
  std::int32_t spill = kNone;  // where the hops begin in the arena; kNone: they are here
  std::array<std::int32_t, kInline> link{};
};
static_assert(sizeof(ClassRate) == 64);

/// When an activity ends, on the service counter of its class.
struct Finish {
  double at;
  std::int64_t activity;
  bool operator<(const Finish& other) const {  // the earliest on top of a heap, ties by activity
    return at != other.at ? at > other.at : activity > other.activity;
  }
};

/// The rest of a class. Its service counter is that of its bottleneck plus `offset`.
struct ClassState {
  double offset = 0;
  double weight = 1;  // of every hop, where they are inline
  double base = 0;    // the class has got activities x service - base since it became active
  std::uint32_t generation = 0;
  std::int32_t own_at = kNone;  // place among the own classes of its bottleneck
  std::int64_t place_at = 0;    // where its places begin: those of its crossings in the lists of its links
  std::int32_t room = 0;        // hops that fit there
  std::int64_t spill_at = 0;    // where its hops lie in the arena, if they do
  std::int32_t spill_room = 0;  // hops that fit there
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

}  // namespace weft::flow

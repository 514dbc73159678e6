/// Who shares what: links, classes, the bottleneck of each class and the service counters that time its activities.
/// Leaves out: which rates are right (`sweep.hpp`, `filling.hpp`), and when to ask (`fluid.hpp`).
/// Invariants at rest: a class with activities has exactly one bottleneck among its links, is in that link's `own` and
/// in every one of its links' `all`; `own_load` and `load` are the sums that they say.
#pragma once
#include <span>
#include <utility>

#include "flow/records.hpp"

namespace weft::flow {

/// Service counters begin anew here, long before a double could not tell a thousandth of a byte any more.
inline constexpr double kCounterLimit = 0x1p40;

struct Sharing {
  Sharing(std::span<const double> capacity, double tolerance_)
      : tolerance(tolerance_), load(capacity.size()), links(capacity.size()), due(capacity.size()) {
    for (std::size_t link = 0; link < capacity.size(); ++link) {
      links[link].capacity = capacity[link];
      set_bounds(static_cast<std::int32_t>(link));
    }
  }

  double tolerance;
  double now_ps = 0;
  std::vector<LinkLoad> load;
  std::vector<LinkState> links;
  std::vector<ClassRate> rates;
  std::vector<ClassState> classes;
  std::vector<Hop> arena;            // hops that are not inline
  std::vector<std::int32_t> places;  // of the crossings of all classes
  std::vector<std::int32_t> used;    // links that any class crosses
  Tournament due;                    // next completion at each link
  std::int64_t epoch = 0;            // counts repairs
  std::vector<std::int32_t> opened;  // links whose service counter this repair has frozen
  std::int64_t live_classes = 0;     // classes with activities
  std::int64_t live_hops = 0;        // their crossings
  FluidStats stats;

  [[nodiscard]] std::int64_t activities(std::int32_t cls) const {
    return static_cast<std::int64_t>(classes[cls].finishes.size());
  }

  /// `visit(hop, link, pull)` for every hop; `pull` is the load on the link per unit of the class's rate.
  template <typename Visit>
  void for_hops(std::int32_t cls, Visit&& visit) const {
    const ClassRate& k = rates[cls];
    if (k.spill == kNone) {
      for (std::int32_t hop = 0; hop < k.length; ++hop) visit(hop, k.link[hop], k.pull);
    } else {
      for (std::int32_t hop = 0; hop < k.length; ++hop) {
        const Hop& h = arena[k.spill + hop];
        visit(hop, h.link, k.pull * h.weight);
      }
    }
  }

  /// Load on its bottleneck, the first hop, per unit of rate.
  [[nodiscard]] double first_pull(const ClassRate& k) const {
    return k.spill == kNone ? k.pull : k.pull * arena[k.spill].weight;
  }

  [[nodiscard]] double service(std::int32_t link) const { return service(link, now_ps); }
  [[nodiscard]] double service(std::int32_t link, double at_ps) const {
    const double level = load[link].level;
    return links[link].served + (level < kInfinity ? level * (at_ps - links[link].since_ps) : 0);
  }
  [[nodiscard]] double class_service(std::int32_t cls, double at_ps) const {
    const std::int32_t link = rates[cls].bottleneck;
    return classes[cls].offset + (link == kNone ? 0 : service(link, at_ps));
  }
  /// What each unit of weight of this class has carried since it became active.
  [[nodiscard]] double class_carried(std::int32_t cls, double at_ps) const {
    return static_cast<double>(activities(cls)) * class_service(cls, at_ps) - classes[cls].base;
  }

  /// Range of loads that leave the link alone.
  void set_bounds(std::int32_t link) {
    const LinkState& l = links[link];
    load[link].low = l.is_dirty || l.own.empty() ? -kInfinity : l.capacity * (1 - tolerance);
    load[link].high = l.is_dirty ? kInfinity : l.capacity * (1 + tolerance);
  }

  /// One activity more or less (`sign`), at the class's present rate; `finishes` has changed already.
  void change(std::int32_t cls, int sign) {
    ClassRate& k = rates[cls];
    const auto count = static_cast<double>(activities(cls));
    k.pull = k.spill == kNone ? count * classes[cls].weight : count;
    const auto apply = [&](std::int32_t link, double step) {
      load[link].load += step * k.rate;
      links[link].all_pull += step;
    };
    if (k.spill == kNone) {
      for (std::int32_t hop = 0; hop < k.length; ++hop) apply(k.link[hop], sign * classes[cls].weight);
    } else {
      for (std::int32_t hop = 0; hop < k.length; ++hop)
        apply(arena[k.spill + hop].link, sign * arena[k.spill + hop].weight);
    }
    if (k.bottleneck != kNone) {
      const double step = sign * (k.spill == kNone ? classes[cls].weight : arena[k.spill].weight);
      links[k.bottleneck].own_pull += step;
      links[k.bottleneck].own_load += step * k.rate;
    }
  }

  /// The class gets its first activity: its links know of it from now on.
  void enlist(std::int32_t cls) {
    ++live_classes;
    live_hops += rates[cls].length;
    for_hops(cls, [&](std::int32_t hop, std::int32_t link, double) {
      LinkState& l = links[link];
      if (l.all.empty()) {
        l.used_at = static_cast<std::int32_t>(used.size());
        used.push_back(link);
      }
      places[classes[cls].place_at + hop] = static_cast<std::int32_t>(l.all.size());
      l.all.push_back({cls, hop});
    });
  }

  /// The class leaves its links, with what it takes there; what it has carried stays in their books. Its own counter
  /// goes on from where it is.
  void delist(std::int32_t cls) {
    const double carried = class_carried(cls, now_ps);
    const double service = class_service(cls, now_ps);
    const bool has_activities = activities(cls) > 0;
    ClassRate& k = rates[cls];
    detach(cls);
    --live_classes;
    live_hops -= k.length;
    const double count = std::max<double>(1, static_cast<double>(activities(cls)));
    for (std::int32_t hop = 0; hop < k.length; ++hop) {
      const std::int32_t link = k.spill == kNone ? k.link[hop] : arena[k.spill + hop].link;
      const double weight = k.spill == kNone ? classes[cls].weight : arena[k.spill + hop].weight;
      LinkState& l = links[link];
      l.carried_units += weight * carried;
      const std::int32_t place = places[classes[cls].place_at + hop];
      const Crossing last = l.all.back();
      l.all[place] = last;
      places[classes[last.cls].place_at + last.hop] = place;
      l.all.pop_back();
      if (has_activities) {
        load[link].load -= k.rate * weight * count;
        l.all_pull -= weight * count;
      }
      if (l.all.empty()) retire(link);
    }
    k.rate = 0;
    ++classes[cls].generation;
    classes[cls].offset = has_activities ? service : 0;
    classes[cls].base = has_activities ? service * count : 0;
  }

  /// Freeze the service counter of a link: once in each repair, before its level or its own classes change.
  void open(std::int32_t link) {
    LinkState& l = links[link];
    if (l.epoch == epoch) return;
    l.epoch = epoch;
    opened.push_back(link);
    l.served = l.own.empty() ? 0 : service(link);
    l.since_ps = now_ps;
    if (l.served <= kCounterLimit) return;
    for (const std::int32_t cls : l.own) classes[cls].offset += l.served;
    for (Due& entry : l.due) entry.at -= l.served;
    l.served = 0;
  }

  /// Make hop `hop` of a class its bottleneck. Both links must be open.
  void attach(std::int32_t cls, std::int32_t hop) {
    ClassRate& k = rates[cls];
    const std::int32_t link = k.spill == kNone ? k.link[hop] : arena[k.spill + hop].link;
    if (k.bottleneck == link) return;
    ++stats.moves;
    ClassState& c = classes[cls];
    const double service = c.offset + (k.bottleneck == kNone ? 0 : links[k.bottleneck].served);
    detach(cls);
    bring_first(cls, hop);
    LinkState& l = links[link];
    k.bottleneck = link;
    c.offset = service - l.served;
    c.own_at = static_cast<std::int32_t>(l.own.size());
    l.own.push_back(cls);
    const double pull = first_pull(k);
    l.own_pull += pull;
    l.own_load += pull * k.rate;
    set_bounds(link);
    post(cls);
  }

  /// Put the next completion of the class on the agenda of its bottleneck; the entry before is stale then.
  void post(std::int32_t cls) {
    ClassState& c = classes[cls];
    LinkState& l = links[rates[cls].bottleneck];
    if (l.due.size() > 4 * l.own.size() + 64) {
      std::erase_if(l.due, [&](const Due& entry) { return classes[entry.cls].generation != entry.generation; });
      std::make_heap(l.due.begin(), l.due.end());
    }
    l.due.push_back({c.finishes.front().at - c.offset, cls, ++c.generation});
    std::push_heap(l.due.begin(), l.due.end());
  }

  /// Drop stale entries from the top of a link's agenda; false if nothing is left.
  bool has_due(std::int32_t link) {
    std::vector<Due>& heap = links[link].due;
    while (!heap.empty() && classes[heap.front().cls].generation != heap.front().generation) pop_due(link);
    return !heap.empty();
  }
  void pop_due(std::int32_t link) {
    std::pop_heap(links[link].due.begin(), links[link].due.end());
    links[link].due.pop_back();
  }

  /// Tell the tournament when the next activity ends that has its bottleneck at this link.
  void retime(std::int32_t link) {
    double at_ps = kInfinity;
    if (has_due(link)) {
      const LinkState& l = links[link];
      const double rest = l.due.front().at - l.served;
      if (rest <= 0)
        at_ps = now_ps;               // the counter may have stood still since long
      else if (load[link].level > 0)  // else it stalls
        at_ps = std::max(now_ps, l.since_ps + rest / load[link].level);
    }
    due.set(link, at_ps);
  }

  /// A link that is nobody's bottleneck any more has no level.
  void drop_level(std::int32_t link) {
    if (!links[link].own.empty() || load[link].level == kInfinity) return;
    open(link);
    load[link].level = kInfinity;
  }

 private:
  void detach(std::int32_t cls) {
    ClassRate& k = rates[cls];
    if (k.bottleneck == kNone) return;
    LinkState& l = links[k.bottleneck];
    const std::int32_t place = classes[cls].own_at;
    l.own[place] = l.own.back();
    classes[l.own[place]].own_at = place;
    l.own.pop_back();
    const double pull = first_pull(k);
    l.own_pull = l.own.empty() ? 0 : l.own_pull - pull;
    l.own_load = l.own.empty() ? 0 : l.own_load - pull * k.rate;
    set_bounds(k.bottleneck);
    k.bottleneck = kNone;
  }

  void bring_first(std::int32_t cls, std::int32_t hop) {
    if (hop == 0) return;
    ClassRate& k = rates[cls];
    if (k.spill == kNone)
      std::swap(k.link[0], k.link[hop]);
    else
      std::swap(arena[k.spill], arena[k.spill + hop]);
    std::int32_t* place = &places[classes[cls].place_at];
    std::swap(place[0], place[hop]);
    for (const std::int32_t moved : {0, hop}) {
      const std::int32_t link = k.spill == kNone ? k.link[moved] : arena[k.spill + moved].link;
      links[link].all[place[moved]].hop = moved;
    }
  }

  /// Nobody crosses the link any more: what rounding has left in its sums goes.
  void retire(std::int32_t link) {
    LinkState& l = links[link];
    load[link].load = 0;
    load[link].level = kInfinity;
    l.all_pull = 0;
    used[l.used_at] = used.back();
    links[used[l.used_at]].used_at = l.used_at;
    used.pop_back();
    l.used_at = kNone;
  }
};

}  // namespace weft::flow

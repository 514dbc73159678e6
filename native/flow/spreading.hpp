/// Even spreading of a flow over all paths of the rule: what comes to the switches of each colour, link by link.
/// Meaning: docs/models/flow-engine-paths.md, "Bundles". Leaves out: detours (flow/detours.hpp).
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "flow/bundles.hpp"
#include "flow/fabric_view.hpp"
#include "flow/ids.hpp"
#include "flow/search.hpp"
#include "flow/tiers.hpp"

namespace weftwork::flow {

/// What has come to the switches of a colour.
struct Spread {
  ColourId colour;
  NodeId node;
  double fraction;
  std::int64_t latency_ps;
};

/// Spreads by colour, each colour once.
class SpreadLevel {
 public:
  void reset(std::size_t colours) {
    clear();
    place_.assign(colours, -1);
  }
  void clear() {
    for (const Spread& spread : items_) place_[spread.colour] = -1;
    items_.clear();
  }
  void add(const Spread& spread) {
    std::int32_t& place = place_[spread.colour];
    if (place < 0) {
      place = static_cast<std::int32_t>(items_.size());
      items_.push_back(spread);
      return;
    }
    Spread& same = items_[static_cast<std::size_t>(place)];
    same.fraction += spread.fraction;
    same.latency_ps = std::max(same.latency_ps, spread.latency_ps);
  }
  void swap(SpreadLevel& other) noexcept {
    items_.swap(other.items_);
    place_.items().swap(other.place_.items());
  }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }

 private:
  std::vector<Spread> items_;
  IdVector<ColourId, std::int32_t> place_;  // -1: not there
};

/// Routes towards one attachment.
class Towards {
 public:
  /// `scratch` is for one call at a time.
  Towards(const FabricView& fabric, const Tiers& tiers, const Bundles& bundles, Search& search, NodeId goal,
          std::vector<Bundle>& scratch)
      : fabric_(fabric),
        tiers_(tiers),
        bundles_(bundles),
        search_(search),
        attachment_(tiers.attachment(goal)),
        left_(tiers.knows(attachment_) ? nullptr : &search.to(fabric, tiers, attachment_, goal)),
        goal_(goal),
        scratch_(scratch) {}

  [[nodiscard]] NodeId goal() const { return goal_; }
  [[nodiscard]] bool is_searched() const { return left_ != nullptr; }

  /// Pass what has come to the switches of a colour on: `cross(bundle, weight of each link)` for each bundle, and to
  /// `next` what comes to its far end. False where no path leads on.
  template <typename Cross>
  bool pass(const Spread& spread, SpreadLevel& next, Cross&& cross) const {
    const std::span<const Bundle> onward = bundles(spread);
    std::int64_t links = 0;
    for (const Bundle& bundle : onward) links += bundle.per_node;
    if (links == 0) return false;
    const double weight =
        spread.fraction / (static_cast<double>(bundles_.size(spread.colour)) * static_cast<double>(links));
    for (const Bundle& bundle : onward) {
      cross(bundle, weight);
      const double fraction = spread.fraction * static_cast<double>(bundle.per_node) / static_cast<double>(links);
      next.add({bundle.colour, bundle.node, fraction, spread.latency_ps + bundle.delay_ps});
    }
    return true;
  }

 private:
  [[nodiscard]] std::span<const Bundle> bundles(const Spread& spread) const {
    if (left_ != nullptr) return closer(spread);
    if (tiers_.is_above(spread.node, attachment_))
      return bundles_.down(spread.colour, tiers_.chain(attachment_, fabric_.tier(spread.node) - 1));
    return bundles_.up(spread.colour);
  }

  /// Bundles of a colour on paths to the destination; in dimension order those of the lowest dimension.
  [[nodiscard]] std::span<const Bundle> closer(const Spread& spread) const {
    scratch_.clear();
    for (const Bundle& bundle : bundles_.of(spread.colour)) {
      // the representative of a bundle may start at another switch of the colour, which is as far away
      if (!search_.leads(fabric_, tiers_, *left_, spread.node, bundle.node, bundle.port)) continue;
      if (search_.rule().in_dimension_order && !scratch_.empty()) {
        if (bundle.dimension > scratch_.front().dimension) continue;
        if (bundle.dimension < scratch_.front().dimension) scratch_.clear();
      }
      scratch_.push_back(bundle);
    }
    return scratch_;
  }

  const FabricView& fabric_;
  const Tiers& tiers_;
  const Bundles& bundles_;
  const Search& search_;
  AttachmentId attachment_;
  const Search::HopsLeft* left_;  // null: the tiers know the way
  NodeId goal_;
  std::vector<Bundle>& scratch_;
};

}  // namespace weftwork::flow

/// Pinned entropies of queue pairs; other queue pairs draw theirs.
/// Source: docs/models/packet-engine.md, "Entropy". Leaves out: which way an entropy stands for (routes).
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/flow_identity.hpp"
#include "rows/fabric.hpp"

namespace weftwork {

class Pins {
 public:
  Pins() = default;
  explicit Pins(std::span<const PinRow> rows) : rows_(rows.begin(), rows.end()) {
    std::sort(rows_.begin(), rows_.end(), precedes);
  }

  /// The entropy that a flow's queue pair has where no policy chooses another.
  [[nodiscard]] std::uint16_t own_entropy(std::uint64_t seed, std::uint64_t flow) const {
    if (!rows_.empty()) {
      const FlowEnds ends = flow_ends(flow);
      for (const std::int64_t channel : {ends.channel, kEveryChannel}) {
        const PinRow wanted{ends.source, ends.destination, channel, 0};
        const auto found = std::lower_bound(rows_.begin(), rows_.end(), wanted, precedes);
        if (found != rows_.end() && !precedes(wanted, *found)) return static_cast<std::uint16_t>(found->entropy);
      }
    }
    return flow_entropy(seed, flow);
  }

 private:
  static constexpr std::int64_t kEveryChannel = -1;

  static bool precedes(const PinRow& a, const PinRow& b) {
    if (a.source != b.source) return a.source < b.source;
    return a.destination != b.destination ? a.destination < b.destination : a.channel < b.channel;
  }

  std::vector<PinRow> rows_;
};

}  // namespace weftwork

/// Ways between two switches where routes have layers: which of them a flow's entropy takes, and the layer of each.
/// Source: docs/models/packet-engine.md, "Route". Tables come from weftwork.topology.layers.
/// Leaves out: where a layer leads (packet/routes.hpp, flow/layers.hpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.hpp"

namespace weftwork {

/// The ways of every pair of attachments, borrowed. The first `pinned` of a pair are those of the entropies of that
/// number; all other entropies share the rest, the free ones.
class WayTable {
 public:
  WayTable() = default;
  /// `layer_of` by attachment of origin, of destination, then way.
  WayTable(std::span<const std::int32_t> layer_of, std::size_t attachments, std::int64_t pinned, std::int64_t ways)
      : layer_of_(layer_of),
        attachments_(attachments),
        pinned_(static_cast<std::size_t>(pinned)),
        ways_(static_cast<std::size_t>(ways)) {}

  /// The layers of the free ways.
  [[nodiscard]] std::span<const std::int32_t> free_layers(AttachmentId from, AttachmentId to) const {
    return layer_of_.subspan(place(from, to) + pinned_, ways_ - pinned_);
  }
  /// The layer of the way that an entropy takes, as a span of one; empty where it has none.
  [[nodiscard]] std::span<const std::int32_t> layer_of(AttachmentId from, AttachmentId to,
                                                       std::uint16_t entropy) const {
    std::size_t way = entropy;
    if (way >= pinned_) {
      if (ways_ <= pinned_) return {};
      way = pinned_ + way % (ways_ - pinned_);
    }
    return layer_of_.subspan(place(from, to) + way, 1);
  }

 private:
  [[nodiscard]] std::size_t place(AttachmentId from, AttachmentId to) const {
    return (from.index() * attachments_ + to.index()) * ways_;
  }

  std::span<const std::int32_t> layer_of_;
  std::size_t attachments_ = 0, pinned_ = 0, ways_ = 0;
};

}  // namespace weftwork

/// Sender state of selective repeat: packets kept by the receiver, and lost packets.
/// Source: docs/models/packet-engine.md, "Selective repeat". Exists only for queue pairs that have lost something.
/// Leaves out: bytes, see recovery.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/containers.hpp"
#include "packet/packet_set.hpp"

namespace weftwork {

class Selective {
 public:
  /// A packet that was sent again, and the number of the first packet that was sent for the first time after it.
  struct Resent {
    std::int64_t seq, mark;
  };

  [[nodiscard]] bool has_lost() const { return !lost_.empty(); }
  /// The first lost packet, if there is one.
  [[nodiscard]] std::int64_t first_lost() const { return lost_.first(); }
  /// A packet that is not in flight any more; -1: there is none.
  struct Away {
    std::int64_t seq = -1;
    bool kept = false;  // by the receiver; else lost
  };
  /// The first packet below `end` that is not in flight leaves.
  Away take_away_below(std::int64_t end) {
    for (PacketSet* set : {&kept_, &lost_}) {
      if (set->empty() || set->first() >= end) continue;
      const std::int64_t seq = set->first();
      set->erase(seq);
      return {seq, set == &kept_};
    }
    return {};
  }

  /// What was known of a packet that the receiver is now known to keep.
  enum class Before : std::uint8_t { kInFlight, kLost, kKept };
  /// The receiver keeps `seq`.
  Before keep(std::int64_t seq, std::int64_t una) {
    if (kept_.contains(seq)) return Before::kKept;
    must_hold(seq >= una, Invariant::packet_is_kept_or_lost, "seq una", seq, una);
    const bool was_lost = lost_.contains(seq);
    if (was_lost) lost_.erase(seq);
    kept_.insert(seq, una);
    must_hold(!lost_.contains(seq), Invariant::packet_is_kept_or_lost, "seq una was_lost", seq, una, was_lost);
    return was_lost ? Before::kLost : Before::kInFlight;
  }

  /// `seq` was cut on its way. Returns whether it is lost by that and was in flight until now.
  bool trim(std::int64_t seq, std::int64_t una) {
    if (!lose(seq, una)) return false;
    if (spared_.contains(seq)) spared_.erase(seq);
    auto& items = resent_.items;
    items.erase(std::remove_if(items.begin() + static_cast<std::ptrdiff_t>(resent_.head), items.end(),
                               [&](const Resent& entry) { return entry.seq == seq; }),
                items.end());
    if (resent_.empty()) resent_.clear();
    return true;
  }

  /// Packets below `end` that were not sent again, or were sent again before `end` was sent, are lost unless they are
  /// kept: the next one that was not known to be; -1 where there is none.
  std::int64_t judge(std::int64_t una, std::int64_t end) {
    for (judged_below_ = std::max(judged_below_, una); judged_below_ < end;) {
      const std::int64_t seq = judged_below_++;
      if (spared_.contains(seq))
        spared_.erase(seq);
      else if (lose(seq, una))
        return seq;
    }
    while (!resent_.empty() && resent_.front().mark <= end) {
      const std::int64_t seq = resent_.front().seq;
      resent_.pop();
      if (seq >= una && lose(seq, una)) return seq;
    }
    return -1;
  }

  /// The first lost packet is sent again, with `nxt` the next one that has not been sent.
  void resend(std::int64_t una, std::int64_t nxt) {
    must_hold(!lost_.empty(), Invariant::packet_is_kept_or_lost, "una nxt", una, nxt);
    const std::int64_t seq = lost_.first();
    must_hold(seq >= una && seq < nxt && !kept_.contains(seq), Invariant::packet_is_kept_or_lost, "seq una nxt", seq,
              una, nxt);
    lost_.erase(seq);
    if (seq >= judged_below_) {
      while (!spared_.empty() && spared_.first() < una) spared_.erase(spared_.first());
      spared_.insert(seq, una);
    }
    resent_.push({seq, nxt});
  }

  /// Everything that was sent and is not kept is lost.
  void lose_all(std::int64_t una, std::int64_t nxt) {
    must_hold(una <= nxt, Invariant::packet_numbers_in_order, "una nxt", una, nxt);
    for (std::int64_t seq = una; seq < nxt; ++seq) lose(seq, una);
    must_hold(lost_.empty() || lost_.first() >= una, Invariant::packet_is_kept_or_lost, "una nxt", una, nxt);
    judged_below_ = nxt;
    while (!resent_.empty()) resent_.pop();
    spared_ = {};
  }

  MessageId message;  // the last one that was looked for; none: look from the oldest message on

 private:
  bool lose(std::int64_t seq, std::int64_t una) {
    if (kept_.contains(seq) || lost_.contains(seq)) return false;
    lost_.insert(seq, una);
    must_hold(seq >= una && !kept_.contains(seq), Invariant::packet_is_kept_or_lost, "seq una", seq, una);
    return true;
  }

  PacketSet kept_, lost_;
  std::int64_t judged_below_ = 0;
  Fifo<Resent> resent_;
  PacketSet spared_;  // of those, packets from `judged_below_` on: lost, since they were cut, before one overtook them
};

}  // namespace weftwork

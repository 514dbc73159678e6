/// Records of a NIC port and of both ends of a queue pair.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/failover.hpp"
#include "base/ids.hpp"
#include "packet/containers.hpp"
#include "packet/ids.hpp"
#include "packet/open_messages.hpp"
#include "packet/packet.hpp"
#include "packet/policy.hpp"
#include "packet/selective.hpp"
#include "packet/sent_entropies.hpp"
#include "rows/policies.hpp"

namespace weftwork {

inline constexpr QueuePairId kMovedAway;  // in a slot whose queue pair has another port now

/// A NIC port: who may send next, and what waits for the host.
struct NicPort {
  struct Paced {
    Ps at_ps;
    SlotId slot;
  };
  IdVector<SlotId, QueuePairId> slots;  // or kMovedAway
  IdBitmap<SlotId> ready;               // may send as far as pacing is concerned
  std::vector<Paced> paced;             // heap by (instant, slot)
  SlotId turn{0};                       // that is asked first
  std::uint32_t ready_count = 0;
  std::int64_t early_packets = 0;                   // that its receivers keep behind gaps
  IdVector<ReceiverSlotId, QueuePairId> receivers;  // or kMovedAway
  Packet* interface_head = nullptr;                 // of the packets in the host interface, each with its arrival
  Packet* interface_tail = nullptr;
  Ps pcie_free_at_ps = 0;
  std::int64_t pcie_rate_bps = 0;   // 0: takes no time
  bool has_host_interface = false;  // data packets pass one
  std::int64_t receive_used_bytes = 0;
  bool pauses = false;                // has asked the fabric to pause
  std::vector<std::uint64_t> shared;  // record that the receiver's steps share
};

enum class Standing : std::uint8_t { kBlocked, kReady, kPaced };

/// How often timers of a policy have fired at one instant.
struct Firings {
  Ps at_ps = kOff;
  std::int64_t count = 0;
};

/// What sending a packet and its ACK touch fills two cache lines; what some runs need is in the third.
struct alignas(64) Sender {
  std::int64_t una = 0, nxt = 0, high = 0, end = 0;
  std::int64_t una_bytes = 0, nxt_bytes = 0, end_bytes = 0;  // payload before una, nxt and end
  std::int64_t away_bytes = 0;                               // payload from una to nxt that is not in flight
  Ps next_send_at_ps = 0;
  Ps deadline_at_ps = kOff, deadline_entry_at_ps = kOff;
  std::int64_t credit_limit = 0;
  MessageId una_message, nxt_message, last_message;
  SlotId slot;
  std::uint32_t retries = 0;
  std::uint16_t attempt = 0;
  std::uint16_t entropy = 0;  // that the next packet carries
  std::uint32_t hash = 0;     // digest for that entropy
  Standing standing = Standing::kBlocked;
  bool failed = false;
  bool started = false;
  std::uint32_t probes = 0;
  Ps base_rtt_ps = 0;
  Ps timer_entry_at_ps[kTimers] = {kOff, kOff, kOff, kOff};
  Ps segment_at_ps = 0;  // when the segment began; kept where `Input::keeps_segments`
  std::int64_t segment_sent_bytes = 0;
};
static_assert(sizeof(Sender) == 192);

/// Payload that was sent and of which nothing is known: neither acknowledged, nor kept by the receiver, nor lost.
inline std::int64_t inflight_bytes(const Sender& sender) {
  return sender.nxt_bytes - sender.una_bytes - sender.away_bytes;
}

/// Flags of packets that arrived early: a ring by packet number, one place for each packet of the window.
class EarlyPackets {
 public:
  [[nodiscard]] bool empty() const { return flags_.empty(); }
  void resize(std::int64_t window_packets) { flags_.resize(static_cast<std::size_t>(window_packets)); }
  auto operator[](std::int64_t seq) { return flags_[static_cast<std::size_t>(seq) % flags_.size()]; }

 private:
  std::vector<bool> flags_;
};

struct alignas(64) Receiver {
  std::int64_t expected = 0;
  std::int64_t delivered = 0, claimed = 0;  // messages
  MessageId message;                        // first that is not delivered, or not among the open messages
  ReceiverSlotId slot;                      // none before the first packet
  std::uint16_t control_packets = 0;
  std::uint8_t last_credit_code = 0xFF;
  bool nak_sent = false;
  bool marked = false;
  std::int64_t kept_count = 0;
  EarlyPackets kept;       // only with a reordering receiver
  EarlyPackets kept_asks;  // of those kept: whether it asked for an ACK
  Ps timer_entry_at_ps[kTimers] = {kOff, kOff, kOff, kOff};
  Firings firings;
};

struct QueuePair {
  std::uint64_t flow = 0;  // identity
  PortId source_port, destination_port;
  RankId source_rank, destination_rank;
  std::int32_t channel = 0;
  std::uint16_t own_entropy = 0;
  std::uint32_t reverse_hash = 0;
  std::int32_t messages = 0;
  std::uint8_t* congestion = nullptr;  // records of the policies
  std::uint8_t* receiver_record = nullptr;
  std::uint8_t* path = nullptr;
  Sender sender;
  Receiver receiver;
  std::unique_ptr<Selective> selective;         // under selective repeat, from the first loss on
  std::unique_ptr<OpenMessages> open_messages;  // where messages are delivered in any order, from the first packet on
  ColumnId column;                              // of its first SEND
  bool peer_rail = false;
  std::uint16_t requests = 0;          // sent so far
  std::int64_t granted_bytes = 0;      // at the sender: the most that a CREDIT has told
  std::int64_t credited_bytes = 0;     // at the receiver: what its last CREDIT told
  std::int64_t marked_bytes = 0;       // at the receiver: payload that has arrived with a mark
  std::int64_t marked_bytes_seen = 0;  // at the sender: of that count
  Ps paced_entry_at_ps = kOff;         // entry among `NicPort::paced` that counts, where departures move
  Ps path_timer_entry_at_ps[kTimers] = {kOff, kOff, kOff, kOff};
  Firings sender_firings, path_firings;
  SentEntropies sent_entropies;  // where `Setup::keeps_entropies`
};

}  // namespace weftwork

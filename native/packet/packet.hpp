/// A packet between two ports: a record of 32, 64, 128, 256 or 512 bytes, one stride a run, written once per hop into
/// the stream of its egress port. Departing stamps its arrival. Streams are chains of blocks from one pool, so they
/// grow without copying. Invariant: the record at a stream's tail has `at_ps` = never, so a reader at the tail knows
/// that nothing is there.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/ids.hpp"
#include "packet/policy.hpp"
#include "rows/policies.hpp"

namespace weftwork {

enum class PacketKind : std::uint8_t { kData, kAck, kNak, kCnp, kCredit, kProbe, kRequest };

/// Value of `Packet::at_ps` for a packet that was dropped before it departed; the reader passes over it.
inline constexpr Ps kFlushedPs = -2;

enum PacketFlag : std::uint8_t {
  kMarked = 1,      // congestion experienced; on an ACK or NAK: echoed
  kAckRequest = 2,  // DATA
  kFirst = 4,       // DATA: first of its message
  kLost = 8,        // its link went down while it was on the wire
  kHasEcho = 16,    // ACK, NAK: the extension echoes the packet that caused it
  kForward = 32,    // travels from the queue pair's source to its destination
  kCut = 64,        // DATA: cut to its headers; ACK, NAK: of such a packet
  kLastHop = 128,   // with kCut: by the switch of the receiver
};

/// A set of flags; an enumeration of its own, since a byte could alias everything and would cost reloads.
enum class PacketFlags : std::uint8_t {};

inline bool has(PacketFlags flags, PacketFlag flag) {
  return (static_cast<unsigned>(flags) & flag) != 0;
}
inline PacketFlags with(PacketFlags flags, PacketFlag flag) {
  return static_cast<PacketFlags>(static_cast<unsigned>(flags) | flag);
}

struct Packet {
  Ps at_ps;  // arrival at the far end of the link; never: not departed yet
  QueuePairId queue_pair;
  std::uint32_t seq;   // DATA: number of the packet; from the receiver: next expected number; PROBE: una
  std::uint32_t hash;  // digest of the fields that the fabric's first hash function takes
  PortId destination_port;
  std::uint16_t bytes;    // of the frame
  std::uint16_t ingress;  // LocalQueueId of the port and class by which it came into this node
  std::uint16_t attempt;  // transmission number, part of the identity
  PacketKind kind;
  PacketFlags flags;
};
static_assert(sizeof(Packet) == 32);

/// Second 32 bytes, where a run needs them.
struct Extension {
  Ps sent_at_ps;  // DATA: start of transmission at the NIC; ACK, NAK: of the packet that caused it
  union {
    Ps host_delay_ps;           // ACK, NAK
    std::int64_t credit_bytes;  // CREDIT
  };
  union {
    std::uint32_t msn;            // ACK, NAK: messages delivered
    std::uint32_t payload_bytes;  // DATA, also when it is cut
  };
  std::uint16_t entropy;
  std::uint8_t credit_code;  // ACK, NAK
  std::uint8_t hops;         // DATA, REQUEST: switches passed; ACK, NAK: by the packet that caused it
  PortId origin_port;        // the NIC port that has sent the packet; filled where queue pairs may move
  std::uint32_t refused;     // NAK under selective repeat: number of the packet that caused it
};
static_assert(sizeof(Extension) == 32);

/// Third and fourth 32 bytes, where a policy reads or writes one of these.
struct Wide {
  std::int64_t word;  // of port selection
  union {
    std::int64_t request_bytes;  // DATA, REQUEST
    std::int64_t marked_bytes;   // ACK, NAK: the receiver's count
  };
  AttachmentId via;        // that is passed first; none
  std::uint8_t path_load;  // DATA: largest code of the switches passed; ACK, NAK: of the packet that caused it
  std::uint8_t unused[43];
};
static_assert(sizeof(Wide) == 64);
inline constexpr std::size_t kWideUsed = offsetof(Wide, unused);

/// What one switch writes into a packet: 64 bits of instant, 44 of bytes sent, 20 of the rate's number in the run's
/// table, 24 of the port, and 40 of queue.
struct Hop {
  Ps at_ps;
  std::uint64_t bytes_and_rate;  // bytes sent << 20 | number of the rate
  std::uint64_t port_and_queue;  // port << 40 | queue

  static Hop of(Ps at_ps, std::int64_t queue_bytes, std::int64_t tx_bytes, RateId rate, PortId port) {
    return {at_ps, static_cast<std::uint64_t>(tx_bytes) << kRateBits | static_cast<std::uint32_t>(rate.value),
            static_cast<std::uint64_t>(static_cast<std::uint32_t>(port.value)) << kQueueBits |
                static_cast<std::uint64_t>(queue_bytes)};
  }
  [[nodiscard]] std::int64_t tx_bytes() const { return static_cast<std::int64_t>(bytes_and_rate >> kRateBits); }
  [[nodiscard]] RateId rate() const {
    return RateId(static_cast<std::int32_t>(bytes_and_rate & ((1U << kRateBits) - 1)));
  }
  [[nodiscard]] std::int64_t port() const { return static_cast<std::int64_t>(port_and_queue >> kQueueBits); }
  [[nodiscard]] std::int64_t queue_bytes() const {
    return static_cast<std::int64_t>(port_and_queue & ((std::uint64_t{1} << kQueueBits) - 1));
  }

  static constexpr unsigned kRateBits = 20;
  static constexpr unsigned kQueueBits = 40;
  static constexpr std::int64_t kMostPorts = 1 << 24;
  static constexpr std::size_t kMostRates = 1U << kRateBits;
};
static_assert(sizeof(Hop) == 24);

inline constexpr std::size_t kPlainStride = 32;
inline constexpr std::size_t kExtendedStride = 64;
inline constexpr std::size_t kWideStride = 128;
inline constexpr std::size_t kTelemetryStride = 256;      // 64 + 8 x 24
inline constexpr std::size_t kWideTelemetryStride = 512;  // 128 + 8 x 24

inline Extension& extension(Packet* packet) {
  return *reinterpret_cast<Extension*>(reinterpret_cast<std::uint8_t*>(packet) + sizeof(Packet));
}
inline const Extension& extension(const Packet* packet) {
  return *reinterpret_cast<const Extension*>(reinterpret_cast<const std::uint8_t*>(packet) + sizeof(Packet));
}
inline Wide& wide(Packet* packet) {
  return *reinterpret_cast<Wide*>(reinterpret_cast<std::uint8_t*>(packet) + kExtendedStride);
}
/// Records of telemetry; in a wide packet behind `Wide`.
inline Hop* hops(Packet* packet, bool is_wide) {
  return reinterpret_cast<Hop*>(reinterpret_cast<std::uint8_t*>(packet) + (is_wide ? kWideStride : kExtendedStride));
}

/// How many switches have written into a data packet, or into the one that an ACK or NAK echoes; all that telemetry
/// passes offer it, and one that was cut has lost it.
inline std::size_t recorded_hops(const Packet* packet) {
  return has(packet->flags, kCut) ? 0 : std::min<std::size_t>(extension(packet).hops, kHops);
}
/// Copy what `filled` switches have written, in pieces of a size that the compiler knows: the last may hold more.
inline void copy_hops(void* to, const void* from, std::size_t filled) {
  constexpr std::size_t kPiece = 64;
  static_assert(kHops * sizeof(Hop) % kPiece == 0);
  for (std::size_t done = 0; done < filled * sizeof(Hop); done += kPiece)
    std::memcpy(static_cast<std::uint8_t*>(to) + done, static_cast<const std::uint8_t*>(from) + done, kPiece);
}
/// Whether a packet counts the switches that it passes in its extension.
inline bool counts_switches(const Packet& packet) {
  return packet.kind == PacketKind::kData || packet.kind == PacketKind::kRequest;
}
/// Whether it is a data packet that was not cut: it takes marks and telemetry.
inline bool is_whole_data(const Packet& packet) {
  return packet.kind == PacketKind::kData && !has(packet.flags, kCut);
}

/// The identity of a packet within its flow (weftwork.base.random.draw).
inline std::uint64_t identity(const Packet& packet) {
  return packet.seq | (static_cast<std::uint64_t>(packet.attempt) << 32) |
         (static_cast<std::uint64_t>(packet.kind) << 48);
}

/// Where records lie in their blocks, for a loop that keeps it in registers.
struct PacketPlaces {
  std::size_t stride, block_bytes, link_offset;

  [[nodiscard]] bool is_link(const std::uint8_t* record) const {
    return (reinterpret_cast<std::uintptr_t>(record) & (block_bytes - 1)) == link_offset;
  }
  static std::uint8_t*& link(std::uint8_t* last) { return *reinterpret_cast<std::uint8_t**>(last); }
  /// The record after `packet` in its stream.
  [[nodiscard]] Packet* next(Packet* packet) const {
    std::uint8_t* after = reinterpret_cast<std::uint8_t*>(packet) + stride;
    return reinterpret_cast<Packet*>(is_link(after) ? link(after) : after);
  }
};

/// Blocks of 16 records, aligned to their size. The last record of a block holds the link to the next block, beside the
/// last packet, whose reader needs it next.
class PacketPool {
 public:
  explicit PacketPool(std::size_t stride)
      : stride_(stride), block_bytes_(stride * kBlockRecords), link_offset_(block_bytes_ - stride) {}

  [[nodiscard]] std::size_t stride() const { return stride_; }
  [[nodiscard]] PacketPlaces places() const { return {stride_, block_bytes_, link_offset_}; }
  /// Blocks that belong to streams.
  [[nodiscard]] std::int64_t blocks_taken() const { return blocks_taken_; }

  /// A new stream: its one position is head, departure and tail.
  Packet* open() {
    auto* first = reinterpret_cast<Packet*>(take());
    first->at_ps = kNeverPs;
    return first;
  }

  /// The record after `packet` in its stream.
  Packet* next(Packet* packet) const { return places().next(packet); }

  /// Whether the record after `packet` lies in another block.
  [[nodiscard]] bool is_last_of_block(const Packet* packet) const {
    return is_link(reinterpret_cast<const std::uint8_t*>(packet) + stride_);
  }

  /// Extend the stream behind its tail and return the new tail; the old tail is the caller's to fill.
  [[gnu::always_inline]] Packet* extend(Packet* tail) {
    must_hold(tail->at_ps == kNeverPs, Invariant::reader_stays_behind_the_writer, "at_ps queue_pair seq", tail->at_ps,
              tail->queue_pair, tail->seq);
    std::uint8_t* after = reinterpret_cast<std::uint8_t*>(tail) + stride_;
    if (is_link(after)) {
      std::uint8_t* block = take();
      link(after) = block;
      after = block;
    }
    auto* fresh = reinterpret_cast<Packet*>(after);
    fresh->at_ps = kNeverPs;
    return fresh;
  }

  /// Copy a record with all that belongs to it.
  void copy(Packet* to, const Packet* from) const {
    *to = *from;
    if (stride_ > sizeof(Packet)) [[unlikely]]
      copy_more(reinterpret_cast<std::uint8_t*>(to), reinterpret_cast<const std::uint8_t*>(from), recorded_hops(from));
  }

  /// Move what lies from `from` on up to the tail one place on, for one record at `from`, which is the caller's to
  /// fill.
  Packet* make_room(Packet* from, Packet*& tail) {
    must_hold(from != tail && from->at_ps == kNeverPs, Invariant::reader_stays_behind_the_writer,
              "at_ps queue_pair seq", from->at_ps, from->queue_pair, from->seq);
    std::vector<Packet*> places{from};
    while (places.back() != tail) places.push_back(next(places.back()));
    tail = extend(tail);
    for (std::size_t i = places.size() - 1; i > 0; --i) copy(places[i], places[i - 1]);
    return from;
  }

  /// The record after `packet`, whose reader has done with it; a block left behind goes back to the pool.
  Packet* consume(Packet* packet) {
    std::uint8_t* after = reinterpret_cast<std::uint8_t*>(packet) + stride_;
    if (!is_link(after)) return reinterpret_cast<Packet*>(after);
    std::uint8_t* following = link(after);
    link(after) = free_;
    free_ = after - link_offset_;
    blocks_taken_ -= 1;
    must_hold(blocks_taken_ > 0, Invariant::pool_returns_each_block_once, "blocks_taken", blocks_taken_);
    return reinterpret_cast<Packet*>(following);
  }

 private:
  /// What lies behind the first 32 bytes, as far as it is used: of the room for telemetry what `filled` switches fill.
  void copy_more(std::uint8_t* to, const std::uint8_t* from, std::size_t filled) const {
    const auto copy_bytes = [to, from](std::size_t begin, std::size_t count) {
      std::memcpy(to + begin, from + begin, count);
    };
    copy_bytes(sizeof(Packet), sizeof(Extension));
    const bool is_wide = stride_ == kWideStride || stride_ == kWideTelemetryStride;
    if (is_wide) copy_bytes(kExtendedStride, kWideUsed);
    if (stride_ < kTelemetryStride) return;
    const std::size_t first = is_wide ? kWideStride : kExtendedStride;
    copy_hops(to + first, from + first, filled);
  }

  static constexpr std::size_t kBlockRecords = 16;
  static constexpr std::size_t kSlabBlocks = 256;

  struct Release {
    void operator()(std::uint8_t* slab) const { std::free(slab); }
  };

  static std::uint8_t*& link(std::uint8_t* last) { return PacketPlaces::link(last); }
  [[nodiscard]] bool is_link(const std::uint8_t* record) const { return places().is_link(record); }

  [[gnu::noinline]] std::uint8_t* take() {
    if (free_ == nullptr) grow();
    std::uint8_t* block = free_;
    must_hold(is_link(block + link_offset_), Invariant::pool_returns_each_block_once, "blocks_taken", blocks_taken_);
    free_ = link(block + link_offset_);
    blocks_taken_ += 1;
    return block;
  }

  void grow() {
    auto* slab = static_cast<std::uint8_t*>(std::aligned_alloc(block_bytes_, block_bytes_ * kSlabBlocks));
    if (slab == nullptr) throw std::bad_alloc();
    slabs_.emplace_back(slab);
    for (std::size_t i = kSlabBlocks; i-- > 0;) {
      std::uint8_t* block = slab + i * block_bytes_;
      link(block + link_offset_) = free_;
      free_ = block;
    }
  }

  std::size_t stride_;
  std::size_t block_bytes_;
  std::size_t link_offset_;
  std::uint8_t* free_ = nullptr;
  std::int64_t blocks_taken_ = 0;
  std::vector<std::unique_ptr<std::uint8_t, Release>> slabs_;
};

}  // namespace weftwork

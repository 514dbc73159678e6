/// What comes back to a sender, and what does not: ACKs and NAKs, go-back-N or selective repeat, CNPs, end-to-end
/// credits, and the retransmission timer.
/// Source: IBTA vol. 1, chapter 9.7 (reliable connections), as docs/models/packet-engine.md states it.
#pragma once
#include <algorithm>
#include <array>

#include "packet/job.hpp"
#include "packet/pipe.hpp"

namespace weftwork {

/// Credits that an AETH can tell, by code (IBTA vol. 1, table 45).
inline constexpr std::array<std::int64_t, 31> kCredits = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

inline std::uint8_t credit_code(std::int64_t credits) {
  const auto* above_it = std::upper_bound(kCredits.begin(), kCredits.end(), credits);
  return static_cast<std::uint8_t>(above_it - kCredits.begin() - 1);
}

/// What is acknowledged is neither kept nor lost any more.
inline void forget_below(const State& s, QueuePair& qp, std::int64_t expected) {
  Selective& known = *qp.selective;
  for (std::int64_t seq = known.take_away_below(expected); seq >= 0; seq = known.take_away_below(expected))
    qp.sender.away_bytes -= payload_bytes(s, message_of(s, qp, seq), seq);
}

/// The payload and the messages between `una` and `expected` are acknowledged.
inline std::int64_t acknowledge(State& s, QueuePair& qp, std::int64_t expected, Ps now_ps) {
  Sender& sender = qp.sender;
  if (qp.selective != nullptr) forget_below(s, qp, expected);
  std::int64_t bytes = 0;
  while (sender.una < expected) {
    Message& message = s.messages[sender.una_message];
    const std::int64_t upto = std::min(expected, message.end);
    bytes += upto == message.end ? message.size_bytes - (sender.una - message.first) * s.in.transport.mtu_bytes
                                 : (upto - sender.una) * s.in.transport.mtu_bytes;
    sender.una = upto;
    if (upto < message.end) break;
    message.acked_at_ps = now_ps;
    s.open_work -= 1;
    sender.una_message = message.next;
    complete_posted(s, message.stream, now_ps);
  }
  sender.una_bytes += bytes;
  if (sender.nxt < expected) {
    sender.nxt = expected;
    sender.nxt_bytes = sender.una_bytes;
    sender.nxt_message = sender.una_message;
  }
  sender.retries = 0;
  set_deadline(s, qp, sender.una == sender.nxt ? kOff : now_ps + s.in.transport.retransmission_timeout_ps);
  return bytes;
}

inline Selective& selective_of(QueuePair& qp) {
  if (qp.selective == nullptr) qp.selective = std::make_unique<Selective>();
  return *qp.selective;
}

/// The receiver keeps `kept`, at or above `una`: what it has overtaken by more than the threshold is lost.
inline void handle_kept(const State& s, QueuePair& qp, std::int64_t kept) {
  Sender& sender = qp.sender;
  Selective& known = selective_of(qp);
  const auto leave = [&](std::int64_t seq) { sender.away_bytes += payload_bytes(s, message_of(s, qp, seq), seq); };
  if (known.keep(kept, sender.una)) leave(kept);
  const std::int64_t end = kept - s.in.transport.reorder_threshold_packets;
  for (std::int64_t seq = known.judge(sender.una, end); seq >= 0; seq = known.judge(sender.una, end)) leave(seq);
}

/// Resend from the first packet that is not acknowledged; under selective repeat without those that the receiver keeps.
inline void go_back(State& s, QueuePair& qp) {
  Sender& sender = qp.sender;
  if (s.in.transport.selective_repeat != 0) {
    selective_of(qp).lose_all(sender.una, sender.nxt);
    sender.away_bytes = sender.nxt_bytes - sender.una_bytes;
    sender.deadline_at_ps = kOff;
    return;
  }
  sender.nxt = sender.una;
  sender.nxt_bytes = sender.una_bytes;
  sender.nxt_message = sender.una_message;
  sender.attempt = static_cast<std::uint16_t>(sender.attempt + 1);
  sender.deadline_at_ps = kOff;
  if (sender.standing == Standing::kReady) clear_ready(nic_of(s, qp.source_port), sender);
}

inline void fill_echo(const State& s, Signal& signal, Packet* packet, Ps now_ps) {
  signal.ecn = has(packet->flags, kMarked) ? 1 : 0;
  signal.seq = packet->seq;
  if (!s.extended || !has(packet->flags, kHasEcho)) return;
  const Extension& ext = extension(packet);
  signal.rtt_ps = now_ps - ext.sent_at_ps;
  signal.host_delay_ps = ext.host_delay_ps;
  signal.fabric_delay_ps = signal.rtt_ps - ext.host_delay_ps;
  signal.entropy = ext.entropy;
  if (!s.in.has_telemetry) return;
  signal.hops = ext.hops;
  for (std::size_t i = 0; i < ext.hops; ++i) {
    const Hop& hop = hops(packet, s.wide)[i];
    signal.hop_queue_bytes[i] = hop.queue_bytes();
    signal.hop_tx_bytes[i] = hop.tx_bytes();
    signal.hop_rate_bps[i] = hop.rate_bps();
    signal.hop_at_ps[i] = hop.at_ps;
  }
}

/// Tell path selection and congestion control, as far as they want to know.
inline void tell(State& s, QueuePair& qp, Kind kind, Packet* packet, std::int64_t bytes, Ps now_ps) {
  const auto fill = [&] {
    Signal& signal = sender_signal(s, qp, kind, now_ps);
    signal.bytes = bytes;
    if (kind == Kind::kAck) fill_echo(s, signal, packet, now_ps);
    if (kind == Kind::kNak) signal.seq = packet->seq;
  };
  if (s.in.path.step != nullptr && wants(s.in.path.signals, kind)) {
    fill();
    call_path(s, qp);
  }
  if (wants(s.in.congestion.signals, kind)) {
    fill();
    call_sender(s, qp, now_ps);
  }
}

/// With nothing outstanding the timer runs only while credits hold the queue pair back, so that a lost credit is asked
/// for again.
inline void guard_credits(State& s, QueuePair& qp, Ps now_ps) {
  Sender& sender = qp.sender;
  if (sender.una != sender.nxt) return;
  if (sender.failed || !credit_blocked(s, qp))
    sender.deadline_at_ps = kOff;
  else if (sender.deadline_at_ps == kOff)
    set_deadline(s, qp, now_ps + s.in.transport.retransmission_timeout_ps);
}

inline void handle_ack(State& s, QueuePair& qp, Packet* packet, Ps now_ps) {
  Sender& sender = qp.sender;
  const bool nak = packet->kind == PacketKind::kNak;
  const bool selects = nak && s.in.transport.selective_repeat != 0;
  if (sender.failed) return;
  if (std::cmp_less(packet->seq, sender.una)) {
    if (!selects) return;
    packet->seq = static_cast<std::uint32_t>(sender.una);  // old, but what the receiver keeps is news all the same
  }
  const std::int64_t expected = packet->seq;
  const bool had_lost = selects && has_lost(s, qp);
  if (s.in.transport.end_to_end_credits > 0) {
    const Extension& ext = extension(packet);
    sender.credit_limit = std::max(sender.credit_limit, ext.msn + kCredits[ext.credit_code]);
  }
  const bool news = expected > sender.una;
  const std::int64_t bytes = news ? acknowledge(s, qp, expected, now_ps) : 0;
  if (selects) {
    const std::int64_t kept = extension(packet).refused;
    if (kept >= sender.una) handle_kept(s, qp, kept);
  }
  if (news || !nak || selects) tell(s, qp, Kind::kAck, packet, bytes, now_ps);
  if (selects) {
    if (!had_lost && has_lost(s, qp)) tell(s, qp, Kind::kNak, packet, 0, now_ps);
  } else if (nak && expected == sender.una && sender.nxt > sender.una) {
    go_back(s, qp);
    s.note(now_ps, EventKind::kGoBack, packet->queue_pair.value, 0);
    tell(s, qp, Kind::kNak, packet, 0, now_ps);
  }
  if (sender.una == sender.end) stop_timers(qp);
  guard_credits(s, qp, now_ps);
  reconsider(s, qp);
}

/// A CNP or a grant of credit.
inline void handle_notice(State& s, QueuePair& qp, Kind kind, std::int64_t bytes, Ps now_ps) {
  const Sender& sender = qp.sender;
  if (sender.failed || (kind == Kind::kCnp && sender.una == sender.end)) return;
  if (wants(s.in.congestion.signals, kind)) {
    Signal& signal = sender_signal(s, qp, kind, now_ps);
    signal.bytes = bytes;
    call_sender(s, qp, now_ps);
  }
  reconsider(s, qp);
}

/// The retransmission timer has fired for good.
inline void handle_timeout(State& s, QueuePairId id, Ps now_ps) {
  QueuePair& qp = s.queue_pairs[id];
  Sender& sender = qp.sender;
  sender.deadline_at_ps = kOff;
  if (sender.una < sender.nxt) {
    s.count.timeouts += 1;
    s.note(now_ps, EventKind::kTimeout, id.value, 0);
    sender.retries += 1;
    if (std::cmp_greater(sender.retries, s.in.transport.retry_limit)) {
      s.count.queue_pair_errors += 1;
      sender.failed = true;
      stop_timers(qp);
      if (sender.standing == Standing::kReady) clear_ready(nic_of(s, qp.source_port), sender);
      return;
    }
    go_back(s, qp);
    tell(s, qp, Kind::kTimeout, nullptr, 0, now_ps);
  } else if (credit_blocked(s, qp)) {
    s.count.probes_sent += 1;
    queue_control(s, qp.source_port, id, PacketKind::kProbe, true, sender.una,
                  static_cast<std::uint16_t>(sender.probes++), s.in.transport.ack_bytes);
    set_deadline(s, qp, now_ps + s.in.transport.retransmission_timeout_ps);
  }
  guard_credits(s, qp, now_ps);
  reconsider(s, qp);
}

}  // namespace weftwork

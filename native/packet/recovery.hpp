/// Recovery of a sender: ACKs and NAKs, go-back-N or selective repeat, trims, CNPs, credits, timer.
/// Source: IBTA vol. 1, chapter 9.7 (reliable connections), as docs/models/packet-engine.md states it.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/fabric.hpp"
#include "packet/hosts.hpp"
#include "packet/job.hpp"
#include "packet/job_records.hpp"
#include "packet/job_state.hpp"
#include "packet/packet.hpp"
#include "packet/path_load.hpp"
#include "packet/pipe.hpp"
#include "packet/policy_calls.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/schedule.hpp"
#include "packet/scheduling.hpp"
#include "packet/selective.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "packet/steps.hpp"
#include "packet/timers.hpp"
#include "rows/outcome.hpp"
#include "rows/policies.hpp"

namespace weftwork {

/// Credits that an AETH can tell, by code (IBTA vol. 1, table 45).
inline constexpr std::array<std::int64_t, 31> kCredits = {
    0,   1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,  192,
    256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768};

inline std::uint8_t credit_code(std::int64_t credits) {
  const auto* above_it = std::upper_bound(kCredits.begin(), kCredits.end(), credits);
  return static_cast<std::uint8_t>(above_it - kCredits.begin() - 1);
}

/// What an event tells the policies of a sender, beside the packet that has brought it.
struct News {
  Kind kind = Kind::kAck;
  Packet* packet = nullptr;
  std::int64_t bytes = 0;
  std::int64_t arrived_bytes = 0, lost_bytes = 0, completed_messages = 0;
  std::uint16_t entropy = 0;  // of the oldest packet, at a timeout
};

/// What is acknowledged is neither kept nor lost any more; what was kept has arrived before.
inline void forget_below(const Setup& setup, const JobState& job, QueuePair& qp, std::int64_t expected, News& news) {
  Selective& known = *qp.selective;
  for (auto away = known.take_away_below(expected); away.seq >= 0; away = known.take_away_below(expected)) {
    must_hold(away.seq >= qp.sender.una, Invariant::packet_is_kept_or_lost, "port slot seq una expected",
              qp.source_port, qp.sender.slot, away.seq, qp.sender.una, expected);
    const std::int64_t payload = payload_bytes(setup, message_of(job, qp, away.seq), away.seq);
    qp.sender.away_bytes -= payload;
    must_hold(qp.sender.away_bytes >= 0, Invariant::in_flight_bytes_are_sent_minus_acknowledged,
              "port slot seq away_bytes", qp.source_port, qp.sender.slot, away.seq, qp.sender.away_bytes);
    if (away.kept) news.arrived_bytes -= payload;
  }
}

/// The payload and the messages between `una` and `expected` are acknowledged.
inline void acknowledge(const Setup& setup, Schedule& schedule, JobState& job, QueuePair& qp, std::int64_t expected,
                        Ps now_ps, News& news) {
  Sender& sender = qp.sender;
  must_hold(expected <= sender.high, Invariant::only_sent_packets_arrive, "at_ps port slot expected high", now_ps,
            qp.source_port, sender.slot, expected, sender.high);
  if (qp.selective != nullptr) forget_below(setup, job, qp, expected, news);
  std::int64_t bytes = 0;
  while (sender.una < expected) {
    Message& message = job.messages[sender.una_message];
    const std::int64_t upto = std::min(expected, message.end);
    bytes += upto == message.end ? message.size_bytes - (sender.una - message.first) * setup.in.transport.mtu_bytes
                                 : (upto - sender.una) * setup.in.transport.mtu_bytes;
    sender.una = upto;
    if (upto < message.end) break;
    must_hold(
        message.acked_at_ps < 0 && message.delivered_at_ps >= message.posted_at_ps && message.delivered_at_ps <= now_ps,
        Invariant::message_delivered_once, "at_ps message posted_at_ps delivered_at_ps acked_at_ps", now_ps,
        sender.una_message, message.posted_at_ps, message.delivered_at_ps, message.acked_at_ps);
    message.acked_at_ps = now_ps;
    news.completed_messages += 1;
    job.open_work -= 1;
    sender.una_message = message.next;
    complete_posted(setup, schedule, job, message.stream, now_ps);
  }
  sender.una_bytes += bytes;
  if (sender.nxt < expected) {
    sender.nxt = expected;
    sender.nxt_bytes = sender.una_bytes;
    sender.nxt_message = sender.una_message;
  }
  must_hold(sender.una <= sender.nxt && sender.nxt <= sender.high, Invariant::packet_numbers_in_order,
            "at_ps port slot una nxt high", now_ps, qp.source_port, sender.slot, sender.una, sender.nxt, sender.high);
  must_hold((bytes | inflight_bytes(sender)) >= 0, Invariant::in_flight_bytes_are_sent_minus_acknowledged,
            "at_ps port slot una_bytes nxt_bytes away_bytes", now_ps, qp.source_port, sender.slot, sender.una_bytes,
            sender.nxt_bytes, sender.away_bytes);
  sender.retries = 0;
  set_deadline(setup, schedule, qp, sender.una == sender.nxt ? kOff : now_ps + timeout_ps(setup, qp));
  news.bytes = bytes;
  news.arrived_bytes += bytes;
}

inline Selective& selective_of(QueuePair& qp) {
  if (qp.selective == nullptr) qp.selective = std::make_unique<Selective>();
  return *qp.selective;
}

/// The receiver keeps `kept`, at or above `una`: what it has overtaken by more than the threshold is lost.
inline void handle_kept(const Setup& setup, const JobState& job, QueuePair& qp, std::int64_t kept, News& news) {
  Sender& sender = qp.sender;
  Selective& known = selective_of(qp);
  const auto payload = [&](std::int64_t seq) { return payload_bytes(setup, message_of(job, qp, seq), seq); };
  must_hold(kept >= sender.una && kept < sender.nxt, Invariant::only_sent_packets_arrive, "port slot kept una nxt",
            qp.source_port, sender.slot, kept, sender.una, sender.nxt);
  const Selective::Before before = known.keep(kept, sender.una);
  if (before != Selective::Before::kKept) news.arrived_bytes += payload(kept);
  if (before == Selective::Before::kInFlight) sender.away_bytes += payload(kept);
  const std::int64_t end = kept - setup.in.transport.reorder_threshold_packets;
  for (std::int64_t seq = known.judge(sender.una, end); seq >= 0; seq = known.judge(sender.una, end))
    news.lost_bytes += payload(seq);
  sender.away_bytes += news.lost_bytes;
  must_hold(inflight_bytes(sender) >= 0, Invariant::in_flight_bytes_are_sent_minus_acknowledged,
            "port slot kept inflight_bytes lost_bytes", qp.source_port, sender.slot, kept, inflight_bytes(sender),
            news.lost_bytes);
  must_hold(news.lost_bytes >= 0 && sender.away_bytes >= news.lost_bytes,
            Invariant::in_flight_bytes_are_sent_minus_acknowledged, "port slot kept away_bytes lost_bytes",
            qp.source_port, sender.slot, kept, sender.away_bytes, news.lost_bytes);
}

/// Packet `cut` was cut on its way: it is lost. Returns whether that is news.
inline bool handle_trim(const Setup& setup, const JobState& job, QueuePair& qp, std::int64_t cut, News& news) {
  Sender& sender = qp.sender;
  if (cut < sender.una || cut >= sender.nxt || !selective_of(qp).trim(cut, sender.una)) return false;
  news.lost_bytes = payload_bytes(setup, message_of(job, qp, cut), cut);
  sender.away_bytes += news.lost_bytes;
  must_hold(inflight_bytes(sender) >= 0, Invariant::in_flight_bytes_are_sent_minus_acknowledged,
            "port slot cut inflight_bytes lost_bytes", qp.source_port, sender.slot, cut, inflight_bytes(sender),
            news.lost_bytes);
  must_hold(qp.selective->has_lost(), Invariant::packet_is_kept_or_lost, "port slot cut una", qp.source_port,
            sender.slot, cut, sender.una);
  return true;
}

/// Resend from the first packet that is not acknowledged; under selective repeat without those that the receiver keeps.
inline void go_back(const Setup& setup, Hosts& hosts, QueuePair& qp) {
  Sender& sender = qp.sender;
  must_hold(sender.una <= sender.nxt && inflight_bytes(sender) >= 0, Invariant::packet_numbers_in_order,
            "port slot una nxt inflight_bytes", qp.source_port, sender.slot, sender.una, sender.nxt,
            inflight_bytes(sender));
  if (setup.in.transport.selective_repeat != 0) {
    selective_of(qp).lose_all(sender.una, sender.nxt);
    sender.away_bytes = sender.nxt_bytes - sender.una_bytes;
    sender.deadline_at_ps = kOff;
    return;
  }
  must_hold(sender.away_bytes == 0, Invariant::in_flight_bytes_are_sent_minus_acknowledged,
            "port slot una nxt away_bytes", qp.source_port, sender.slot, sender.una, sender.nxt, sender.away_bytes);
  sender.nxt = sender.una;
  sender.nxt_bytes = sender.una_bytes;
  sender.nxt_message = sender.una_message;
  sender.attempt = static_cast<std::uint16_t>(sender.attempt + 1);
  sender.deadline_at_ps = kOff;
  if (sender.standing == Standing::kReady) clear_ready(nic_of(hosts, qp.source_port), sender);
}

/// What the packet that caused an ACK or NAK tells.
inline void fill_echo(const Setup& setup, Signal& signal, Packet* packet, Ps now_ps) {
  if (!setup.extended || !has(packet->flags, kHasEcho)) return;
  const Extension& ext = extension(packet);
  if (setup.in.echoes_entropy) signal.entropy = ext.entropy;
  signal.hops = ext.hops;
  if (signal.kind == static_cast<std::int64_t>(Kind::kNak) || !setup.in.echoes_time) return;
  signal.rtt_ps = now_ps - ext.sent_at_ps;
  signal.host_delay_ps = ext.host_delay_ps;
  signal.fabric_delay_ps = signal.rtt_ps - ext.host_delay_ps;
}

inline void fill_telemetry(const Setup& setup, const Fabric& fabric, PolicyCalls& calls, Signal& signal,
                           Packet* packet) {
  calls.signal_has_hops = true;
  for (std::size_t i = 0; i < recorded_hops(packet); ++i) {
    const Hop& hop = hops(packet, setup.wide)[i];
    signal.hop_queue_bytes[i] = hop.queue_bytes();
    signal.hop_tx_bytes[i] = hop.tx_bytes();
    signal.hop_rate_bps[i] = fabric.rates.rate_bps(hop.rate());
    signal.hop_at_ps[i] = hop.at_ps;
    signal.hop_port[i] = hop.port();
  }
}

inline void fill_news(const Setup& setup, const Fabric& fabric, PolicyCalls& calls, const QueuePair& qp,
                      const News& news, Ps now_ps) {
  Signal& signal = sender_signal(setup, fabric, calls, qp, news.kind, now_ps);
  signal.bytes = news.bytes;
  signal.lost_bytes = news.lost_bytes;
  signal.entropy = news.entropy;
  if (news.packet == nullptr) return;
  signal.seq = news.packet->seq;
  fill_echo(setup, signal, news.packet, now_ps);
  if (news.kind == Kind::kAck) {
    signal.ecn = has(news.packet->flags, kMarked) ? 1 : 0;
    signal.arrived_bytes = news.arrived_bytes;
    signal.completed_messages = news.completed_messages;
    if (setup.wide)
      signal.marked_bytes = std::max<std::int64_t>(0, wide(news.packet).marked_bytes - qp.marked_bytes_seen);
    if (setup.in.has_telemetry && has(news.packet->flags, kHasEcho))
      fill_telemetry(setup, fabric, calls, signal, news.packet);
    if (setup.in.has_path_load && has(news.packet->flags, kHasEcho) && !has(news.packet->flags, kCut)) {
      calls.signal_has_hops = true;
      signal.path_load = load_of(wide(news.packet).path_load);
    }
  } else if (news.kind == Kind::kTrim) {
    signal.seq = extension(news.packet).refused;
    signal.last_hop = has(news.packet->flags, kLastHop) ? 1 : 0;
  }
}

/// Tell path selection and congestion control, as far as they want to know.
inline void tell(State& s, QueuePair& qp, const News& news, Ps now_ps) {
  if (s.setup.in.path.step != nullptr && wants(s.setup.in.path.signals, news.kind)) {
    fill_news(s.setup, s.fabric, s.calls, qp, news, now_ps);
    call_path(s.setup, s.schedule, s.calls, qp, now_ps);
  }
  if (wants(s.setup.in.congestion.signals, news.kind)) {
    fill_news(s.setup, s.fabric, s.calls, qp, news, now_ps);
    tell_sender(s, qp, news.kind, now_ps);
  }
}

/// With nothing outstanding the timer runs only while credits hold the queue pair back, so that a lost credit is asked
/// for again.
inline void guard_credits(const Setup& setup, Schedule& schedule, const JobState& job, QueuePair& qp, Ps now_ps) {
  Sender& sender = qp.sender;
  if (sender.una != sender.nxt) return;
  if (sender.failed || !credit_blocked(setup, job, qp))
    sender.deadline_at_ps = kOff;
  else if (sender.deadline_at_ps == kOff)
    set_deadline(setup, schedule, qp, now_ps + timeout_ps(setup, qp));
}

/// Both policies get ACK, which tells of all marks so far.
inline void tell_ack(State& s, QueuePair& qp, const News& news, Ps now_ps) {
  tell(s, qp, news, now_ps);
  if (s.setup.wide) qp.marked_bytes_seen = std::max(qp.marked_bytes_seen, wide(news.packet).marked_bytes);
}

/// A NAK under selective repeat, after what it acknowledges: it tells of one packet that the receiver keeps, or that
/// was cut.
inline void handle_selective_nak(State& s, QueuePair& qp, bool advances, bool had_lost, News& news, Ps now_ps) {
  Packet* packet = news.packet;
  const std::int64_t caused_by = extension(packet).refused;
  must_hold(caused_by < qp.sender.high, Invariant::only_sent_packets_arrive, "at_ps port slot seq high", now_ps,
            qp.source_port, qp.sender.slot, caused_by, qp.sender.high);
  if (has(packet->flags, kCut)) {
    const bool is_news = handle_trim(s.setup, s.job, qp, caused_by, news);
    if (advances) tell_ack(s, qp, news, now_ps);
    if (is_news)
      tell(s, qp, {.kind = Kind::kTrim, .packet = packet, .bytes = news.lost_bytes, .lost_bytes = news.lost_bytes},
           now_ps);
    return;
  }
  must_hold(news.lost_bytes == 0, Invariant::packet_is_kept_or_lost, "at_ps port slot seq lost_bytes", now_ps,
            qp.source_port, qp.sender.slot, caused_by, news.lost_bytes);
  if (caused_by >= qp.sender.una) handle_kept(s.setup, s.job, qp, caused_by, news);
  tell_ack(s, qp, news, now_ps);
  if (!had_lost && has_lost(s.setup, qp))
    tell(s, qp, {.kind = Kind::kNak, .packet = packet, .lost_bytes = news.lost_bytes}, now_ps);
}

inline void handle_ack(State& s, QueuePair& qp, Packet* packet, Ps now_ps) {
  Sender& sender = qp.sender;
  const bool nak = packet->kind == PacketKind::kNak;
  const bool selects = nak && s.setup.in.transport.selective_repeat != 0;
  if (sender.failed) return;
  if (std::cmp_less(packet->seq, sender.una)) {
    if (!selects) return;
    packet->seq = static_cast<std::uint32_t>(sender.una);  // old, but what the receiver keeps is news all the same
  }
  const std::int64_t expected = packet->seq;
  const bool had_lost = selects && has_lost(s.setup, qp);
  if (s.setup.in.transport.end_to_end_credits > 0) {
    const Extension& ext = extension(packet);
    must_hold(std::cmp_less_equal(ext.msn, qp.messages), Invariant::only_sent_packets_arrive,
              "at_ps port slot delivered_messages posted_messages", now_ps, qp.source_port, sender.slot, ext.msn,
              qp.messages);
    sender.credit_limit = std::max(sender.credit_limit, ext.msn + kCredits[ext.credit_code]);
  }
  News news{.packet = packet};
  const bool advances = expected > sender.una;
  if (advances) acknowledge(s.setup, s.schedule, s.job, qp, expected, now_ps, news);
  if (selects) {
    handle_selective_nak(s, qp, advances, had_lost, news, now_ps);
  } else {
    const bool goes_back = nak && sender.nxt > sender.una;
    if (goes_back) news.lost_bytes = inflight_bytes(sender);
    if (advances || !nak) tell_ack(s, qp, news, now_ps);
    if (goes_back) {
      go_back(s.setup, s.hosts, qp);
      s.recordings.note(now_ps, EventKind::kGoBack, packet->queue_pair.value, 0);
      tell(s, qp, {.kind = Kind::kNak, .packet = packet, .lost_bytes = news.lost_bytes}, now_ps);
    }
  }
  if (sender.una == sender.end) stop_timers(qp);
  guard_credits(s.setup, s.schedule, s.job, qp, now_ps);
  reconsider(s.setup, s.fabric, s.hosts, s.job, qp);
}

/// Something that concerns congestion control alone.
inline void tell_control(State& s, QueuePair& qp, Kind kind, std::int64_t bytes, Ps now_ps) {
  if (!wants(s.setup.in.congestion.signals, kind)) return;
  sender_signal(s.setup, s.fabric, s.calls, qp, kind, now_ps).bytes = bytes;
  tell_sender(s, qp, kind, now_ps);
  reconsider(s.setup, s.fabric, s.hosts, s.job, qp);
}

inline void handle_cnp(State& s, QueuePair& qp, Ps now_ps) {
  if (qp.sender.failed || qp.sender.una == qp.sender.end) return;
  tell_control(s, qp, Kind::kCnp, 0, now_ps);
}

/// A CREDIT tells all that was granted so far.
inline void handle_credit(State& s, QueuePair& qp, Packet* packet, Ps now_ps) {
  if (qp.sender.failed || !s.setup.extended) return;  // a control that asks for CREDIT has extended packets
  must_hold(extension(packet).credit_bytes <= qp.credited_bytes, Invariant::credits_never_negative,
            "at_ps queue_pair credit_bytes granted_bytes", now_ps, packet->queue_pair, extension(packet).credit_bytes,
            qp.credited_bytes);
  const std::int64_t more_bytes = extension(packet).credit_bytes - qp.granted_bytes;
  if (more_bytes <= 0) return;
  qp.granted_bytes += more_bytes;
  tell_control(s, qp, Kind::kCredit, more_bytes, now_ps);
}

/// The retransmission timer has fired for good.
inline void handle_timeout(State& s, QueuePairId id, Ps now_ps) {
  QueuePair& qp = s.hosts.queue_pairs[id];
  Sender& sender = qp.sender;
  must_hold(sender.una <= sender.nxt && sender.nxt <= sender.end, Invariant::packet_numbers_in_order,
            "at_ps queue_pair una nxt end", now_ps, id, sender.una, sender.nxt, sender.end);
  sender.deadline_at_ps = kOff;
  if (sender.una < sender.nxt) {
    s.recordings.count.timeouts += 1;
    s.recordings.note(now_ps, EventKind::kTimeout, id.value, 0);
    sender.retries += 1;
    if (std::cmp_greater(sender.retries, s.setup.in.transport.retry_limit)) {
      s.recordings.count.queue_pair_errors += 1;
      sender.failed = true;
      stop_timers(qp);
      if (sender.standing == Standing::kReady) clear_ready(nic_of(s.hosts, qp.source_port), sender);
      return;
    }
    News news{.kind = Kind::kTimeout, .lost_bytes = inflight_bytes(sender)};
    news.entropy = s.setup.keeps_entropies ? qp.sent_entropies.of(sender.una) : qp.own_entropy;
    go_back(s.setup, s.hosts, qp);
    must_hold(inflight_bytes(sender) == 0, Invariant::in_flight_bytes_are_sent_minus_acknowledged,
              "at_ps queue_pair inflight_bytes", now_ps, id, inflight_bytes(sender));
    tell(s, qp, news, now_ps);
  } else if (credit_blocked(s.setup, s.job, qp)) {
    s.recordings.count.probes_sent += 1;
    queue_control(s.setup, s.fabric, s.routing, s.hosts, qp.source_port, id, PacketKind::kProbe, true, sender.una,
                  static_cast<std::uint16_t>(sender.probes++), s.setup.in.transport.ack_bytes);
    set_deadline(s.setup, s.schedule, qp, now_ps + timeout_ps(s.setup, qp));
  }
  guard_credits(s.setup, s.schedule, s.job, qp, now_ps);
  reconsider(s.setup, s.fabric, s.hosts, s.job, qp);
}

}  // namespace weftwork

/// The audit at the end of a run: sums over the whole state that must agree, whatever happened before. It reads every
/// port, message and stream, and of the packets only those that are held or on the wire.
/// Source: docs/dev/invariants.md. Leaves out: what is asserted where packets are handed over.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/buffer.hpp"
#include "packet/containers.hpp"
#include "packet/fabric.hpp"
#include "packet/hosts.hpp"
#include "packet/ids.hpp"
#include "packet/instants.hpp"
#include "packet/job_records.hpp"
#include "packet/job_state.hpp"
#include "packet/packet.hpp"
#include "packet/port_records.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/recordings.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"

namespace weftwork {

/// What lies in the streams that lead to one port, and in those that wait at one.
struct StreamContent {
  std::int64_t packets = 0, bytes = 0;
  std::int64_t lost_bytes = 0;  // of those, on a link that went down
};

namespace detail {

/// Nodes by whose ports a packet has come or left, or waits to: at the others, which are most of a large fabric with
/// few flows, there is nothing to add up.
inline IdVector<NodeId, bool> touched_nodes(const Setup& setup, const Fabric& fabric) {
  IdVector<NodeId, bool> touched;
  touched.resize(setup.in.node_kind.size());
  for (const PortId port : fabric.ports.ids()) {
    const Port& out = fabric.ports[port];
    if (out.frames == 0 && out.pending == 0) continue;
    touched[setup.in.port_node[port]] = true;
    if (!out.peer_node.is_none()) touched[out.peer_node] = true;
  }
  return touched;
}

/// The packets from one place of a stream to another, but for those that were dropped before they departed.
inline StreamContent content(const Fabric& fabric, Packet* from, const Packet* end) {
  StreamContent content;
  for (Packet* packet = from; packet != end; packet = fabric.pool.next(packet)) {
    if (packet->at_ps == kFlushedPs) continue;
    content.packets += 1;
    content.bytes += packet->bytes;
    if (has(packet->flags, kLost)) content.lost_bytes += packet->bytes;
  }
  return content;
}

/// How many blocks of the pool a stream has between two of its places.
inline std::int64_t blocks_between(const Fabric& fabric, Packet* from, const Packet* tail) {
  std::int64_t blocks = 1;
  for (Packet* packet = from; packet != tail; packet = fabric.pool.next(packet))
    if (fabric.pool.is_last_of_block(packet)) ++blocks;
  return blocks;
}

/// Packets that have arrived at a port, from those that its far end has sent.
inline std::int64_t arrived_packets(const Setup& setup, const Fabric& fabric, PortId port) {
  const PortId peer = setup.peer_of(port);
  if (peer.is_none() || fabric.ports[peer].frames == 0) return 0;
  std::int64_t packets = fabric.ports[peer].frames;
  for (const TrafficClass klass : setup.classes())
    packets -=
        content(fabric, fabric.inbound[setup.at(port, klass)], fabric.queues[setup.at(peer, klass)].departure).packets;
  return packets;
}

/// What waits in a queue: its bytes are those that it counts.
inline StreamContent audit_queue(const Setup& setup, const Fabric& fabric, PortId port, TrafficClass klass) {
  const Queue& queue = fabric.queues[setup.at(port, klass)];
  const StreamContent waiting = content(fabric, queue.departure, queue.tail);
  must_hold(waiting.bytes == queue.bytes, Invariant::queue_holds_what_it_counts, "port class waiting_bytes queue_bytes",
            port, klass, waiting.bytes, queue.bytes);
  must_hold(waiting.lost_bytes == 0, Invariant::packets_conserved, "port class lost_bytes", port, klass,
            waiting.lost_bytes);
  const bool host = is_host(setup, setup.in.port_node[port]);
  const std::uint32_t pending = fabric.ports[port].pending;
  const bool pends = host ? pending != 0 && klass == setup.in.control_class : contains(pending, klass);
  must_hold(pends == (waiting.packets > 0), Invariant::queue_holds_what_it_counts, "port class packets pending", port,
            klass, waiting.packets, pending);
  must_hold(host || queue.bytes <= queue.max_bytes, Invariant::queue_holds_what_it_counts,
            "port class queue_bytes max_bytes", port, klass, queue.bytes, queue.max_bytes);
  return waiting;
}

/// What came into a switch has left it, was dropped or waits in it; and its buffer holds what waits. Returns how many
/// of its ingresses are paused.
inline std::int64_t audit_switch(const Setup& setup, const Fabric& fabric, const Recordings& recordings, NodeId node) {
  const SwitchNode& record = fabric.switches[fabric.switch_of_node[node]];
  const std::int64_t reserve_bytes = setup.in.switches[record.device].reserve_bytes;
  std::int64_t came = 0, gone = 0, held_bytes = 0, shared_bytes = 0, waiting_bytes = 0;
  std::size_t paused = 0;
  for (const PortId port : setup.ports_of(node)) {
    came += arrived_packets(setup, fabric, port);
    gone += fabric.ports[port].frames + recordings.port_counters[port].drops;
    for (const TrafficClass klass : setup.classes()) {
      const StreamContent waiting = audit_queue(setup, fabric, port, klass);
      gone += waiting.packets;
      waiting_bytes += waiting.bytes;
      const Ingress& ingress = fabric.ingresses[setup.at(port, klass)];
      held_bytes += ingress.used + ingress.headroom_used;
      shared_bytes += shared_growth(0, ingress.used, reserve_bytes);
      must_hold(
          (ingress.used | ingress.headroom_used) >= 0 && ingress.used + ingress.headroom_used <= ingress.max_bytes,
          Invariant::bytes_conserved_at_a_switch, "port class ingress_bytes headroom_bytes max_bytes", port, klass,
          ingress.used, ingress.headroom_used, ingress.max_bytes);
      must_hold(ingress.headroom_used <= setup.in.port_headroom_bytes[port], Invariant::queue_within_its_buffer,
                "port class headroom_bytes room_bytes", port, klass, ingress.headroom_used,
                setup.in.port_headroom_bytes[port]);
      must_hold(ingress.paused == (ingress.refresh_at_ps != kOff), Invariant::pause_is_counted_once,
                "port class paused refresh_at_ps", port, klass, ingress.paused, ingress.refresh_at_ps);
      if (ingress.paused) ++paused;
    }
  }
  must_hold(came == gone, Invariant::packets_conserved, "node came gone_or_held", node, came, gone);
  must_hold(held_bytes == waiting_bytes && shared_bytes == record.shared_used, Invariant::bytes_conserved_at_a_switch,
            "node held_bytes waiting_bytes shared_bytes counted_bytes", node, held_bytes, waiting_bytes, shared_bytes,
            record.shared_used);
  must_hold(paused == record.paused.size(), Invariant::pause_is_counted_once, "node paused listed", node, paused,
            record.paused.size());
  must_hold(std::cmp_equal(record.in_order_for, setup.link_credits ? 1 : paused), Invariant::pause_is_counted_once,
            "node paused counted", node, paused, record.in_order_for);
  return static_cast<std::int64_t>(paused);
}

/// The queues of a NIC port and its host interface.
inline void audit_nic(const Setup& setup, const Fabric& fabric, const Hosts& hosts, PortId port) {
  const NicPort& nic = hosts.nics[hosts.nic_of_port[port]];
  for (const TrafficClass klass : setup.classes()) audit_queue(setup, fabric, port, klass);
  const StreamContent inside = content(fabric, nic.interface_head, nic.interface_tail);
  must_hold(inside.bytes == nic.receive_used_bytes, Invariant::receive_buffer_never_overflows,
            "port inside_bytes held_bytes", port, inside.bytes, nic.receive_used_bytes);
  std::size_t ready = 0;
  for (const SlotId slot : nic.slots.ids()) {
    const QueuePairId id = nic.slots[slot];
    if (id == kMovedAway) continue;
    const QueuePair& qp = hosts.queue_pairs[id];
    must_hold(qp.source_port == port && qp.sender.slot == slot, Invariant::slot_has_its_queue_pair,
              "port slot queue_pair source_port", port, slot, id, qp.source_port);
    if (qp.sender.standing == Standing::kReady) ++ready;
  }
  must_hold(ready == nic.ready_count, Invariant::slot_has_its_queue_pair, "port ready counted", port, ready,
            nic.ready_count);
  std::int64_t early = 0;
  for (const ReceiverSlotId slot : nic.receivers.ids()) {
    const QueuePairId id = nic.receivers[slot];
    if (id == kMovedAway) continue;
    const QueuePair& qp = hosts.queue_pairs[id];
    must_hold(qp.destination_port == port && qp.receiver.slot == slot, Invariant::slot_has_its_queue_pair,
              "port receiver_slot queue_pair destination_port", port, slot, id, qp.destination_port);
    early += qp.receiver.kept_count;
  }
  must_hold(early == nic.early_packets, Invariant::early_packets_within_the_window, "port kept counted", port, early,
            nic.early_packets);
}

/// The credit of a link, with what uses it and what gives it back, is the room at its far end.
inline void audit_credits(const Setup& setup, const Fabric& fabric, PortId port) {
  const PortId peer = setup.peer_of(port);
  if (peer.is_none() || !fabric.ports[port].up || !fabric.ports[peer].up) return;
  for (const TrafficClass klass : setup.classes()) {
    const CreditLane& lane = fabric.credit_lanes[setup.at(port, klass)];
    const StreamContent on_wire =
        content(fabric, fabric.inbound[setup.at(peer, klass)], fabric.queues[setup.at(port, klass)].departure);
    must_hold((lane.credit_bytes | lane.owed_bytes) >= 0, Invariant::credits_never_negative,
              "port class credit_bytes owed_bytes", port, klass, lane.credit_bytes, lane.owed_bytes);
    std::int64_t bytes = lane.credit_bytes + on_wire.bytes - on_wire.lost_bytes +
                         fabric.ingresses[setup.at(peer, klass)].used +
                         fabric.credit_lanes[setup.at(peer, klass)].owed_bytes;
    for (const Fifo<ControlFrame>* frames : {&fabric.frames_waiting[peer], &fabric.frames_inbound[port]})
      for (std::size_t i = frames->head; i < frames->items.size(); ++i)
        if (frames->items[i].klass == klass) bytes += frames->items[i].quanta;
    must_hold(bytes == setup.in.port_credit_bytes[peer], Invariant::credits_never_negative,
              "port class accounted_bytes room_bytes", port, klass, bytes, setup.in.port_credit_bytes[peer]);
  }
}

/// Blocks of the pool in the streams that begin at one port, and in its host interface.
inline std::int64_t blocks_of(const Setup& setup, const Fabric& fabric, const Hosts& hosts, PortId port) {
  std::int64_t blocks = 0;
  const PortId peer = setup.peer_of(port);
  for (const TrafficClass klass : setup.classes()) {
    const Queue& queue = fabric.queues[setup.at(port, klass)];
    blocks +=
        blocks_between(fabric, peer.is_none() ? queue.departure : fabric.inbound[setup.at(peer, klass)], queue.tail);
  }
  if (hosts.nic_of_port[port].is_none()) return blocks;
  const NicPort& nic = hosts.nics[hosts.nic_of_port[port]];
  return nic.interface_head == nullptr ? blocks
                                       : blocks + blocks_between(fabric, nic.interface_head, nic.interface_tail);
}

/// The books of both ends of every queue pair, from its messages.
inline void audit_queue_pairs(const Setup& setup, const Hosts& hosts, const JobState& job) {
  struct Books {
    std::int64_t posted_bytes = 0, acknowledged_bytes = 0, delivered = 0;
  };
  IdVector<QueuePairId, Books> books;
  books.resize(hosts.queue_pairs.size());
  for (const MessageId id : job.messages.ids()) {
    const Message& message = job.messages[id];
    if (message.queue_pair.is_none()) continue;
    Books& book = books[message.queue_pair];
    book.posted_bytes += message.size_bytes;
    if (message.acked_at_ps >= 0) book.acknowledged_bytes += message.size_bytes;
    if (message.delivered_at_ps >= 0) book.delivered += 1;
  }
  for (const QueuePairId id : hosts.queue_pairs.ids()) {
    const QueuePair& qp = hosts.queue_pairs[id];
    const Sender& sender = qp.sender;
    const Receiver& receiver = qp.receiver;
    Books& book = books[id];
    if (!sender.una_message.is_none())
      book.acknowledged_bytes += (sender.una - job.messages[sender.una_message].first) * setup.in.transport.mtu_bytes;
    must_hold(sender.una <= sender.nxt && sender.nxt <= sender.high && sender.high <= sender.end,
              Invariant::packet_numbers_in_order, "queue_pair una nxt high end", id, sender.una, sender.nxt,
              sender.high, sender.end);
    must_hold(sender.una <= receiver.expected && receiver.expected <= sender.high, Invariant::only_sent_packets_arrive,
              "queue_pair una expected high", id, sender.una, receiver.expected, sender.high);
    must_hold(book.posted_bytes == sender.end_bytes && book.acknowledged_bytes == sender.una_bytes &&
                  inflight_bytes(sender) >= 0 && sender.nxt_bytes <= sender.end_bytes,
              Invariant::in_flight_bytes_are_sent_minus_acknowledged,
              "queue_pair posted_bytes end_bytes acknowledged_bytes una_bytes", id, book.posted_bytes, sender.end_bytes,
              book.acknowledged_bytes, sender.una_bytes);
    must_hold(book.delivered == receiver.delivered, Invariant::message_delivered_once, "queue_pair delivered counted",
              id, book.delivered, receiver.delivered);
    must_hold(sender.una_message.is_none() == (sender.una == sender.end) &&
                  sender.nxt_message.is_none() == (sender.nxt == sender.end),
              Invariant::packet_numbers_in_order, "queue_pair una una_message nxt nxt_message end", id, sender.una,
              sender.una_message, sender.nxt, sender.nxt_message, sender.end);
    must_hold(sender.deadline_at_ps == kOff ||
                  (!sender.failed && (sender.una < sender.nxt || setup.in.transport.end_to_end_credits > 0)),
              Invariant::timer_fires_when_it_is_set, "queue_pair ends_at_ps failed una nxt", id, sender.deadline_at_ps,
              sender.failed, sender.una, sender.nxt);
    must_hold(receiver.kept_count == 0 ||
                  (receiver.kept_count > 0 && receiver.kept_count < setup.in.transport.reorder_window_packets),
              Invariant::early_packets_within_the_window, "queue_pair kept window_packets", id, receiver.kept_count,
              setup.in.transport.reorder_window_packets);
  }
}

/// What is left to do, and what has come: payload arrives once.
inline void audit_job(const JobState& job) {
  std::int64_t open = 0, outstanding = 0, awaited = 0, posted_bytes = 0;
  for (const StreamState& stream : job.streams.items()) {
    if (!stream.done) ++open;
    outstanding += stream.outstanding;
  }
  for (const MessageId id : job.messages.ids()) {
    const Message& message = job.messages[id];
    if (message.acked_at_ps < 0) {
      ++open;
      ++awaited;
    }
    posted_bytes += message.size_bytes;
    must_hold((message.delivered_at_ps < 0 || message.delivered_at_ps >= message.posted_at_ps) &&
                  (message.acked_at_ps < 0 ||
                   (message.delivered_at_ps >= 0 && message.acked_at_ps >= message.delivered_at_ps)),
              Invariant::message_delivered_once, "message posted_at_ps delivered_at_ps acked_at_ps", id,
              message.posted_at_ps, message.delivered_at_ps, message.acked_at_ps);
  }
  must_hold(open == job.open_work, Invariant::work_is_counted_once, "open counted", open, job.open_work);
  must_hold(open == 0 ? job.delivered_bytes == posted_bytes : job.delivered_bytes <= posted_bytes,
            Invariant::message_delivered_once, "delivered_bytes posted_bytes", job.delivered_bytes, posted_bytes);
  for (const auto& [flow, box] : job.mailboxes) {
    must_hold(box.completed <= box.claimed && box.completed <= box.delivered &&
                  std::cmp_equal(box.waiting.size(), box.claimed),
              Invariant::receive_takes_one_message, "flow completed claimed delivered", flow, box.completed,
              box.claimed, box.delivered);
    awaited += box.claimed - box.completed;
  }
  must_hold(outstanding == awaited, Invariant::stream_step_in_order, "outstanding awaited", outstanding, awaited);
}

}  // namespace detail

/// Check the sums of a state between two windows.
inline void audit(const State& s) {
  const IdVector<NodeId, bool> touched = detail::touched_nodes(s.setup, s.fabric);
  std::int64_t arrived = 0, blocks = 0, paused = 0;
  for (const NodeId node : s.setup.in.node_kind.ids()) {
    if (!touched[node]) {
      blocks +=
          static_cast<std::int64_t>(s.setup.ports_of(node).size()) * s.setup.class_count;  // each stream began with one
      continue;
    }
    for (const PortId port : s.setup.ports_of(node)) {
      arrived += detail::arrived_packets(s.setup, s.fabric, port);
      blocks += detail::blocks_of(s.setup, s.fabric, s.hosts, port);
      if (s.setup.link_credits) detail::audit_credits(s.setup, s.fabric, port);
      if (is_host(s.setup, node)) detail::audit_nic(s.setup, s.fabric, s.hosts, port);
    }
    if (!is_host(s.setup, node)) paused += detail::audit_switch(s.setup, s.fabric, s.recordings, node);
  }
  must_hold(arrived == s.recordings.count.packet_hops, Invariant::packets_conserved, "arrived counted", arrived,
            s.recordings.count.packet_hops);
  must_hold(blocks == s.fabric.pool.blocks_taken(), Invariant::pool_returns_each_block_once, "in_streams taken", blocks,
            s.fabric.pool.blocks_taken());
  must_hold(paused == s.fabric.paused_ingresses, Invariant::pause_is_counted_once, "paused counted", paused,
            s.fabric.paused_ingresses);
  detail::audit_queue_pairs(s.setup, s.hosts, s.job);
  detail::audit_job(s.job);
}

}  // namespace weftwork

/// Whole collectives: the calls of one communicator run one after the other. Each starts when all its participants have
/// posted it.
/// Source: weftwork.spec.job.Collect.
#pragma once
#include <utility>

#include "flow/fluid.hpp"
#include "flow/lanes.hpp"

namespace weftwork::flow {

/// Let the first call of a communicator begin once it is complete and nothing goes before it.
inline void consider(State& s, CommunicatorCell communicator) {
  Communicating& at = s.communicators[communicator];
  if (at.running || std::cmp_equal(at.head, at.calls.size())) return;
  CollectiveCall& call = at.calls[at.head];
  if (call.posted < s.network->communicators[communicator].participants) return;
  at.running = true;
  call.ready_at_ps = s.now_ps;
  const OpRow& op = s.in.job.ops[call.row];
  const Ps overhead_ps = s.is_ideal ? 0 : s.in.job.collect(op).overhead_ps;
  s.push(s.now_ps + overhead_ps, Event::kCallBegins, communicator);
}

inline void post_call(State& s, StreamId stream, OperationCell operation, OpId row) {
  const CommunicatorCell communicator = s.network->operations[operation].communicator;
  Communicating& at = s.communicators[communicator];
  const ActorId actor = s.streams[stream].actor;
  const std::int64_t number = at.posted[actor]++;
  if (std::cmp_equal(number, at.calls.size())) {
    CollectiveCall& fresh = at.calls.emplace_back();
    fresh.operation = operation;
    fresh.row = row;
    fresh.actor = actor;
    fresh.posted_at_ps = s.now_ps;
    s.open_work += 1;
  }
  CollectiveCall& call = at.calls[number];
  call.posted += 1;
  if (call.posted == s.network->communicators[communicator].participants) call.complete_at_ps = s.now_ps;
  call.streams.push_back(stream);
  consider(s, communicator);
}

inline void end_call(State& s, CommunicatorCell communicator) {
  Communicating& at = s.communicators[communicator];
  CollectiveCall& call = at.calls[at.head];
  const OpRow& op = s.in.job.ops[call.row];
  const CollectRow& collect = s.in.job.collect(op);
  const Operation& operation = s.network->operations[call.operation];
  const Communicator& members = s.network->communicators[communicator];
  const auto label = static_cast<std::int32_t>(op.label);
  s.activities.push_back({label, members.channel, collect.pattern, call.actor.value, members.members, members.instances,
                          operation.flows, op.value, collect.size_bytes, call.posted_at_ps, call.ready_at_ps,
                          s.now_ps});
  s.open_work -= 1;
  s.end_ps = std::max(s.end_ps, s.now_ps);
  for (const StreamId stream : call.streams) complete_posted(s, stream, {label, true, call.complete_at_ps});
  call.streams = {};
  at.running = false;
  at.head += 1;
  consider(s, communicator);
}

/// The overhead is over; the bytes begin to flow.
inline void begin_call(State& s, CommunicatorCell communicator) {
  Communicating& at = s.communicators[communicator];
  CollectiveCall& call = at.calls[at.head];
  const OpRow& op = s.in.job.ops[call.row];
  const Operation& operation = s.network->operations[call.operation];
  const CollectRow& collect = s.in.job.collect(op);
  call.began_at_ps = s.now_ps;
  call.left = s.is_ideal ? 0 : operation.activities;
  const std::int64_t activity = std::int64_t{communicator.value} << 1 | kOfCall;
  if (!s.is_ideal)
    for (const ActivityCell i : waited_for(operation)) {
      if (s.in.adapts) adapt(s, i);
      s.fluid->start(s.variable_of_activity[i], activity, static_cast<double>(collect.amount_bytes),
                     static_cast<double>(s.now_ps));
    }
  if (!s.is_ideal) start_companions(s, operation, static_cast<double>(collect.amount_bytes));
  if (call.left == 0) s.push(s.now_ps, Event::kCallEnds, communicator);
}

/// The bytes of one activity of the running call are there, but for the latency of its longest path.
inline void end_part(State& s, CommunicatorCell communicator) {
  Communicating& at = s.communicators[communicator];
  CollectiveCall& call = at.calls[at.head];
  if (--call.left > 0) return;
  const Operation& operation = s.network->operations[call.operation];
  if (s.in.adapts)
    for (const ActivityCell i : waited_for(operation)) let_go(s, i);
  record_call_flow(s, communicator, call);
  Ps latency_ps = 0;
  for (const ActivityCell i : waited_for(operation)) latency_ps = std::max(latency_ps, s.latency_ps(i));
  s.push(s.now_ps + latency_ps, Event::kCallEnds, communicator);
}

}  // namespace weftwork::flow

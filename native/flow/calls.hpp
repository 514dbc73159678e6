/// Whole collectives: the calls of one communicator run one after the other. Each starts when all its participants have
/// posted it.
/// Source: weftwork.spec.job.Collect.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "flow/adaptive.hpp"
#include "flow/fluid.hpp"
#include "flow/ids.hpp"
#include "flow/job_state.hpp"
#include "flow/lanes.hpp"
#include "flow/network.hpp"
#include "flow/record.hpp"
#include "flow/recordings.hpp"
#include "flow/run_clock.hpp"
#include "flow/setup.hpp"
#include "flow/state.hpp"
#include "flow/traffic.hpp"
#include "rows/job.hpp"

namespace weftwork::flow {

/// Let the first call of a communicator begin once it is complete and nothing goes before it.
inline void consider(const Setup& setup, JobState& job, RunClock& clock, CommunicatorCell communicator) {
  Communicating& at = job.communicators[communicator];
  if (at.running || at.head == at.known()) return;
  CollectiveCall& call = at.call(at.head);
  if (call.posted < setup.network->communicators[communicator].participants) return;
  at.running = true;
  call.ready_at_ps = clock.now_ps;
  const OpRow& op = setup.in.job.ops[call.row];
  const Ps overhead_ps = setup.is_ideal ? 0 : setup.in.job.collect(op).overhead_ps;
  clock.push(clock.now_ps + overhead_ps, Event::kCallBegins, communicator);
}

inline void post_call(const Setup& setup, JobState& job, RunClock& clock, StreamId stream, OperationCell operation,
                      OpId row) {
  const CommunicatorCell communicator = setup.network->operations[operation].communicator;
  Communicating& at = job.communicators[communicator];
  const ActorId actor = job.streams[stream].actor;
  const std::int64_t number = at.posted[actor]++;
  if (number == at.known()) {
    CollectiveCall& fresh = at.calls.emplace_back();
    fresh.operation = operation;
    fresh.row = row;
    fresh.actor = actor;
    fresh.posted_at_ps = clock.now_ps;
    job.open_work += 1;
  }
  CollectiveCall& call = at.call(number);
  call.posted += 1;
  if (call.posted == setup.network->communicators[communicator].participants) call.complete_at_ps = clock.now_ps;
  call.streams.push_back(stream);
  consider(setup, job, clock, communicator);
}

inline void end_call(const Setup& setup, JobState& job, RunClock& clock, Recordings& recordings,
                     CommunicatorCell communicator) {
  Communicating& at = job.communicators[communicator];
  CollectiveCall& call = at.call(at.head);
  const OpRow& op = setup.in.job.ops[call.row];
  const CollectRow& collect = setup.in.job.collect(op);
  const Operation& operation = setup.network->operations[call.operation];
  const Communicator& members = setup.network->communicators[communicator];
  const auto label = static_cast<std::int32_t>(op.label);
  if (recordings.has_details)
    recordings.activities.push_back({.label = label,
                                     .channel = members.channel,
                                     .pattern = collect.pattern,
                                     .actor = call.actor.value,
                                     .ranks = members.members,
                                     .instances = members.instances,
                                     .flows = operation.flows,
                                     .operation = op.value,
                                     .size_bytes = collect.size_bytes,
                                     .posted_ps = call.posted_at_ps,
                                     .start_ps = call.ready_at_ps,
                                     .end_ps = clock.now_ps});
  job.open_work -= 1;
  clock.end_ps = std::max(clock.end_ps, clock.now_ps);
  for (const StreamId stream : call.streams)
    complete_posted(setup, job, clock, recordings, stream, {label, true, call.complete_at_ps});
  call.streams = {};
  at.running = false;
  at.pass();
  consider(setup, job, clock, communicator);
}

/// The overhead is over; the bytes begin to flow.
inline void begin_call(const Setup& setup, Traffic& traffic, JobState& job, RunClock& clock,
                       CommunicatorCell communicator) {
  Communicating& at = job.communicators[communicator];
  CollectiveCall& call = at.call(at.head);
  const OpRow& op = setup.in.job.ops[call.row];
  const Operation& operation = setup.network->operations[call.operation];
  const CollectRow& collect = setup.in.job.collect(op);
  call.began_at_ps = clock.now_ps;
  call.left = setup.is_ideal ? 0 : operation.activities;
  const std::int64_t activity = std::int64_t{communicator.value} << 1 | kOfCall;
  if (!setup.is_ideal)
    for (const ActivityCell i : waited_for(operation)) {
      if (setup.in.adapts) adapt(setup, traffic, clock, i);
      traffic.fluid->start(traffic.variable_of_activity[i], activity, static_cast<double>(collect.amount_bytes),
                           static_cast<double>(clock.now_ps));
    }
  if (!setup.is_ideal) start_companions(traffic, clock, operation, static_cast<double>(collect.amount_bytes));
  if (call.left == 0) clock.push(clock.now_ps, Event::kCallEnds, communicator);
}

/// The bytes of one activity of the running call are there, but for the latency of its longest path.
inline void end_part(State& s, CommunicatorCell communicator) {
  Communicating& at = s.job.communicators[communicator];
  CollectiveCall& call = at.call(at.head);
  if (--call.left > 0) return;
  const Operation& operation = s.setup.network->operations[call.operation];
  if (s.setup.in.adapts)
    for (const ActivityCell i : waited_for(operation)) let_go(s.setup, s.traffic, i);
  record_call_flow(s.setup, s.traffic, s.clock, s.recordings, communicator, call);
  Ps latency_ps = 0;
  for (const ActivityCell i : waited_for(operation))
    latency_ps = std::max(latency_ps, latency_now_ps(s.setup, s.traffic, i));
  s.clock.push(s.clock.now_ps + latency_ps, Event::kCallEnds, communicator);
}

}  // namespace weftwork::flow

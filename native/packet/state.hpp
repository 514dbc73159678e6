/// The state of one run: records (`..._records.hpp`) in arrays by the id of what they are about, in a few structs. A
/// function takes those that it reads or writes, and the whole where it touches most of them.
/// Naming rule of all records: instants are `..._at_ps` (or `..._until_ps`), durations `..._ps`, so that a state can be
/// shifted in time.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "packet/containers.hpp"
#include "packet/fabric.hpp"
#include "packet/hosts.hpp"
#include "packet/ids.hpp"
#include "packet/input.hpp"
#include "packet/job_records.hpp"
#include "packet/job_state.hpp"
#include "packet/policy_calls.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/recordings.hpp"
#include "packet/routing_tables.hpp"
#include "packet/schedule.hpp"
#include "packet/setup.hpp"

namespace weftwork {

struct State {
  Setup setup;
  Fabric fabric;
  RoutingTables routing;
  Schedule schedule;
  Hosts hosts;
  JobState job;
  PolicyCalls calls;
  Recordings recordings;

  State(const Input& input, Ps lookahead, std::size_t stride)
      : setup(input),
        fabric(input, stride),
        routing(input),
        schedule(input, lookahead),
        hosts(input),
        job(input),
        calls(input),
        recordings(input) {}
};

/// The flow of a message between servers or inside one.
inline std::uint64_t flow_of(const Hosts& hosts, const JobState& job, const Message& message) {
  return message.lane.is_none() ? hosts.queue_pairs[message.queue_pair].flow : job.lanes[message.lane].flow;
}

// Ids that are easily taken for one another: a wrong one does not compile.
static_assert(detail::IndexedBy<decltype(Fabric::queues), QueueId>);
static_assert(!detail::IndexedBy<decltype(Fabric::queues), PortId> &&
              !detail::IndexedBy<decltype(Fabric::queues), LocalQueueId>);
static_assert(!detail::IndexedBy<decltype(Fabric::ports), LocalPort> &&
              !detail::IndexedBy<decltype(Fabric::ports), NicId>);
static_assert(!detail::IndexedBy<decltype(Fabric::switches), NodeId>);
static_assert(!detail::IndexedBy<decltype(JobState::messages), std::size_t> &&
              !detail::IndexedBy<decltype(JobState::messages), QueuePairId>);
static_assert(!detail::IndexedBy<decltype(NicPort::slots), ReceiverSlotId>);
static_assert(!detail::IndexedBy<decltype(Input::port_node), NodeId>);

}  // namespace weftwork

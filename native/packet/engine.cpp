#include "packet/engine.hpp"

#include <bit>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

#include "base/limit_error.hpp"
#include "packet/audit.hpp"
#include "packet/deadlock.hpp"
#include "packet/window.hpp"

namespace weftwork {

namespace {

/// The shortest delay between two nodes; nothing sent inside a window of this length can arrive inside it.
Ps lookahead_ps(const Input& in) {
  Ps shortest = kSecondPs;  // chosen: a fabric without links still has windows
  for (const PortId port : in.port_peer.ids())
    if (!in.port_peer[port].is_none()) shortest = std::min<Ps>(shortest, in.port_delay_ps[port]);
  if (shortest <= 0) throw LimitError("a link without delay joins two nodes; give it at least 1 ps");
  constexpr Ps kLongest = Ps{1} << 31;  // chosen: a key of an arrival holds 32 bits of time
  return std::min(shortest, kLongest);
}

void check_recorded_state(const Input& in) {
  for (const StateField& field : in.series.state) {
    const std::size_t size = field.of_path ? in.path.state.size() : in.congestion.state.size();
    if (std::cmp_greater_equal(field.place, size / sizeof(std::int64_t)))
      throw LimitError("a field of a state is to be recorded that its policy does not have");
  }
}

/// A number of the record of a policy.
double state_value(const StateField& field, const std::uint8_t* record) {
  std::int64_t bits = 0;
  std::memcpy(&bits, record + field.place * sizeof(bits), sizeof(bits));
  return field.is_float ? std::bit_cast<double>(bits) : static_cast<double>(bits);
}

bool has_failover(const Input& in) {
  return std::any_of(in.instants.begin(), in.instants.end(), [](const InstantRow& instant) {
    return static_cast<InstantCode>(instant.code) == InstantCode::kFailover;
  });
}

bool has_layers(const Input& in) {
  return std::any_of(in.routes.begin(), in.routes.end(),
                     [](const RouteTable& table) { return !table.layer_group.empty(); });
}

std::size_t stride_of(const Input& in) {
  if (in.has_telemetry) return in.wide ? kWideTelemetryStride : kTelemetryStride;
  if (in.wide) return kWideStride;
  const bool several_hashes = [&] {
    for (const SwitchRow& row : in.switches)
      if (row.hash_fields != in.switches[DeviceId(0)].hash_fields ||
          row.hash_algorithm != in.switches[DeviceId(0)].hash_algorithm || (row.hash_fields & kInPort) != 0)
        return true;
    return false;
  }();
  const bool echo = wants(in.congestion.signals, Kind::kAck) || wants(in.congestion.signals, Kind::kCredit) ||
                    (in.path.step != nullptr && in.path.signals != 0) || in.echoes_time || in.echoes_entropy;
  const bool origin = (several_hashes || has_layers(in)) && has_failover(in);
  const bool entropy =
      in.path.step != nullptr &&
      (several_hashes || has_layers(in) || in.congestion.receive != nullptr || in.transport.replies_follow != 0);
  const bool replies = in.transport.end_to_end_credits > 0 || in.transport.selective_repeat != 0;
  const bool captured = !in.capture.ports.empty();
  return echo || entropy || origin || replies || captured || in.extended ? kExtendedStride : kPlainStride;
}

void build_ports(State& s) {
  const Input& in = s.setup.in;
  const std::size_t ports = in.port_peer.size();
  s.fabric.ports.resize(ports);
  s.recordings.port_counters.resize(ports);
  if (in.has_path_load) s.fabric.loads.resize(ports);
  s.schedule.due_at_ps.assign(ports, kNeverPs);
  s.fabric.rate_bps.assign(in.port_rate_bps.items());
  if (in.has_telemetry) s.fabric.rates.open(ports);
  s.fabric.loss.assign(in.port_loss.items());
  for (const InstantRow& instant : in.instants)
    s.setup.loses = s.setup.loses || static_cast<InstantCode>(instant.code) == InstantCode::kLoss;
  s.fabric.frames_waiting.resize(ports);
  s.fabric.frames_inbound.resize(ports);
  s.hosts.nic_of_port.assign(ports, NicId::none());
  s.fabric.inexact_serialisation.resize(ports);
  s.fabric.queues.resize(ports << s.setup.class_shift);
  s.fabric.queue_controls.resize(s.fabric.queues.size());
  s.fabric.inbound.resize(s.fabric.queues.size());
  s.fabric.ingresses.resize(s.fabric.queues.size());
  for (const PortId port : s.fabric.ports.ids()) {
    Port& record = s.fabric.ports[port];
    record.delay_ps = in.port_delay_ps[port];
    set_rate(s.setup, s.fabric, port, in.port_rate_bps[port]);
    s.setup.loses = s.setup.loses || in.port_loss[port] > 0 || in.port_corruption[port] > 0;
    if (in.port_peer[port].is_none()) continue;
    record.peer_node = in.port_node[in.port_peer[port]];
    record.peer_local = s.setup.local_port(in.port_peer[port]);
  }
  if (s.setup.link_credits) {
    s.fabric.credit_lanes.resize(s.fabric.queues.size());
    for (const PortId port : s.fabric.ports.ids()) renew_credits(s.setup, s.fabric, port);
  }
  for (const PortId port : s.fabric.ports.ids())
    for (const TrafficClass klass : s.setup.classes()) {
      Packet* stream = s.fabric.pool.open();
      Queue& queue = s.fabric.queues[s.setup.at(port, klass)];
      queue.tail = queue.departure = stream;
      if (!in.port_peer[port].is_none()) s.fabric.inbound[s.setup.at(in.port_peer[port], klass)] = stream;
    }
}

/// A packet's record holds the port and the class by which it came into a switch in 16 bits.
void refuse_many_ports(const Setup& setup, std::size_t ports) {
  const std::size_t most = (std::size_t{1} << 16) >> setup.class_shift;
  if (ports <= most) return;
  throw LimitError("a switch with " + std::to_string(ports) + " ports, wanted at most " + std::to_string(most) +
                   " where packets have " + std::to_string(setup.class_count) +
                   " traffic classes; take smaller switches, fewer priorities or fewer virtual channels");
}

void build_nodes(const Setup& setup, Fabric& fabric, Schedule& schedule, Hosts& hosts) {
  const Input& in = setup.in;
  const std::size_t nodes = in.node_kind.size();
  fabric.switch_of_node.assign(nodes, SwitchId::none());
  schedule.agendas.resize(nodes);
  schedule.woken_from_at_ps.resize(nodes, 0);
  schedule.woken_until_ps.resize(nodes, 0);
  schedule.mask_base.resize(nodes + 1, 0);
  for (const NodeId node : in.node_kind.ids()) {
    schedule.mask_base[node + 1] = schedule.mask_base[node] + (setup.ports_of(node).size() + 63) / 64;
    if (in.node_kind[node] != 0) {
      fabric.switch_of_node[node] = fabric.switches.next_id();
      SwitchNode record;
      record.shared_bytes = in.shared_bytes[node];
      record.device = in.node_device[node];
      record.port_policy.assign(in.port.state.size() / 8 + 1, 0);
      std::copy(in.port.state.begin(), in.port.state.end(), reinterpret_cast<std::uint8_t*>(record.port_policy.data()));
      const std::size_t ports_here = setup.ports_of(node).size();
      refuse_many_ports(setup, ports_here);
      record.port_states.assign(ports_here * (in.port.port_state.size() / 8), 0);
      for (std::size_t i = 0; i < ports_here; ++i)
        std::copy(in.port.port_state.begin(), in.port.port_state.end(),
                  reinterpret_cast<std::uint8_t*>(record.port_states.data()) + i * in.port.port_state.size());
      const SwitchRow& row = in.switches[in.node_device[node]];
      std::uint16_t lowest_weighted = 0;  // deficit round robin begins there
      while (lowest_weighted + 1 < setup.class_count && row.weight[lowest_weighted] == 0) ++lowest_weighted;
      for (const TrafficClass klass : setup.classes())
        if (row.weight[klass.index()] != 0) record.weighted |= bit_of(klass);
      for (const PortId port : setup.ports_of(node)) fabric.ports[port].current = lowest_weighted;
      if (setup.link_credits) record.in_order_for = 1;
      fabric.switches.push_back(std::move(record));
      continue;
    }
    for (const PortId port : setup.ports_of(node)) {
      hosts.nic_of_port[port] = hosts.nics.next_id();
      NicPort& nic = hosts.nics.emplace_back();
      const NicRow& row = in.nics[in.node_device[node]];
      nic.pcie_rate_bps = row.pcie_rate_bps;
      nic.has_host_interface = row.pcie_rate_bps > 0 || row.pcie_latency_ps > 0;
      nic.shared.assign(in.congestion.shared_state.size() / 8 + 1, 0);
      std::copy(in.congestion.shared_state.begin(), in.congestion.shared_state.end(),
                reinterpret_cast<std::uint8_t*>(nic.shared.data()));
    }
  }
  for (const PortId port : in.attachment.ids()) {
    if (in.attachment[port].is_none() || in.port_peer[port].is_none()) continue;
    const SwitchId edge = fabric.switch_of_node[in.port_node[in.port_peer[port]]];
    if (!edge.is_none()) fabric.switches[edge].edge = in.attachment[port];
  }
  schedule.inbound_mask.assign(schedule.mask_base.back(), 0);
  schedule.frame_mask = schedule.outbound_mask = schedule.inbound_mask;
}

void build_job(const Setup& setup, Schedule& schedule, JobState& job) {
  const Input& in = setup.in;
  job.tokens.assign(in.rank_program.size() * static_cast<std::size_t>(in.tokens), 0);
  IdVector<ProgramId, std::vector<std::int64_t>> first_ops;
  for (const StreamRow& row : in.streams) {
    const ProgramId program(row.rank_program);
    if (first_ops.next_id() <= program) first_ops.resize(program.index() + 1);
    first_ops[program].push_back(row.first_op);
  }
  for (const RankId rank : in.rank_program.ids()) {
    job.first_stream.push_back(job.streams.next_id());
    const ProgramId program = in.rank_program[rank];
    if (program.is_none() || first_ops.next_id() <= program) continue;
    for (const std::int64_t op : first_ops[program]) {
      const StreamId id = job.streams.next_id();
      StreamState stream;
      stream.rank = rank;
      stream.op = op;
      job.streams.push_back(std::move(stream));
      job.open_work += 1;
      wake(setup, schedule, job, id, 0);
      schedule.calendar.schedule(setup.host_of(rank), 0);
    }
  }
  job.first_stream.push_back(job.streams.next_id());
  must_hold(std::cmp_equal(job.open_work, job.streams.size()), Invariant::work_is_counted_once, "open streams",
            job.open_work, job.streams.size());
  must_hold(job.first_stream.size() == in.rank_program.size() + 1, Invariant::stream_step_in_order,
            "first_streams ranks", job.first_stream.size(), in.rank_program.size());
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

Engine::Engine(Input input)
    : input_(std::move(input)),
      timeline_(input_.series.timeline_bins, input_.node_kind.size(), input_.port_peer.size()) {
  if (input_.class_priority.size() > 8) throw LimitError("at most eight priorities");
  check_recorded_state(input_);
  state_ = std::make_unique<State>(input_, lookahead_ps(input_), stride_of(input_));
  State& s = *state_;
  s.setup.extended = s.fabric.pool.stride() > kPlainStride;
  s.setup.wide = input_.wide;
  s.setup.has_host_processor = has_host_processor(input_.transport);
  if (input_.transport.inflight_cap_bytes > 0)
    s.setup.window_cap_bytes = static_cast<double>(input_.transport.inflight_cap_bytes);
  s.calls.port_signal.node = -1;  // none of which it tells
  s.setup.keeps_entropies = input_.path.step != nullptr && (wants(input_.path.signals, Kind::kTimeout) ||
                                                            wants(input_.congestion.signals, Kind::kTimeout));
  const PortPolicy& port = input_.port;
  s.setup.steers =
      has_layers(input_) || (!port.plain_ecmp && (port.via || port.always || port.at_delivery || port.non_minimal));
  s.setup.entropy_per_packet = s.setup.extended && input_.path.step != nullptr;
  s.setup.path_sample = input_.series.path_sample;
  for (const PortId captured : input_.capture.ports)
    s.recordings.captured.push_back({.port = captured.value, .rows = {}});
  s.setup.moves = s.setup.extended && has_failover(input_);
  s.schedule.keys.resize(1024);
  s.schedule.histogram.resize(2049);
  s.setup.link_credits = input_.transport.link_credits != 0;
  for (const TrafficClass klass : input_.class_lossless.ids())
    if (input_.class_lossless[klass] != 0 && !s.setup.link_credits) s.setup.lossless |= bit_of(klass);
  build_ports(s);
  use_routes(s.setup, s.fabric, s.routing, RouteTableId(0));
  build_nodes(s.setup, s.fabric, s.schedule, s.hosts);
  prepare_hash_functions(s.setup, s.routing);
  build_job(s.setup, s.schedule, s.job);
  watch_at_ps_ = input_.watch_ps;
  s.recordings.sample_every_ps = input_.series.every_ps;
  if (s.recordings.sample_every_ps > 0) s.recordings.next_sample_at_ps = 0;
}

Engine::~Engine() = default;

void Engine::handle(Ps start_ps, Ps end_ps) {
  State& s = *state_;
  const bool has_timeline = timeline_.is_on();
  s.schedule.calendar.each([&](NodeId node) {
    if (has_timeline) timeline_.touch(node);
    if (is_host(s.setup, node))
      host_window(s, node, start_ps, end_ps);
    else
      switch_window(s, node, start_ps, end_ps);
  });
}

void Engine::apply_cut(Ps at_ps) {
  State& s = *state_;
  if (at_ps == s.recordings.next_sample_at_ps) {
    sample(at_ps);
    const Ps rest_ps = s.recordings.sample_every_ps - at_ps % s.recordings.sample_every_ps;
    s.recordings.next_sample_at_ps = at_ps > kNeverPs - rest_ps ? kNeverPs : at_ps + rest_ps;
  }
  if (at_ps == timeline_.next_ps()) timeline_.end_bin(s.setup, s.fabric, s.recordings);
  if (at_ps == watch_at_ps_ && watch(at_ps)) return;
  while (s.schedule.next_instant < input_.instants.size() && input_.instants[s.schedule.next_instant].at_ps == at_ps)
    apply_instant(s, input_.instants[s.schedule.next_instant++]);
}

/// Look for a deadlock; true if there is one. The next look is when something can have changed.
bool Engine::watch(Ps at_ps) {
  State& s = *state_;
  const bool is_quiet = s.recordings.count.packet_hops == s.recordings.hops_at_last_watch;
  const Ps step_ps = input_.watch_ps;
  s.recordings.hops_at_last_watch = s.recordings.count.packet_hops;
  watch_at_ps_ = at_ps + step_ps;
  const bool may_be_held = s.setup.link_credits || s.fabric.paused_ingresses > 0;
  must_hold(watch_at_ps_ > at_ps, Invariant::time_never_runs_back, "at_ps next_at_ps", at_ps, watch_at_ps_);
  must_hold(s.fabric.paused_ingresses >= 0, Invariant::pause_is_counted_once, "at_ps counted", at_ps,
            s.fabric.paused_ingresses);
  if (may_be_held && is_quiet) s.recordings.deadlock = find_deadlock(s, at_ps);
  if (!s.recordings.deadlock.empty()) return true;
  if (may_be_held && !is_quiet) return false;
  const bool instants_left = s.schedule.next_instant < input_.instants.size();
  const Ps next_ps = std::min(instants_left ? input_.instants[s.schedule.next_instant].at_ps : kNeverPs,
                              s.schedule.calendar.next_ps());
  watch_at_ps_ = std::max(watch_at_ps_, next_ps / step_ps * step_ps + step_ps);
  return false;
}

bool Engine::advance(double budget_s) {
  State& s = *state_;
  const double stop_s = cpu_seconds() + budget_s;
  for (std::uint32_t rounds = 1;; ++rounds) {
    const bool instants_left = s.schedule.next_instant < input_.instants.size();
    const Ps instant_ps = instants_left ? input_.instants[s.schedule.next_instant].at_ps : kNeverPs;
    must_hold(instant_ps >= simulated_until_ps_, Invariant::time_never_runs_back, "at_ps instant_at_ps",
              simulated_until_ps_, instant_ps);
    if (s.job.open_work == 0) s.recordings.next_sample_at_ps = kNeverPs;  // what is left are stale timers
    if (timeline_.is_on() && !in_window_) timeline_.pass_quiet(std::min(instant_ps, s.schedule.calendar.next_ps()));
    const Ps cut_ps =
        std::min({instant_ps, s.recordings.next_sample_at_ps, timeline_.next_ps(), watch_at_ps_, input_.until_ps});
    if (!in_window_) {
      const Ps next_ps = s.schedule.calendar.next_ps();
      if (next_ps == kNeverPs && !instants_left) {
        if (s.setup.link_credits)
          s.recordings.deadlock = find_deadlock(s, simulated_until_ps_);  // no refresh leads to a look
        has_work_ = false;
        return finish();
      }
      const Ps target_ps = std::max(simulated_until_ps_, std::min(next_ps, cut_ps));
      s.schedule.calendar.go_to(target_ps);
      must_hold(next_ps >= s.schedule.calendar.start_ps(), Invariant::time_never_runs_back, "next_at_ps window_at_ps",
                next_ps, s.schedule.calendar.start_ps());
      simulated_until_ps_ =
          std::max(simulated_until_ps_, target_ps == cut_ps ? cut_ps : s.schedule.calendar.start_ps());
      in_window_ = true;
    }
    if (simulated_until_ps_ >= input_.until_ps) return finish();
    if (cut_ps <= simulated_until_ps_) {
      apply_cut(simulated_until_ps_);
      if (!s.recordings.deadlock.empty()) {
        has_work_ = false;
        return finish();
      }
      continue;
    }
    const Ps end_ps = std::min(cut_ps, s.schedule.calendar.end_ps());
    must_hold(end_ps > simulated_until_ps_, Invariant::time_never_runs_back, "at_ps end_ps", simulated_until_ps_,
              end_ps);
    handle(simulated_until_ps_, end_ps);
    simulated_until_ps_ = end_ps;
    if (end_ps == s.schedule.calendar.end_ps()) {
      s.schedule.calendar.clear();
      in_window_ = false;
    }
    if ((rounds & 15U) == 0 && cpu_seconds() > stop_s) return false;
  }
}

/// The run has come to its end: what must agree then.
bool Engine::finish() {
  audit(*state_);
  return true;
}

const Timeline& Engine::timeline() {
  timeline_.close(state_->setup, state_->fabric, state_->recordings,
                  has_work_ ? simulated_until_ps_ : state_->recordings.count.end_ps, !has_work_);
  return timeline_;
}

/// Record rate, window and more of the state of chosen queue pairs, and the queues of chosen ports, as they are just
/// before `at_ps`.
void Engine::sample(Ps at_ps) {
  State& s = *state_;
  while (std::cmp_greater_equal(s.recordings.series.size(), input_.series.row_limit) &&
         s.recordings.sample_every_ps <= kNeverPs / 2) {
    s.recordings.sample_every_ps *= 2;
    std::erase_if(s.recordings.series,
                  [&](const SeriesRow& row) { return row.at_ps % s.recordings.sample_every_ps != 0; });
    if (s.recordings.series.empty() || s.recordings.series.back().at_ps == 0)
      break;  // one instant alone is beyond the limit
  }
  if (at_ps % s.recordings.sample_every_ps != 0) return;
  must_hold(s.recordings.series.empty() || s.recordings.series.back().at_ps <= at_ps,
            Invariant::recordings_in_order_of_time, "at_ps samples", at_ps, s.recordings.series.size());
  const auto sample = [&](std::int64_t kind, std::int64_t index, double value) {
    s.recordings.series.push_back({.at_ps = at_ps, .kind = kind, .index = index, .value = value});
  };
  const auto record = [&](QueuePairId id) {
    const QueuePair& qp = s.hosts.queue_pairs[id];
    const SenderState& state = sender_state(qp);
    sample(static_cast<std::int64_t>(SeriesKind::kRateBps), id.value, state.rate_bps);
    sample(static_cast<std::int64_t>(SeriesKind::kWindowBytes), id.value, state.window_bytes);
    std::int64_t kind = kSeriesKinds;
    for (const StateField& field : input_.series.state)
      sample(kind++, id.value, state_value(field, field.of_path ? qp.path : qp.congestion));
  };
  if (input_.series.all_flows) {
    for (const QueuePairId id : s.hosts.queue_pairs.ids()) record(id);
  } else {
    for (const std::uint64_t flow : input_.series.flows)
      if (const auto found = s.hosts.queue_pair_of_flow.find(flow); found != s.hosts.queue_pair_of_flow.end())
        record(found->second);
  }
  for (const PortId port : input_.series.ports) {
    const NodeId node = input_.port_node[port];
    if (at_ps > 0) drain_node(s, node, at_ps - 1);
    must_hold(queued_bytes(s.setup, s.fabric, port) >= 0, Invariant::queue_holds_what_it_counts,
              "at_ps port queue_bytes", at_ps, port, queued_bytes(s.setup, s.fabric, port));
    sample(static_cast<std::int64_t>(SeriesKind::kQueueBytes), port.value,
           static_cast<double>(queued_bytes(s.setup, s.fabric, port)));
  }
}

}  // namespace weftwork

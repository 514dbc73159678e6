#include "flow/engine.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "flow/epochs.hpp"
#include "flow/fluid.hpp"
#include "flow/instants.hpp"
#include "flow/streams.hpp"

namespace weftwork::flow {

namespace {

// A look at the clock of a thread is a call of the system: as often as it takes to be on time.
constexpr double kLookS = 1e-3;                                  // chosen: of CPU between two looks, about
constexpr std::uint32_t kFirstLook = 64, kLastLook = 1U << 16U;  // chosen: rounds between two looks

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void build_links(const Setup& setup, Traffic& traffic) {
  const FabricView& fabric = setup.in.fabric;
  const std::size_t ports = fabric.port_node.size();
  IdVector<PortId, std::int64_t> host_rate_bps(ports, 0);
  bool any = false;
  const auto slower = [&](PortId port, std::int64_t rate_bps) {
    if (rate_bps <= 0 || rate_bps >= fabric.port_rate_bps[port]) return;
    host_rate_bps[port] = rate_bps;
    any = true;
  };
  for (const PortId port : fabric.ports())
    if (!fabric.is_switch(fabric.owner(port))) slower(port, setup.in.nic_behind(port).pcie_rate_bps);
  std::vector<PortId> later;  // a link from the beginning where a fault makes one
  for (const InstantRow& row : setup.in.instants)
    if (static_cast<InstantCode>(row.code) == InstantCode::kHostRate) {
      later.emplace_back(row.port);
      any = true;
    }
  if (!any) host_rate_bps.assign(0, 0);
  traffic.links =
      links_of(setup.in.job, fabric.port_rate_bps, IdSpan<PortId, const std::int64_t>(host_rate_bps.items()));
  for (const PortId port : later) {
    double& capacity = traffic.links.capacity[traffic.links.host_interface(port)];
    if (capacity == 0) capacity = static_cast<double>(fabric.port_rate_bps[port]) * kBytesPerPs;
  }
  traffic.is_down.assign(ports, 0);
  traffic.loss.assign(setup.in.port_loss.items());
  traffic.carried_bytes.assign(ports, 0.0);
  traffic.seen_bytes.assign(ports, 0.0);
}

/// Equal where capacities change alike over the run; empty where none does. Without what bundles share.
IdVector<LinkId, std::uint64_t> fates(const Setup& setup, const Traffic& traffic) {
  IdVector<LinkId, std::uint64_t> fate;
  for (const InstantRow& row : setup.in.instants) {
    const auto code = static_cast<InstantCode>(row.code);
    if (code == InstantCode::kRoutes || code == InstantCode::kFailover) continue;
    fate.resize(traffic.links.capacity.size() + 1, 0);
    const auto tell = [&](LinkId link) {
      std::uint64_t& own = fate[link];
      own = mix(own, static_cast<std::uint64_t>(row.at_ps), static_cast<std::uint64_t>(row.value * 8 + row.code) + 1);
    };
    const PortId port(row.port);
    if (code == InstantCode::kHostRate) {
      tell(traffic.links.host_interface(port));
    } else {
      tell(link_of(port));
      tell(link_of(setup.in.fabric.peer(port)));
    }
  }
  return fate;
}

/// The graphs of a job by epoch, and what its links go through.
struct Paths {
  std::vector<Graph> graphs;                           // those that differ
  std::vector<Graph> detours;                          // of the same epochs; under adaptive routing alone
  std::vector<IdVector<PortId, double>> bundle_links;  // as Traffic::bundle_links, by graph
  IdVector<LinkId, std::uint64_t> fate;                // of the copies of links, by graph; empty: none changes
};

/// Fates of the links of one graph, which tell its links from those of others; a bundle shares what its members go
/// through, by the bundles that hold now.
void add_fates(const Setup& setup, const Traffic& traffic, const IdVector<LinkId, std::uint64_t>& own,
               std::int32_t graph, Paths& paths) {
  if (own.empty()) return;
  const std::int32_t first_link = graph * setup.ground.copy;
  if (std::cmp_less_equal(paths.fate.size(), first_link))
    for (const std::uint64_t fate : own)
      paths.fate.push_back(graph == 0 ? fate : mix(fate, static_cast<std::uint64_t>(graph), 2));
  for (const PortId port : setup.in.fabric.ports()) {
    const PortId bundle = traffic.router->bundle_of_port(port);
    if (bundle == port || own[link_of(port)] == 0) continue;
    std::uint64_t& shared = paths.fate[link_of(bundle) + first_link];
    shared = mix(shared, own[link_of(port)], 1);
  }
}

/// The graph of every epoch; tells which one each instant begins.
Paths find_paths(Setup& setup, Traffic& traffic, Wire wire) {
  Paths paths;
  const std::size_t ports = setup.in.fabric.port_node.size();
  const IdVector<LinkId, std::uint64_t> fate = fates(setup, traffic);
  const LinkId nowhere = traffic.links.capacity.next_id();
  Schedule schedule = schedule_of(setup.in.instants, setup.in.fabric, traffic.loss);
  traffic.router->tell_stages(false);
  std::vector<std::int32_t> graph_of_rules;
  std::size_t table = 0;
  for (const PathRules& rules : schedule.rules) {
    if (rules.table != table) traffic.router->use(setup.in.live.subspan(rules.table * ports, ports), rules.table);
    table = rules.table;
    const bool is_first = paths.graphs.empty();  // what has no path before any fault is refused
    const Outage outage{IdSpan<PortId, const char>(rules.down.items()), is_first ? LinkId::none() : nowhere};
    const Lossy lossy{rules.loss, setup.in.losses, setup.in.wire, setup.in.fabric};
    const Lossy* loses = rules.loss.empty() ? nullptr : &lossy;
    traffic.router->take_detours(!setup.in.adapts);
    Graph graph = build_graph(setup.in.job, traffic.links, *traffic.router, wire, outage, loses);
    traffic.router->take_detours(true);
    Graph detour;
    if (setup.in.adapts) detour = build_graph(setup.in.job, traffic.links, *traffic.router, wire, outage, loses);
    const auto same = std::find_if(paths.graphs.begin(), paths.graphs.end(), [&](const Graph& known) {
      return have_same_paths(known, graph) &&
             (!setup.in.adapts ||
              have_same_paths(paths.detours[static_cast<std::size_t>(&known - paths.graphs.data())], detour));
    });
    const auto number = static_cast<std::int32_t>(same - paths.graphs.begin());
    graph_of_rules.push_back(number);
    add_fates(setup, traffic, fate, number, paths);
    if (same != paths.graphs.end()) continue;
    paths.graphs.push_back(std::move(graph));
    if (setup.in.adapts) paths.detours.push_back(std::move(detour));
    count_bundles(setup, traffic);
    paths.bundle_links.push_back(traffic.bundle_links);
  }
  traffic.router->tell_stages(true);
  if (table != 0) traffic.router->use(setup.in.live.first(ports));
  count_bundles(setup, traffic);
  for (std::int32_t& begins : schedule.begins)
    if (begins >= 0) begins = graph_of_rules[static_cast<std::size_t>(begins)];
  setup.ground.epoch_begins = std::move(schedule.begins);
  return paths;
}

/// Fold what goes on in all epochs at once.
Folded fold_all(const Setup& setup, const Traffic& traffic, Paths& paths, FoldOptions options) {
  if (paths.graphs.size() == 1) {
    if (!paths.fate.empty()) paths.fate.resize(traffic.links.capacity.size());
    options.link_fate = IdSpan<LinkId, const std::uint64_t>(paths.fate.items());
    return fold(setup.in.job, IdSpan<LinkId, const double>(traffic.links.capacity.items()),
                std::move(paths.graphs.front()), options);
  }
  const IdVector<ActivityId, std::uint64_t> latency = latency_fates(paths.graphs);
  IdVector<LinkId, double> capacity;
  for (std::size_t epoch = 0; epoch < paths.graphs.size(); ++epoch) {
    for (const double own : traffic.links.capacity) capacity.push_back(own);
    capacity.push_back(0.0);
  }
  options.link_fate = IdSpan<LinkId, const std::uint64_t>(paths.fate.items());
  options.activity_fate = IdSpan<ActivityId, const std::uint64_t>(latency.items());
  options.has_core = false;
  return fold(setup.in.job, IdSpan<LinkId, const double>(capacity.items()), joined(paths.graphs, setup.ground.copy),
              options);
}

/// What cells of links and of activities are in each epoch.
void tell_epochs(Setup& setup, Traffic& traffic, const Paths& paths) {
  const Folded& found = *setup.ground.folded;
  const auto copy = setup.ground.copy;
  const bool is_one = paths.graphs.size() == 1;
  const auto& count = found.network.link_count;
  const bool is_apart = !found.network.folded && !found.network.approximate &&
                        std::all_of(count.begin(), count.end(), [](std::int32_t links) { return links == 1; });
  if (is_apart) setup.ground.link_of_cell.assign(found.network.capacity.size(), LinkId::none());
  if (!is_one) setup.ground.epoch_of_cell.assign(found.network.capacity.size(), 0);
  for (const LinkId link : found.network.link_cell.ids()) {
    const LinkCell cell = found.network.link_cell[link];
    if (cell.is_none()) continue;
    if (is_apart) setup.ground.link_of_cell[cell] = LinkId(link.value % copy);
    if (!is_one) setup.ground.epoch_of_cell[cell] = link.value / copy;
  }
  const std::size_t cells = found.network.approximate
                                ? found.network.connections.size() + found.network.operations.size()
                                : found.network.latency_ps.size();
  Epoch empty;
  empty.tier_weight.assign(cells, std::vector<double>(static_cast<std::size_t>(setup.in.tiers), 0.0));
  setup.ground.epochs.assign(paths.graphs.size(), empty);
  if (!is_one)
    for (std::size_t epoch = 0; epoch < paths.graphs.size(); ++epoch) {
      IdVector<ActivityCell, Ps>& latency_ps = setup.ground.epochs[epoch].latency_ps;
      latency_ps.resize(cells);
      for (const ActivityId a : found.graph.activities())
        latency_ps[found.cells.activity[a]] = paths.graphs[epoch].latency_ps[a];
    }
  if (setup.in.tiers == 0) return;
  std::vector<Hop> hops;
  for (std::size_t epoch = 0; epoch < paths.graphs.size(); ++epoch) {
    const Graph& graph = is_one ? found.graph : paths.graphs[epoch];
    traffic.bundle_links = paths.bundle_links[epoch];
    for (const ActivityId a : graph.activities()) {
      hops.clear();
      for (const GraphHop& hop : graph.hops_of(a)) hops.push_back({hop.link, graph.weights[hop.weight]});
      const std::vector<double> weight = tier_weight(setup, traffic, hops);
      std::vector<double>& sum = setup.ground.epochs[epoch].tier_weight[found.cells.activity[a]];
      for (std::size_t tier = 0; tier < weight.size(); ++tier) sum[tier] += weight[tier];
    }
  }
  traffic.bundle_links = paths.bundle_links.front();
}

/// Bytes by tier of the detours.
void tell_detours(Setup& setup, Traffic& traffic, const Paths& paths) {
  std::vector<Hop> hops;
  for (std::size_t epoch = 0; setup.in.tiers > 0 && epoch < paths.detours.size(); ++epoch) {
    const Graph& graph = paths.detours[epoch];
    traffic.bundle_links = paths.bundle_links[epoch];
    for (const ActivityId a : graph.activities()) {
      hops.clear();
      for (const GraphHop& hop : graph.hops_of(a)) hops.push_back({hop.link, graph.weights[hop.weight]});
      setup.ground.epochs[epoch].detour_tier_weight.push_back(tier_weight(setup, traffic, hops));
    }
  }
  traffic.bundle_links = paths.bundle_links.front();
}

/// Cells of the job's graph, or the graph as it is; nothing where every message is posted by itself.
void build_network(Setup& setup, Traffic& traffic) {
  if (setup.in.job.collects.empty() && setup.in.folding == Folding::kNever) return;
  if (setup.in.job.collects.empty() && (setup.in.adapts || slots_of(setup.in.job).has_later)) return;
  FoldOptions options;
  options.folding = setup.in.adapts ? Folding::kNever : setup.in.folding;  // what adapts is alike at no time
  options.wire = {setup.in.wire.factor(), setup.in.wire.host_factor()};
  setup.ground.copy = static_cast<std::int32_t>(traffic.links.capacity.size()) + 1;
  Paths paths = find_paths(setup, traffic, options.wire);
  setup.ground.folded = std::make_unique<Folded>(fold_all(setup, traffic, paths, options));
  tell_epochs(setup, traffic, paths);
  tell_detours(setup, traffic, paths);
  setup.ground.detours = std::move(paths.detours);
}

void build_fluid(const Setup& setup, Traffic& traffic, JobState& job, Recordings& recordings) {
  std::vector<double> capacity =
      setup.has_link_cells() ? setup.network->capacity.items() : traffic.links.capacity.items();
  capacity.push_back(0.0);  // behind the last: the path of what has no route
  traffic.fluid = std::make_unique<Fluid>(capacity, setup.in.tolerance);
  if (setup.network == nullptr) return;
  const Network& network = *setup.network;
  std::vector<ConstraintHop> hops;
  for (const ActivityCell i : network.activities()) {
    hops_now(setup, traffic, i, hops);
    traffic.variable_of_activity.push_back(traffic.fluid->add_variable(hops));
  }
  traffic.is_companion_busy.assign(network.latency_ps.size(), 0);
  const Graph& graph = setup.ground.folded->graph;
  job.lanes.resize(network.connections.size());
  IdVector<ActivityCell, LaneId> lane_of_cell(setup.ground.epochs.front().tier_weight.size());
  for (const ConnectionCell connection : network.connections.ids()) {
    const LaneId index(connection.value);
    job.lanes[index].folded = connection;
    job.lanes[index].channel = network.connections[connection].channel;
    lane_of_cell[done_of(setup, connection)] = index;
  }
  for (ConnectionId c = graph.source.next_id(); c.value > 0;) {  // a connection stands for the first of its cell
    c = c + -1;
    const LaneId index = lane_of_cell[setup.ground.folded->cells.activity[graph.activity_of(c)]];
    if (index.is_none()) continue;
    Lane& lane = job.lanes[index];
    lane.source = graph.source[c];
    lane.destination = graph.destination[c];
    lane.inside = node_of_rank(setup, lane.source) == node_of_rank(setup, lane.destination);
  }
  job.communicators.resize(network.communicators.size());
  recordings.done.assign(setup.ground.epochs.front().tier_weight.size(), 0.0);
}

void build_streams(const Setup& setup, JobState& job, RunClock& clock, Recordings& recordings) {
  const std::size_t actors = setup.network != nullptr ? setup.network->actor_rank.size() : setup.in.job.rank_count();
  job.first_stream.push_back(StreamId(0));
  for (const ActorId actor : id_range(ActorId(0), ActorId(actors))) {
    const std::int64_t program = setup.program_of(actor).value;
    const auto begin = std::lower_bound(setup.in.job.streams.begin(), setup.in.job.streams.end(), program,
                                        [](const StreamRow& row, std::int64_t key) { return row.rank_program < key; });
    std::int32_t number = 0;
    for (auto row = begin; row != setup.in.job.streams.end() && row->rank_program == program; ++row) {
      const StreamId index = job.streams.next_id();
      StreamState& stream = job.streams.emplace_back();
      stream.actor = actor;
      stream.number = number++;
      stream.op = row->first_op;
      job.open_work += 1;
      wake(job, clock, index, 0);
    }
    job.first_stream.push_back(job.streams.next_id());
  }
  job.tokens.assign(actors * static_cast<std::size_t>(setup.in.tokens), 0);
  job.token_causes.resize(job.tokens.size());
  recordings.last_segment.assign(actors, -1);
}

void handle(State& s, const AgendaRow& row) {
  switch (row.event) {
    case Event::kFlowEnds:
      break;
    case Event::kDelivery:
      deliver(s, MessageId(row.what));
      break;
    case Event::kAck:
      acknowledge(s.setup, s.job, s.clock, s.recordings, MessageId(row.what));
      break;
    case Event::kEgress:
      start_slice(s.setup, s.job, s.clock, ServerPortId(row.what));
      break;
    case Event::kCallBegins:
      begin_call(s.setup, s.traffic, s.job, s.clock, CommunicatorCell(row.what));
      break;
    case Event::kCallEnds:
      end_call(s.setup, s.job, s.clock, s.recordings, CommunicatorCell(row.what));
      break;
    case Event::kNotify: {
      const std::int64_t token = row.detail & ((1 << 20) - 1);
      raise_token(s.setup, s.job, s.clock, ActorId(row.what), token, s.job.streams[StreamId(row.detail >> 20)].cause);
      break;
    }
    case Event::kStream:
      s.job.streams[StreamId(row.what)].queued = false;
      run_stream(s, StreamId(row.what));
      break;
  }
}

void end_of_flow(State& s, std::int64_t activity) {
  if (activity < 0) {  // a companion
    s.traffic.is_companion_busy[ActivityCell(-1 - activity)] = 0;
    return;
  }
  if ((activity & 1) == kOfMessage)
    end_flow(s, MessageId(activity >> 1));
  else
    end_part(s, CommunicatorCell(activity >> 1));
}

/// All that flows ends, then faults, then the agenda; what these begin or end at the same instant too.
void handle_instant(State& s) {
  const auto now = static_cast<double>(s.clock.now_ps);
  s.recordings.finished.clear();
  s.traffic.fluid->advance(now, s.recordings.finished);
  std::sort(s.recordings.finished.begin(), s.recordings.finished.end());  // the order of identity, not of the fluid
  for (const std::int64_t activity : s.recordings.finished) end_of_flow(s, activity);
  while (s.clock.next_instant < s.setup.in.instants.size() &&
         s.setup.in.instants[s.clock.next_instant].at_ps <= s.clock.now_ps)
    apply_instant(s.setup, s.traffic, s.job, s.clock, s.clock.next_instant++);
  while (!s.clock.agenda.empty() && s.clock.agenda.top().at_ps <= s.clock.now_ps) {
    const AgendaRow row = s.clock.agenda.top();
    s.clock.agenda.pop();
    s.clock.events += 1;
    if (row.event == Event::kFlowEnds)
      end_of_flow(s, row.what);
    else
      handle(s, row);
  }
  s.traffic.fluid->solve(now);
  s.clock.solves += 1;
}

/// Streams at their begin, nothing in flight.
void begin_run(State& s, const Network* network) {
  s.setup.network = network;
  build_fluid(s.setup, s.traffic, s.job, s.recordings);
  if (s.setup.in.adapts) {
    s.traffic.offered.assign(s.traffic.links.capacity.size() + 1, 0.0);
    s.traffic.choice_of_link.assign(s.traffic.links.capacity.size() + 1, -1);
    s.traffic.adapted.assign(network == nullptr ? 0 : network->latency_ps.size(), {});
  }
  build_streams(s.setup, s.job, s.clock, s.recordings);
  s.recordings.has_details = s.setup.in.has_details;
  s.recordings.tier_bytes =
      Bins(static_cast<std::size_t>(s.setup.in.tier_bins), static_cast<std::size_t>(s.setup.in.tiers));
  s.recordings.tier_flows = s.recordings.tier_bytes;
  const bool tells_ports = network == nullptr && s.setup.in.timeline_bins > 0;
  s.recordings.port_bytes = Bins(static_cast<std::size_t>(s.setup.in.timeline_bins),
                                 tells_ports ? s.setup.in.fabric.port_rate_bps.size() : 0);
}

}  // namespace

Engine::Engine(Input input) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.setup.in = std::move(input);
  build_links(s.setup, s.traffic);
  s.traffic.router = std::make_unique<Router>(s.setup.in.fabric, s.setup.in.mode, s.setup.in.layers, s.setup.in.rule,
                                              s.setup.in.detours);
  count_bundles(s.setup, s.traffic);
  build_network(s.setup, s.traffic);
  begin_run(s, s.setup.ground.folded == nullptr ? nullptr : &s.setup.ground.folded->network);
}

void Engine::restart(Variant variant) {
  auto fresh = std::make_unique<State>();
  fresh->setup.in = state_->setup.in;
  fresh->setup.ground = std::move(state_->setup.ground);
  fresh->traffic.router = std::move(state_->traffic.router);
  fresh->setup.is_ideal = variant == Variant::kIdeal;
  if (variant == Variant::kFastest || variant == Variant::kSlowest) {  // only their milestones are asked for
    fresh->setup.in.has_details = false;
    fresh->setup.in.tier_bins = 0;
  }
  state_ = std::move(fresh);
  State& s = *state_;
  build_links(s.setup, s.traffic);
  if (!s.setup.in.live.empty()) s.traffic.router->use(s.setup.in.live.first(s.setup.in.fabric.port_rate_bps.size()));
  count_bundles(s.setup, s.traffic);
  const Folded* folded = s.setup.ground.folded.get();
  if (folded == nullptr)
    begin_run(s, nullptr);
  else
    begin_run(s, variant == Variant::kFastest   ? &folded->fastest
                 : variant == Variant::kSlowest ? &folded->slowest
                                                : &folded->network);
}

Engine::~Engine() = default;

bool Engine::advance(double budget_s) {
  State& s = *state_;
  double looked_s = cpu_seconds();
  const double stop_s = looked_s + budget_s;
  std::uint32_t every = kFirstLook;
  for (std::uint32_t rounds = 1;; ++rounds) {
    const double flows_until = s.traffic.fluid->next();
    Ps next_ps = kNeverPs;
    if (flows_until < static_cast<double>(kNeverPs))
      next_ps = std::max(s.clock.now_ps, static_cast<Ps>(std::llround(flows_until)));
    if (!s.clock.agenda.empty()) next_ps = std::min(next_ps, s.clock.agenda.top().at_ps);
    if (s.clock.next_instant < s.setup.in.instants.size())
      next_ps = std::min(next_ps, s.setup.in.instants[s.clock.next_instant].at_ps);
    if (next_ps >= s.setup.in.until_ps) {
      if (s.setup.in.until_ps < kNeverPs) s.clock.now_ps = s.setup.in.until_ps;
      return true;
    }
    s.clock.now_ps = next_ps;
    handle_instant(s);
    if (rounds < every) continue;
    const double now_s = cpu_seconds();
    if (now_s > stop_s) return false;
    every = now_s - looked_s < kLookS ? std::min(2 * every, kLastLook) : std::max(every / 2, std::uint32_t{1});
    looked_s = now_s;
    rounds = 0;
  }
}

bool Engine::clock_ended() const {
  const State& s = *state_;
  const double next = s.traffic.fluid->next();
  return (std::isfinite(next) && next >= static_cast<double>(kNeverPs)) ||
         (!s.clock.agenda.empty() && s.clock.agenda.top().at_ps >= kNeverPs);
}

std::vector<SegmentRow> Engine::take_segments() {
  Recordings& recordings = state_->recordings;
  recordings.last_segment.assign(recordings.last_segment.size(), -1);
  return std::exchange(recordings.segments, {});
}

std::vector<ActivityRow> Engine::take_activities() {
  return std::exchange(state_->recordings.activities, {});
}

IdVector<PortId, Carried> Engine::carried() {
  State& s = *state_;
  IdVector<PortId, Carried> found(s.traffic.carried_bytes.size());
  IdVector<PortId, double> packets(found.size(), 0.0);
  IdVector<LinkId, double> bytes;
  const bool is_told_by_cells = s.setup.has_link_cells() && s.setup.link_copies() == 1;
  if (is_told_by_cells) {
    const Folded& folded = *s.setup.ground.folded;
    bytes = weftwork::flow::carried(folded.graph, folded.cells.activity,
                                    IdSpan<ActivityCell, const double>(s.recordings.done.items()),
                                    s.traffic.links.capacity.size());
  } else {
    settle_carried(s.setup, s.traffic, s.clock);
  }
  for (const SharedPath& shared : s.traffic.paths)
    for (const Hop& hop : shared.path.hops)
      if (s.traffic.links.is_port(hop.link))
        packets[PortId(hop.link.value)] += shared.packets * hop.weight / s.setup.in.wire.factor();
  const double full = static_cast<double>(s.setup.in.wire.mtu_bytes) * s.setup.in.wire.factor();
  for (const PortId port : found.ids()) {
    const PortId bundle = s.traffic.router->bundle_of_port(port);
    found[port].bytes = is_told_by_cells ? bytes[link_of(bundle)] : s.traffic.carried_bytes[port];
    found[port].packets = s.setup.network != nullptr ? found[port].bytes / full : packets[bundle];
  }
  return found;
}

}  // namespace weftwork::flow

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

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void build_links(State& s) {
  const FabricView& fabric = s.in.fabric;
  const std::size_t ports = fabric.port_node.size();
  IdVector<PortId, std::int64_t> host_rate_bps(ports, 0);
  bool any = false;
  const auto slower = [&](PortId port, std::int64_t rate_bps) {
    if (rate_bps <= 0 || rate_bps >= fabric.port_rate_bps[port]) return;
    host_rate_bps[port] = rate_bps;
    any = true;
  };
  for (const PortId port : fabric.ports())
    if (!fabric.is_switch(fabric.owner(port))) slower(port, s.in.nic_behind(port).pcie_rate_bps);
  std::vector<PortId> later;  // a link from the beginning where a fault makes one
  for (const InstantRow& row : s.in.instants)
    if (static_cast<InstantCode>(row.code) == InstantCode::kHostRate) {
      later.emplace_back(row.port);
      any = true;
    }
  if (!any) host_rate_bps.assign(0, 0);
  s.links = links_of(s.in.job, fabric.port_rate_bps, IdSpan<PortId, const std::int64_t>(host_rate_bps.items()));
  for (const PortId port : later) {
    double& capacity = s.links.capacity[s.links.host_interface(port)];
    if (capacity == 0) capacity = static_cast<double>(fabric.port_rate_bps[port]) * kBytesPerPs;
  }
  s.is_down.assign(ports, 0);
  s.carried_bytes.assign(ports, 0.0);
  s.seen_bytes.assign(ports, 0.0);
}

/// Equal where capacities change alike over the run; empty where none does. Without what bundles share.
IdVector<LinkId, std::uint64_t> fates(const State& s) {
  IdVector<LinkId, std::uint64_t> fate;
  for (const InstantRow& row : s.in.instants) {
    const auto code = static_cast<InstantCode>(row.code);
    if (code == InstantCode::kRoutes || code == InstantCode::kFailover) continue;
    fate.resize(s.links.capacity.size() + 1, 0);
    const auto tell = [&](LinkId link) {
      std::uint64_t& own = fate[link];
      own = mix(own, static_cast<std::uint64_t>(row.at_ps), static_cast<std::uint64_t>(row.value * 8 + row.code) + 1);
    };
    const PortId port(row.port);
    if (code == InstantCode::kHostRate) {
      tell(s.links.host_interface(port));
    } else {
      tell(link_of(port));
      tell(link_of(s.in.fabric.peer(port)));
    }
  }
  return fate;
}

/// The graphs of a job by epoch, and what its links go through.
struct Paths {
  std::vector<Graph> graphs;                           // those that differ
  std::vector<Graph> detours;                          // of the same epochs; under adaptive routing alone
  std::vector<IdVector<PortId, double>> bundle_links;  // as State::bundle_links, by graph
  IdVector<LinkId, std::uint64_t> fate;                // of the copies of links, by graph; empty: none changes
};

/// Fates of the links of one graph, which tell its links from those of others; a bundle shares what its members go
/// through, by the bundles that hold now.
void add_fates(const State& s, const IdVector<LinkId, std::uint64_t>& own, std::int32_t graph, Paths& paths) {
  if (own.empty()) return;
  const std::int32_t first_link = graph * s.ground.copy;
  if (std::cmp_less_equal(paths.fate.size(), first_link))
    for (const std::uint64_t fate : own)
      paths.fate.push_back(graph == 0 ? fate : mix(fate, static_cast<std::uint64_t>(graph), 2));
  for (const PortId port : s.in.fabric.ports()) {
    const PortId bundle = s.router->bundle_of_port(port);
    if (bundle == port || own[link_of(port)] == 0) continue;
    std::uint64_t& shared = paths.fate[link_of(bundle) + first_link];
    shared = mix(shared, own[link_of(port)], 1);
  }
}

/// The graph of every epoch; tells which one each instant begins.
Paths find_paths(State& s, Wire wire) {
  Paths paths;
  const std::size_t ports = s.in.fabric.port_node.size();
  const IdVector<LinkId, std::uint64_t> fate = fates(s);
  const LinkId nowhere = s.links.capacity.next_id();
  Schedule schedule = schedule_of(s.in.instants, s.in.fabric);
  s.router->tell_stages(false);
  std::vector<std::int32_t> graph_of_rules;
  std::size_t table = 0;
  for (const PathRules& rules : schedule.rules) {
    if (rules.table != table) s.router->use(s.in.live.subspan(rules.table * ports, ports), rules.table);
    table = rules.table;
    const bool is_first = paths.graphs.empty();  // what has no path before any fault is refused
    const Outage outage{IdSpan<PortId, const char>(rules.down.items()), is_first ? LinkId::none() : nowhere};
    s.router->take_detours(!s.in.adapts);
    Graph graph = build_graph(s.in.job, s.links, *s.router, wire, outage);
    s.router->take_detours(true);
    Graph detour;
    if (s.in.adapts) detour = build_graph(s.in.job, s.links, *s.router, wire, outage);
    const auto same = std::find_if(paths.graphs.begin(), paths.graphs.end(), [&](const Graph& known) {
      return have_same_paths(known, graph) &&
             (!s.in.adapts ||
              have_same_paths(paths.detours[static_cast<std::size_t>(&known - paths.graphs.data())], detour));
    });
    const auto number = static_cast<std::int32_t>(same - paths.graphs.begin());
    graph_of_rules.push_back(number);
    add_fates(s, fate, number, paths);
    if (same != paths.graphs.end()) continue;
    paths.graphs.push_back(std::move(graph));
    if (s.in.adapts) paths.detours.push_back(std::move(detour));
    count_bundles(s);
    paths.bundle_links.push_back(s.bundle_links);
  }
  s.router->tell_stages(true);
  if (table != 0) s.router->use(s.in.live.first(ports));
  count_bundles(s);
  for (std::int32_t& begins : schedule.begins)
    if (begins >= 0) begins = graph_of_rules[static_cast<std::size_t>(begins)];
  s.ground.epoch_begins = std::move(schedule.begins);
  return paths;
}

/// Fold what goes on in all epochs at once.
Folded fold_all(const State& s, Paths& paths, FoldOptions options) {
  if (paths.graphs.size() == 1) {
    if (!paths.fate.empty()) paths.fate.resize(s.links.capacity.size());
    options.link_fate = IdSpan<LinkId, const std::uint64_t>(paths.fate.items());
    return fold(s.in.job, IdSpan<LinkId, const double>(s.links.capacity.items()), std::move(paths.graphs.front()),
                options);
  }
  const IdVector<ActivityId, std::uint64_t> latency = latency_fates(paths.graphs);
  IdVector<LinkId, double> capacity;
  for (std::size_t epoch = 0; epoch < paths.graphs.size(); ++epoch) {
    for (const double own : s.links.capacity) capacity.push_back(own);
    capacity.push_back(0.0);
  }
  options.link_fate = IdSpan<LinkId, const std::uint64_t>(paths.fate.items());
  options.activity_fate = IdSpan<ActivityId, const std::uint64_t>(latency.items());
  options.has_core = false;
  return fold(s.in.job, IdSpan<LinkId, const double>(capacity.items()), joined(paths.graphs, s.ground.copy), options);
}

/// What cells of links and of activities are in each epoch.
void tell_epochs(State& s, const Paths& paths) {
  const Folded& found = *s.ground.folded;
  const auto copy = s.ground.copy;
  const bool is_one = paths.graphs.size() == 1;
  const auto& count = found.network.link_count;
  const bool is_apart = !found.network.folded && !found.network.approximate &&
                        std::all_of(count.begin(), count.end(), [](std::int32_t links) { return links == 1; });
  if (is_apart) s.ground.link_of_cell.assign(found.network.capacity.size(), LinkId::none());
  if (!is_one) s.ground.epoch_of_cell.assign(found.network.capacity.size(), 0);
  for (const LinkId link : found.network.link_cell.ids()) {
    const LinkCell cell = found.network.link_cell[link];
    if (cell.is_none()) continue;
    if (is_apart) s.ground.link_of_cell[cell] = LinkId(link.value % copy);
    if (!is_one) s.ground.epoch_of_cell[cell] = link.value / copy;
  }
  const std::size_t cells = found.network.approximate
                                ? found.network.connections.size() + found.network.operations.size()
                                : found.network.latency_ps.size();
  Epoch empty;
  empty.tier_weight.assign(cells, std::vector<double>(static_cast<std::size_t>(s.in.tiers), 0.0));
  s.ground.epochs.assign(paths.graphs.size(), empty);
  if (!is_one)
    for (std::size_t epoch = 0; epoch < paths.graphs.size(); ++epoch) {
      IdVector<ActivityCell, Ps>& latency_ps = s.ground.epochs[epoch].latency_ps;
      latency_ps.resize(cells);
      for (const ActivityId a : found.graph.activities())
        latency_ps[found.cells.activity[a]] = paths.graphs[epoch].latency_ps[a];
    }
  if (s.in.tiers == 0) return;
  std::vector<Hop> hops;
  for (std::size_t epoch = 0; epoch < paths.graphs.size(); ++epoch) {
    const Graph& graph = is_one ? found.graph : paths.graphs[epoch];
    s.bundle_links = paths.bundle_links[epoch];
    for (const ActivityId a : graph.activities()) {
      hops.clear();
      for (const GraphHop& hop : graph.hops_of(a)) hops.push_back({hop.link, graph.weights[hop.weight]});
      const std::vector<double> weight = tier_weight(s, hops);
      std::vector<double>& sum = s.ground.epochs[epoch].tier_weight[found.cells.activity[a]];
      for (std::size_t tier = 0; tier < weight.size(); ++tier) sum[tier] += weight[tier];
    }
  }
  s.bundle_links = paths.bundle_links.front();
}

/// Bytes by tier of the detours.
void tell_detours(State& s, const Paths& paths) {
  std::vector<Hop> hops;
  for (std::size_t epoch = 0; s.in.tiers > 0 && epoch < paths.detours.size(); ++epoch) {
    const Graph& graph = paths.detours[epoch];
    s.bundle_links = paths.bundle_links[epoch];
    for (const ActivityId a : graph.activities()) {
      hops.clear();
      for (const GraphHop& hop : graph.hops_of(a)) hops.push_back({hop.link, graph.weights[hop.weight]});
      s.ground.epochs[epoch].detour_tier_weight.push_back(tier_weight(s, hops));
    }
  }
  s.bundle_links = paths.bundle_links.front();
}

/// Cells of the job's graph, or the graph as it is; nothing where every message is posted by itself.
void build_network(State& s) {
  if (s.in.job.collects.empty() && s.in.folding == Folding::kNever) return;
  if (s.in.job.collects.empty() && (s.in.adapts || slots_of(s.in.job).has_later)) return;
  FoldOptions options;
  options.folding = s.in.adapts ? Folding::kNever : s.in.folding;  // what adapts is alike at no time
  options.wire = {s.in.wire.factor(), s.in.wire.host_factor()};
  s.ground.copy = static_cast<std::int32_t>(s.links.capacity.size()) + 1;
  Paths paths = find_paths(s, options.wire);
  s.ground.folded = std::make_unique<Folded>(fold_all(s, paths, options));
  tell_epochs(s, paths);
  tell_detours(s, paths);
  s.ground.detours = std::move(paths.detours);
}

void build_fluid(State& s) {
  std::vector<double> capacity = s.has_link_cells() ? s.network->capacity.items() : s.links.capacity.items();
  capacity.push_back(0.0);  // behind the last: the path of what has no route
  s.fluid = std::make_unique<Fluid>(capacity, s.in.tolerance);
  if (s.network == nullptr) return;
  const Network& network = *s.network;
  std::vector<ConstraintHop> hops;
  for (const ActivityCell i : network.activities()) {
    s.hops_now(i, hops);
    s.variable_of_activity.push_back(s.fluid->add_variable(hops));
  }
  s.is_companion_busy.assign(network.latency_ps.size(), 0);
  const Graph& graph = s.ground.folded->graph;
  s.lanes.resize(network.connections.size());
  IdVector<ActivityCell, LaneId> lane_of_cell(s.ground.epochs.front().tier_weight.size());
  for (const ConnectionCell connection : network.connections.ids()) {
    const LaneId index(connection.value);
    s.lanes[index].folded = connection;
    s.lanes[index].channel = network.connections[connection].channel;
    lane_of_cell[done_of(s, connection)] = index;
  }
  for (ConnectionId c = graph.source.next_id(); c.value > 0;) {  // a connection stands for the first of its cell
    c = c + -1;
    const LaneId index = lane_of_cell[s.ground.folded->cells.activity[graph.activity_of(c)]];
    if (index.is_none()) continue;
    Lane& lane = s.lanes[index];
    lane.source = graph.source[c];
    lane.destination = graph.destination[c];
    lane.inside = node_of_rank(s, lane.source) == node_of_rank(s, lane.destination);
  }
  s.communicators.resize(network.communicators.size());
  s.done.assign(s.ground.epochs.front().tier_weight.size(), 0.0);
}

void build_streams(State& s) {
  const std::size_t actors = s.network != nullptr ? s.network->actor_rank.size() : s.in.job.rank_count();
  s.first_stream.push_back(StreamId(0));
  for (const ActorId actor : id_range(ActorId(0), ActorId(actors))) {
    const std::int64_t program = s.program_of(actor).value;
    const auto begin = std::lower_bound(s.in.job.streams.begin(), s.in.job.streams.end(), program,
                                        [](const StreamRow& row, std::int64_t key) { return row.rank_program < key; });
    std::int32_t number = 0;
    for (auto row = begin; row != s.in.job.streams.end() && row->rank_program == program; ++row) {
      const StreamId index = s.streams.next_id();
      StreamState& stream = s.streams.emplace_back();
      stream.actor = actor;
      stream.number = number++;
      stream.op = row->first_op;
      s.open_work += 1;
      wake(s, index, 0);
    }
    s.first_stream.push_back(s.streams.next_id());
  }
  s.tokens.assign(actors * static_cast<std::size_t>(s.in.tokens), 0);
  s.token_causes.resize(s.tokens.size());
  s.last_segment.assign(actors, -1);
}

void handle(State& s, const AgendaRow& row) {
  switch (row.event) {
    case Event::kFlowEnds:
      break;
    case Event::kDelivery:
      deliver(s, MessageId(row.what));
      break;
    case Event::kAck:
      acknowledge(s, MessageId(row.what));
      break;
    case Event::kEgress:
      start_slice(s, ServerPortId(row.what));
      break;
    case Event::kCallBegins:
      begin_call(s, CommunicatorCell(row.what));
      break;
    case Event::kCallEnds:
      end_call(s, CommunicatorCell(row.what));
      break;
    case Event::kNotify: {
      const std::int64_t token = row.detail & ((1 << 20) - 1);
      raise_token(s, ActorId(row.what), token, s.streams[StreamId(row.detail >> 20)].cause);
      break;
    }
    case Event::kStream:
      s.streams[StreamId(row.what)].queued = false;
      run_stream(s, StreamId(row.what));
      break;
  }
}

void end_of_flow(State& s, std::int64_t activity) {
  if (activity < 0) {  // a companion
    s.is_companion_busy[ActivityCell(-1 - activity)] = 0;
    return;
  }
  if ((activity & 1) == kOfMessage)
    end_flow(s, MessageId(activity >> 1));
  else
    end_part(s, CommunicatorCell(activity >> 1));
}

/// All that flows ends, then faults, then the agenda; what these begin or end at the same instant too.
void handle_instant(State& s) {
  const auto now = static_cast<double>(s.now_ps);
  s.finished.clear();
  s.fluid->advance(now, s.finished);
  std::sort(s.finished.begin(), s.finished.end());  // the order of identity, not of the fluid
  for (const std::int64_t activity : s.finished) end_of_flow(s, activity);
  while (s.next_instant < s.in.instants.size() && s.in.instants[s.next_instant].at_ps <= s.now_ps)
    apply_instant(s, s.next_instant++);
  while (!s.agenda.empty() && s.agenda.top().at_ps <= s.now_ps) {
    const AgendaRow row = s.agenda.top();
    s.agenda.pop();
    s.events += 1;
    if (row.event == Event::kFlowEnds)
      end_of_flow(s, row.what);
    else
      handle(s, row);
  }
  s.fluid->solve(now);
  s.solves += 1;
}

/// Streams at their begin, nothing in flight.
void begin_run(State& s, const Network* network) {
  s.network = network;
  build_fluid(s);
  if (s.in.adapts) {
    s.offered.assign(s.links.capacity.size() + 1, 0.0);
    s.choice_of_link.assign(s.links.capacity.size() + 1, -1);
    s.adapted.assign(network == nullptr ? 0 : network->latency_ps.size(), {});
  }
  build_streams(s);
  s.tier_bytes = Bins(static_cast<std::size_t>(s.in.tier_bins), static_cast<std::size_t>(s.in.tiers));
  s.tier_flows = s.tier_bytes;
  const bool tells_ports = network == nullptr && s.in.timeline_bins > 0;
  s.port_bytes = Bins(static_cast<std::size_t>(s.in.timeline_bins), tells_ports ? s.in.fabric.port_rate_bps.size() : 0);
}

}  // namespace

Engine::Engine(Input input) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.in = std::move(input);
  build_links(s);
  s.router = std::make_unique<Router>(s.in.fabric, s.in.mode, s.in.layers, s.in.rule, s.in.detours);
  count_bundles(s);
  build_network(s);
  begin_run(s, s.ground.folded == nullptr ? nullptr : &s.ground.folded->network);
}

void Engine::restart(Variant variant) {
  auto fresh = std::make_unique<State>();
  fresh->in = state_->in;
  fresh->ground = std::move(state_->ground);
  fresh->router = std::move(state_->router);
  fresh->is_ideal = variant == Variant::kIdeal;
  state_ = std::move(fresh);
  State& s = *state_;
  build_links(s);
  if (!s.in.live.empty()) s.router->use(s.in.live.first(s.in.fabric.port_rate_bps.size()));
  count_bundles(s);
  const Folded* folded = s.ground.folded.get();
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
  const double stop_s = cpu_seconds() + budget_s;
  for (std::uint32_t rounds = 1;; ++rounds) {
    const double flows_until = s.fluid->next();
    Ps next_ps = kNeverPs;
    if (flows_until < static_cast<double>(kNeverPs))
      next_ps = std::max(s.now_ps, static_cast<Ps>(std::llround(flows_until)));
    if (!s.agenda.empty()) next_ps = std::min(next_ps, s.agenda.top().at_ps);
    if (s.next_instant < s.in.instants.size()) next_ps = std::min(next_ps, s.in.instants[s.next_instant].at_ps);
    if (next_ps >= s.in.until_ps) {
      if (s.in.until_ps < kNeverPs) s.now_ps = s.in.until_ps;
      return true;
    }
    s.now_ps = next_ps;
    handle_instant(s);
    if ((rounds & 63U) == 0 && cpu_seconds() > stop_s) return false;
  }
}

bool Engine::clock_ended() const {
  const State& s = *state_;
  const double next = s.fluid->next();
  return (std::isfinite(next) && next >= static_cast<double>(kNeverPs)) ||
         (!s.agenda.empty() && s.agenda.top().at_ps >= kNeverPs);
}

IdVector<PortId, Carried> Engine::carried() {
  State& s = *state_;
  IdVector<PortId, Carried> found(s.carried_bytes.size());
  IdVector<PortId, double> packets(found.size(), 0.0);
  IdVector<LinkId, double> bytes;
  const bool is_told_by_cells = s.has_link_cells() && s.link_copies() == 1;
  if (is_told_by_cells) {
    const Folded& folded = *s.ground.folded;
    bytes = weftwork::flow::carried(folded.graph, folded.cells.activity,
                                    IdSpan<ActivityCell, const double>(s.done.items()), s.links.capacity.size());
  } else {
    settle_carried(s);
  }
  for (const SharedPath& shared : s.paths)
    for (const Hop& hop : shared.path.hops)
      if (s.links.is_port(hop.link))
        packets[PortId(hop.link.value)] += shared.packets * hop.weight / s.in.wire.factor();
  const double full = static_cast<double>(s.in.wire.mtu_bytes) * s.in.wire.factor();
  for (const PortId port : found.ids()) {
    const PortId bundle = s.router->bundle_of_port(port);
    found[port].bytes = is_told_by_cells ? bytes[link_of(bundle)] : s.carried_bytes[port];
    found[port].packets = s.network != nullptr ? found[port].bytes / full : packets[bundle];
  }
  return found;
}

}  // namespace weftwork::flow

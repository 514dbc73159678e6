#include "flow/engine.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

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
  const std::size_t ports = s.in.fabric.port_rate_bps.size();
  std::vector<std::int64_t> host_rate_bps(ports, 0);
  bool any = false;
  const auto slower = [&](std::size_t port, std::int64_t rate_bps) {
    if (rate_bps <= 0 || rate_bps >= s.in.fabric.port_rate_bps[port]) return;
    host_rate_bps[port] = rate_bps;
    any = true;
  };
  for (std::size_t port = 0; port < ports; ++port)
    if (!s.in.fabric.is_switch(s.in.fabric.owner(static_cast<std::int32_t>(port))))
      slower(port, s.in.nic_behind(static_cast<std::int32_t>(port)).pcie_rate_bps);
  std::vector<std::int32_t> later;  // a link from the beginning where a fault makes one
  for (const InstantRow& row : s.in.instants)
    if (static_cast<InstantCode>(row.code) == InstantCode::kHostRate) {
      later.push_back(static_cast<std::int32_t>(row.port));
      any = true;
    }
  if (!any) host_rate_bps.clear();
  s.links = links_of(s.in.job, s.in.fabric.port_rate_bps, host_rate_bps);
  for (const std::int32_t port : later) {
    double& capacity = s.links.capacity[static_cast<std::size_t>(s.links.host_interface(port))];
    if (capacity == 0)
      capacity = static_cast<double>(s.in.fabric.port_rate_bps[static_cast<std::size_t>(port)]) * kBytesPerPs;
  }
  s.is_down.assign(ports, false);
  s.carried_bytes.assign(ports, 0.0);
  s.seen_bytes.assign(ports, 0.0);
}

/// By link, equal where capacities change alike over the run; empty where none does.
std::vector<std::uint64_t> fates(const State& s) {
  std::vector<std::uint64_t> fate;
  for (const InstantRow& row : s.in.instants) {
    const auto code = static_cast<InstantCode>(row.code);
    if (code == InstantCode::kRoutes || code == InstantCode::kFailover) continue;
    fate.resize(s.links.capacity.size(), 0);
    const auto tell = [&](std::int32_t link) {
      std::uint64_t& own = fate[static_cast<std::size_t>(link)];
      own = mix(own, static_cast<std::uint64_t>(row.at_ps), static_cast<std::uint64_t>(row.value * 8 + row.code) + 1);
    };
    const auto port = static_cast<std::int32_t>(row.port);
    if (code == InstantCode::kHostRate) {
      tell(s.links.host_interface(port));
    } else {
      tell(port);
      tell(s.in.fabric.peer(port));
    }
  }
  for (std::int32_t port = 0; !fate.empty() && port < s.links.ports; ++port) {  // a bundle shares what its members have
    const std::int32_t bundle = s.router->bundle_of_port(port);
    if (bundle == port || fate[static_cast<std::size_t>(port)] == 0) continue;
    std::uint64_t& own = fate[static_cast<std::size_t>(bundle)];
    own = mix(own, fate[static_cast<std::size_t>(port)], 1);
  }
  return fate;
}

/// Classes of the job's graph, or the graph as it is; nothing where every message is posted by itself.
void build_network(State& s) {
  if (s.in.job.collects.empty() && s.in.folding == Folding::kNever) return;
  if (s.in.job.collects.empty() && slots_of(s.in.job).has_later) return;
  const auto follows = [](const InstantRow& row) { return static_cast<InstantCode>(row.code) == InstantCode::kRoutes; };
  const bool is_rerouted = std::any_of(s.in.instants.begin(), s.in.instants.end(), follows);
  const std::vector<std::uint64_t> fate = fates(s);
  FoldOptions options = fold_options(s, is_rerouted ? Folding::kNever : s.in.folding);
  options.link_fate = fate;
  s.ground.folded = std::make_unique<Folded>(fold(s.in.job, s.links, Routed(*s.router), options));
  const Folded& found = *s.ground.folded;
  const auto& count = found.network.link_count;
  if (!found.network.folded && !found.network.approximate &&
      std::all_of(count.begin(), count.end(), [](std::int32_t links) { return links == 1; })) {
    s.ground.link_of_class.assign(found.network.capacity.size(), -1);
    for (std::size_t link = 0; link < found.network.link_class.size(); ++link)
      if (const std::int32_t of = found.network.link_class[link]; of >= 0)
        s.ground.link_of_class[static_cast<std::size_t>(of)] = static_cast<std::int32_t>(link);
  }
  const auto classes = static_cast<std::size_t>(
      found.network.approximate
          ? static_cast<std::int32_t>(found.network.connections.size() + found.network.operations.size())
          : found.network.activities());
  s.ground.tier_weight.assign(classes, std::vector<double>(static_cast<std::size_t>(s.in.tiers), 0.0));
  std::vector<Hop> hops;
  for (std::size_t a = 0; a < found.graph.activities() && s.in.tiers > 0; ++a) {
    hops.clear();
    for (const Share& share : found.graph.hops_of(a)) hops.push_back({share.link, found.graph.weights[share.weight]});
    const std::vector<double> weight = tier_weight(s, hops);
    std::vector<double>& sum = s.ground.tier_weight[static_cast<std::size_t>(found.classes.activity[a])];
    for (std::size_t tier = 0; tier < weight.size(); ++tier) sum[tier] += weight[tier];
  }
}

void build_fluid(State& s) {
  std::vector<double> capacity = s.has_link_classes() ? s.network->capacity : s.links.capacity;
  capacity.push_back(0.0);  // behind the last: the way of what has no route
  s.fluid = std::make_unique<Fluid>(capacity, s.in.tolerance);
  if (s.network == nullptr) return;
  std::vector<ConstraintHop> hops;
  for (std::int32_t i = 0; i < s.network->activities(); ++i) {
    hops.clear();
    for (const Hop& hop : s.network->hops_of(i)) {
      const std::int32_t link =
          s.has_link_classes() ? hop.link : s.ground.link_of_class[static_cast<std::size_t>(hop.link)];
      hops.push_back({ConstraintId(link), hop.weight});
    }
    s.variable_of_activity.push_back(s.fluid->add_variable(hops));
  }
  const Network& network = *s.network;
  s.is_companion_busy.assign(static_cast<std::size_t>(network.activities()), 0);
  const Graph& graph = s.ground.folded->graph;
  s.lanes.resize(network.connections.size());
  std::vector<std::int32_t> lane_of_class(s.ground.tier_weight.size(), -1);
  for (std::size_t i = 0; i < network.connections.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    s.lanes[i].folded = index;
    s.lanes[i].channel = network.connections[i].channel;
    lane_of_class[done_of_connection(s, index)] = index;
  }
  for (std::size_t a = graph.source.size(); a-- > 0;) {  // a connection stands for the first of its class
    const std::int32_t index = lane_of_class[static_cast<std::size_t>(s.ground.folded->classes.activity[a])];
    if (index < 0) continue;
    Lane& lane = s.lanes[static_cast<std::size_t>(index)];
    lane.source = graph.source[a];
    lane.destination = graph.destination[a];
    lane.inside = node_of_rank(s, lane.source) == node_of_rank(s, lane.destination);
  }
  s.communicators.resize(network.communicators.size());
  s.done.assign(s.ground.tier_weight.size(), 0.0);
}

void build_streams(State& s) {
  const auto actors = s.network != nullptr ? s.network->actors() : static_cast<std::int32_t>(s.in.job.ranks());
  s.first_stream.push_back(0);
  for (std::int32_t actor = 0; actor < actors; ++actor) {
    const std::int64_t program = s.network != nullptr ? s.network->actor_program[static_cast<std::size_t>(actor)]
                                                      : s.in.job.rank_class[static_cast<std::size_t>(actor)];
    const auto begin = std::lower_bound(s.in.job.streams.begin(), s.in.job.streams.end(), program,
                                        [](const StreamRow& row, std::int64_t key) { return row.rank_class < key; });
    std::int32_t number = 0;
    for (auto row = begin; row != s.in.job.streams.end() && row->rank_class == program; ++row) {
      const auto index = static_cast<std::int32_t>(s.streams.size());
      Stream& stream = s.streams.emplace_back();
      stream.actor = actor;
      stream.number = number++;
      stream.op = row->first_op;
      s.open_work += 1;
      wake(s, index, 0);
    }
    s.first_stream.push_back(static_cast<std::int32_t>(s.streams.size()));
  }
  s.tokens.assign(static_cast<std::size_t>(actors * s.in.tokens), 0);
  s.token_causes.resize(s.tokens.size());
  s.last_segment.assign(static_cast<std::size_t>(actors), -1);
}

void handle(State& s, const AgendaRow& row) {
  const auto what = static_cast<std::int32_t>(row.what);
  switch (row.event) {
    case Event::kFlowEnds:
      break;
    case Event::kDelivery:
      deliver(s, what);
      break;
    case Event::kAck:
      acknowledge(s, what);
      break;
    case Event::kEgress:
      start_chunk(s, row.what);
      break;
    case Event::kCallBegins:
      begin_call(s, what);
      break;
    case Event::kCallEnds:
      end_call(s, what);
      break;
    case Event::kSignal: {
      const std::int64_t token = row.detail & ((1 << 20) - 1);
      raise_token(s, what, token, s.streams[static_cast<std::size_t>(row.detail >> 20)].cause);
      break;
    }
    case Event::kStream:
      s.streams[static_cast<std::size_t>(what)].queued = false;
      run_stream(s, what);
      break;
  }
}

void end_of_flow(State& s, std::int64_t activity) {
  if (activity < 0) {  // a companion
    s.is_companion_busy[static_cast<std::size_t>(-1 - activity)] = 0;
    return;
  }
  const auto index = static_cast<std::int32_t>(activity >> 1);
  if ((activity & 1) == kOfMessage)
    end_flow(s, index);
  else
    end_part(s, index);
}

/// All that flows ends, then faults, then the agenda; what these begin or end at the same instant too.
void handle_instant(State& s) {
  const auto now = static_cast<double>(s.now_ps);
  s.finished.clear();
  s.fluid->advance(now, s.finished);
  std::sort(s.finished.begin(), s.finished.end());  // the order of identity, not of the fluid
  for (const std::int64_t activity : s.finished) end_of_flow(s, activity);
  while (s.next_instant < s.in.instants.size() && s.in.instants[s.next_instant].at_ps <= s.now_ps)
    apply_instant(s, s.in.instants[s.next_instant++]);
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

/// Streams at their begin, nothing under way.
void begin_run(State& s, const Network* network) {
  s.network = network;
  build_fluid(s);
  build_streams(s);
  s.tier_bytes = Bins(static_cast<std::size_t>(s.in.tier_bins), static_cast<std::size_t>(s.in.tiers));
  s.tier_flows = s.tier_bytes;
  const bool tells_ports = network == nullptr && s.in.timeline_bins > 0;
  s.port_bytes = Bins(static_cast<std::size_t>(s.in.timeline_bins), tells_ports ? s.in.fabric.port_rate_bps.size() : 0);
}

void build_bundles(State& s) {
  s.ground.bundle_links.assign(s.in.fabric.port_rate_bps.size(), 0.0);
  for (std::int32_t port = 0; port < s.links.ports; ++port)
    s.ground.bundle_links[static_cast<std::size_t>(s.router->bundle_of_port(port))] += 1.0;
}

}  // namespace

Engine::Engine(Input input) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.in = input;
  build_links(s);
  s.router = std::make_unique<Router>(s.in.fabric, s.in.mode);
  build_bundles(s);
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
  const Folded* folded = s.ground.folded.get();
  if (folded == nullptr)
    begin_run(s, nullptr);
  else
    begin_run(s, variant == Variant::kFastest   ? &folded->fastest
                 : variant == Variant::kSlowest ? &folded->slowest
                                                : &folded->network);
}

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

std::vector<Carried> Engine::carried() {
  State& s = *state_;
  std::vector<Carried> found(s.carried_bytes.size());
  std::vector<double> packets(found.size(), 0.0);
  std::vector<double> bytes;
  if (s.has_link_classes()) {
    const Folded& folded = *s.ground.folded;
    bytes = weftwork::flow::carried(folded.graph, folded.classes.activity, s.done, s.links.capacity.size());
  } else {
    settle_carried(s);
  }
  for (const SharedWay& way : s.ways)
    for (const Hop& hop : way.way.hops)
      if (std::cmp_less(hop.link, found.size()))
        packets[static_cast<std::size_t>(hop.link)] += way.packets * hop.weight / s.in.wire.factor();
  const double full = static_cast<double>(s.in.wire.mtu_bytes) * s.in.wire.factor();
  for (std::size_t port = 0; port < found.size(); ++port) {
    const auto bundle = static_cast<std::size_t>(s.router->bundle_of_port(static_cast<std::int32_t>(port)));
    found[port].bytes = s.has_link_classes() ? bytes[bundle] : s.carried_bytes[port];
    found[port].packets = s.network != nullptr ? found[port].bytes / full : packets[bundle];
  }
  return found;
}

}  // namespace weftwork::flow

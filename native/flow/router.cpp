/// How routes are found; flow/router.hpp says what they are. Apart from it, so that its many users do not compile this.
#include "flow/router.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "flow/bundles.hpp"
#include "flow/detours.hpp"
#include "flow/search.hpp"
#include "flow/spreading.hpp"
#include "flow/tiers.hpp"
#include "paths/digest.hpp"
#include "paths/hash_function.hpp"

namespace weftwork::flow {

namespace {

constexpr std::int64_t kMostWeight = 1 << 16;  // MOST_WEIGHT of topology/weights.py

}  // namespace

class Router::Routes {
 public:
  Routes(const FabricView& fabric, Mode mode, Layers layers, Rule rule, const DetourRule& detours,
         std::int64_t most_steps)
      : fabric_(fabric),
        mode_(mode),
        layers_(std::move(layers)),
        tiers_(fabric),
        search_(rule, most_steps),
        detours_(detours) {
    if (mode_ == Mode::kDeterministic) number_destinations();
    renew();
  }

  void use(std::span<const std::uint8_t> live, std::size_t table) {
    layers_.use(table);
    tiers_.use(live);
    renew();
  }

  void path(PortId source_port, PortId destination_port, std::uint16_t entropy, std::uint32_t destination_qp,
            std::int64_t queue_pair_hash, std::vector<Hop>& hops, PathFacts& about) const {
    about = {true, 0, 0, std::numeric_limits<double>::infinity(), {}};
    const std::size_t begin = hops.size();
    const NodeId node = fabric_.next(source_port);
    add(source_port, 1.0, hops, about);
    if (!fabric_.is_switch(node)) {
      about.reachable = fabric_.peer(source_port) == destination_port;
    } else if (const NodeId goal = fabric_.next(destination_port); !fabric_.is_switch(goal)) {
      about.reachable = false;
    } else {
      const Flow flow{source_port, destination_port, entropy, destination_qp, queue_pair_hash};
      if (layers_.empty()) {
        about.reachable = by_mode(flow, Layers::kShortest, node, goal, hops, about);
        for (std::size_t& end : about.stage_ends) end -= begin;
      } else {
        about.reachable = by_layers(flow, node, goal, begin, hops, about);
      }
      if (about.reachable) add(fabric_.peer(destination_port), 1.0, hops, about);
      if (!about.stage_ends.empty()) {
        about.stage_ends.insert(about.stage_ends.begin(), 1);
        about.stage_ends.push_back(hops.size() - begin);
      }
    }
    if (about.reachable) return;
    hops.resize(begin);
    about = {};
  }

  void tell_stages(bool tells_stages) { tells_stages_ = tells_stages; }

  void take_detours(bool takes_detours) { takes_detours_ = takes_detours; }

  [[nodiscard]] Mode mode() const { return mode_; }
  [[nodiscard]] const Layers& layers() const { return layers_; }
  [[nodiscard]] bool splits() const { return mode_ == Mode::kSpray || (!layers_.empty() && layers_.spreads_ways()); }
  [[nodiscard]] const FabricView& fabric() const { return fabric_; }
  [[nodiscard]] PortId bundle_of_port(PortId port) const {
    return mode_ == Mode::kSpray ? bundles_.representatives()[port] : port;
  }
  void members(PortId bundle, std::vector<PortId>& ports) const {
    for (const PortId p : id_range(bundle, PortId(fabric_.port_node.size())))
      if (bundle_of_port(p) == bundle) ports.push_back(p);
  }

 private:
  struct Flow {
    PortId source_port, destination_port;
    std::uint16_t entropy;
    std::uint32_t destination_qp;
    std::int64_t queue_pair_hash;
  };

  /// What one of a flow's ways sends over a link, and which of the links between switches that it crosses that is.
  struct Crossing {
    std::size_t stage;
    LinkId link;
    double weight;
  };

  void renew() {
    search_.reset(fabric_, tiers_);
    capacity_bps_.clear();
    if (mode_ != Mode::kSpray) return;
    bundles_.make(fabric_, tiers_, layers_.empty(), {search_.rule().dimension, detours_.rule().node_group});
    spread_.reset(bundles_.colours());
    next_.reset(bundles_.colours());
    if (detours_.rule().empty()) return;
    detours_.reset(fabric_, bundles_);
    load_.assign(fabric_.port_node.size(), 0.0);
  }

  void add(PortId port, double weight, std::vector<Hop>& hops, PathFacts& about) const {
    hops.push_back({link_of(port), weight});
    about.links += 1;
    about.latency_ps += fabric_.port_delay_ps[port];
    about.rate_bps = std::min(about.rate_bps, static_cast<double>(fabric_.port_rate_bps[port]) / weight);
  }

  /// Candidates of a switch for a destination, as topology/routing.py lists them. Where the tiers know it, paths go
  /// straight up and straight down, which is what either rule says.
  [[nodiscard]] Candidates candidates(NodeId node, NodeId goal, AttachmentId attachment) const {
    if (tiers_.knows(attachment)) return tiers_.candidates(node, attachment);
    const Search::HopsLeft& left = search_.to(fabric_, tiers_, attachment, goal);
    found_.clear();
    for (const PortId p : fabric_.ports_of(node))
      if (const NodeId next = fabric_.next(p);
          tiers_.is_live(p) && fabric_.is_switch(next) && search_.leads(fabric_, tiers_, left, node, next, p))
        found_.push_back(p);
    if (search_.rule().in_dimension_order && found_.size() > 1) keep_lowest();
    return found_;
  }

  /// Keep of the candidates those of the lowest dimension.
  void keep_lowest() const {
    const auto dimension = [&](PortId p) { return search_.rule().dimension[p]; };
    const auto lowest = dimension(*std::ranges::min_element(found_, {}, dimension));
    std::erase_if(found_, [&](PortId p) { return dimension(p) != lowest; });
  }

  bool by_mode(const Flow& flow, std::int32_t layer, NodeId node, NodeId goal, std::vector<Hop>& hops,
               PathFacts& about) const {
    if (mode_ != Mode::kSpray || layer != Layers::kShortest) return walk(flow, layer, goal, hops, about);
    return detours_.rule().empty() || !takes_detours_ ? spread(node, goal, hops, about)
                                                      : spread_by_detours(node, goal, hops, about);
  }

  /// The hops of all ways of a flow behind `hops[begin]`: those of the first links crossed, then of the second ones and
  /// so on; where ways share a link there, it is one hop.
  bool by_layers(const Flow& flow, NodeId node, NodeId goal, std::size_t begin, std::vector<Hop>& hops,
                 PathFacts& about) const {
    const auto layers = layers_.of(node, goal, flow.entropy);
    const double share = 1.0 / static_cast<double>(layers.size());
    const PathFacts before = about;
    PathFacts way;
    crossed_.clear();
    for (const std::int32_t layer : layers) {
      way = {true, before.links, before.latency_ps, before.rate_bps, {}};
      way_.clear();
      if (!by_mode(flow, layer, node, goal, way_, way)) return false;
      for (std::size_t i = 0, stage = 0; i < way_.size(); ++i) {
        // a way that is not split has one hop at each stage
        if (way.stage_ends.empty())
          stage = i;
        else if (i == way.stage_ends[stage])
          ++stage;
        crossed_.push_back({stage, way_[i].link, way_[i].weight * share});
      }
      about.links = std::max(about.links, way.links);
      about.latency_ps = std::max(about.latency_ps, way.latency_ps);
    }
    std::sort(crossed_.begin(), crossed_.end(), [](const Crossing& a, const Crossing& b) {
      return std::tuple(a.stage, a.link, a.weight) < std::tuple(b.stage, b.link, b.weight);
    });
    for (std::size_t i = 0; i < crossed_.size();) {
      const Crossing first = crossed_[i];
      double weight = 0.0;
      for (; i < crossed_.size() && crossed_[i].stage == first.stage && crossed_[i].link == first.link; ++i)
        weight += crossed_[i].weight;
      hops.push_back({first.link, weight});
      about.rate_bps =
          std::min(about.rate_bps, static_cast<double>(fabric_.port_rate_bps[PortId(first.link.value)]) / weight);
      if (i == crossed_.size() || crossed_[i].stage != first.stage) about.stage_ends.push_back(hops.size() - begin);
    }
    return true;
  }

  bool walk(const Flow& flow, std::int32_t layer, NodeId end, std::vector<Hop>& hops, PathFacts& about) const {
    hashed_device_ = DeviceId::none();
    NodeId via = intermediate(flow, layer, end);
    for (PortId ingress = fabric_.peer(flow.source_port);;) {
      const NodeId node = fabric_.owner(ingress);
      if (!via.is_none() && detours_.rule().turns(node, via)) via = NodeId::none();
      const NodeId goal = via.is_none() ? end : via;
      if (node == goal) break;
      const AttachmentId attachment = tiers_.attachment(goal);
      PortId port = layers_.next_port(layer, node, goal);
      if (port.is_none()) {
        const Candidates ports = candidates(node, goal, attachment);
        if (ports.empty()) return false;
        if (ports.size() == 1)
          port = ports.front();
        else if (mode_ == Mode::kWeighted)
          port = by_weight(hash_at(flow, node, ingress), ports, goal, attachment);
        else
          port = ports[choice(flow, node, ingress, ports)];
        if (port.is_none()) return false;
      }
      add(port, 1.0, hops, about);
      ingress = fabric_.peer(port);
    }
    return true;
  }

  /// The switch by which a flow of one path detours, or none.
  [[nodiscard]] NodeId intermediate(const Flow& flow, std::int32_t layer, NodeId goal) const {
    const NodeId from = fabric_.next(flow.source_port);
    if (detours_.rule().empty() || layer != Layers::kShortest || from == goal) return NodeId::none();
    const std::int64_t drawn =
        detours_.rule().among.pick(tiers_.attachment(from).value, tiers_.attachment(goal).value, flow.queue_pair_hash);
    return drawn < 0 ? NodeId::none() : tiers_.node_of(AttachmentId(drawn));
  }

  [[nodiscard]] std::size_t choice(const Flow& flow, NodeId node, PortId ingress, Candidates ports) const {
    if (mode_ == Mode::kDeterministic) {
      const std::int32_t lower = std::min(fabric_.tier(node), fabric_.tier(fabric_.next(ports.front())));
      const std::int64_t stride = stride_[std::max(lower, 0)];
      return static_cast<std::size_t>(number_[flow.destination_port] / stride) % ports.size();
    }
    return hash_at(flow, node, ingress) % ports.size();
  }

  /// What a switch computes of the headers of a flow.
  [[nodiscard]] std::uint32_t hash_at(const Flow& flow, NodeId node, PortId ingress) const {
    const DeviceId device = fabric_.node_device[node];
    const SwitchRow& row = fabric_.switches[device];
    if (device != hashed_device_ || (row.hash_fields & kInPort) != 0) {
      const HashFunction function = hash_function_of(row);
      const HashInput input{address_of(flow.source_port), address_of(flow.destination_port), flow.entropy,
                            static_cast<std::uint16_t>(ingress - fabric_.first(node)), flow.destination_qp};
      hash_ = hash_of(function, digest_of(function, input));
      hashed_device_ = device;
    }
    return hash_;
  }

  /// The port into whose part of the sum of weights the hash falls, or none where nothing leads there. Weights are
  /// those of topology/weights.py.
  [[nodiscard]] PortId by_weight(std::uint32_t hash, Candidates ports, NodeId goal, AttachmentId attachment) const {
    const std::vector<PortId> own(ports.begin(), ports.end());  // what is behind them asks for candidates anew
    std::vector<std::int64_t> weights(own.size());
    std::int64_t divisor = 0, most = 0, total = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
      weights[i] = behind_bps(own[i], goal, attachment);
      divisor = std::gcd(divisor, weights[i]);
    }
    if (divisor == 0) return PortId::none();  // nothing leads there
    for (std::int64_t& weight : weights) most = std::max(most, weight /= divisor);
    for (std::int64_t& weight : weights) {
      if (most > kMostWeight && weight > 0)
        weight = std::max<std::int64_t>(
            1, std::llrint(static_cast<double>(weight) / static_cast<double>(most) * static_cast<double>(kMostWeight)));
      total += weight;
    }
    std::int64_t place = hash % total;
    std::size_t chosen = 0;
    while (place >= weights[chosen]) place -= weights[chosen++];
    return own[chosen];
  }

  /// What a port can carry towards a destination: the smaller of its rate and of what its switch can.
  [[nodiscard]] std::int64_t behind_bps(PortId port, NodeId goal, AttachmentId attachment) const {
    const std::int64_t rate_bps = fabric_.port_rate_bps[port];
    const NodeId node = fabric_.next(port);
    if (node == goal) return rate_bps;
    const std::uint64_t key =
        std::uint64_t{static_cast<std::uint32_t>(node.value)} << 32U | static_cast<std::uint32_t>(goal.value);
    auto known = capacity_bps_.find(key);
    if (known == capacity_bps_.end()) {
      const Candidates ports = candidates(node, goal, attachment);
      const std::vector<PortId> own(ports.begin(), ports.end());
      std::int64_t sum_bps = 0;
      for (const PortId p : own) sum_bps += behind_bps(p, goal, attachment);
      known = capacity_bps_.emplace(key, sum_bps).first;
    }
    return std::min(rate_bps, known->second);
  }

  bool spread(NodeId node, NodeId goal, std::vector<Hop>& hops, PathFacts& about) const {
    const Towards towards(fabric_, tiers_, bundles_, search_, goal, closer_);
    const bool tells_stages = !layers_.empty() || towards.is_searched();  // else tiers tell links side by side
    spread_.clear();
    spread_.add({bundles_.colour(tiers_.switch_of(node)), node, 1.0, about.latency_ps});
    while (spread_.begin()->node != goal) {
      next_.clear();
      for (const Spread& spread : spread_) {
        const bool goes_on = towards.pass(spread, next_, [&](const Bundle& bundle, double weight) {
          hops.push_back({link_of(bundle.port), weight});
          about.rate_bps = std::min(about.rate_bps, static_cast<double>(bundle.rate_bps) / weight);
        });
        if (!goes_on) return false;
      }
      spread_.swap(next_);
      about.links += 1;
      if (tells_stages) about.stage_ends.push_back(hops.size());
    }
    about.latency_ps = spread_.begin()->latency_ps;
    return true;
  }

  /// The hops of a flow that is spread over its detours; those of its shortest paths where it has none.
  bool spread_by_detours(NodeId node, NodeId goal, std::vector<Hop>& hops, PathFacts& about) const {
    const DetourPath& path = detours_.between(fabric_, tiers_, bundles_, search_, node, goal, tells_stages_);
    if (!path.is_detour) return spread(node, goal, hops, about);
    if (!path.is_reachable) return false;
    const std::size_t begin = hops.size();
    hops.insert(hops.end(), path.hops.begin(), path.hops.end());
    for (const std::size_t end : path.stage_ends) about.stage_ends.push_back(begin + end);
    about.links += path.links;
    about.latency_ps += path.latency_ps;
    for (const Hop& hop : path.hops) load_[PortId(hop.link.value)] += hop.weight;
    for (const Hop& hop : path.hops) {
      const PortId port(hop.link.value);
      if (load_[port] == 0.0) continue;
      about.rate_bps = std::min(about.rate_bps, static_cast<double>(fabric_.port_rate_bps[port]) / load_[port]);
      load_[port] = 0.0;
    }
    return true;
  }

  /// Count NIC ports leaf by leaf, and give each the number whose digits are the ports that lead to it, tier by tier:
  /// of w parents with p parallel links each, parent d mod w and link floor(d / w) mod p, as topology/digits.py says.
  void number_destinations() {
    number_.assign(fabric_.port_node.size(), 0);
    std::int32_t highest = 0;
    for (const SwitchId s : tiers_.switches()) highest = std::max(highest, fabric_.tier(tiers_.node_of(s)));
    const std::size_t levels = static_cast<std::size_t>(highest) + 1;
    std::vector<std::int64_t> width(levels, 1), parents(levels, 1);
    std::vector<PortId> places;
    std::vector<NodeId> above;
    for (const SwitchId s : tiers_.switches()) {
      const NodeId node = tiers_.node_of(s);
      above.clear();
      for (const PortId p : fabric_.ports_of(node)) {
        const NodeId next = fabric_.next(p);
        if (!fabric_.is_switch(next)) places.push_back(fabric_.peer(p));
        if (fabric_.is_switch(next) && fabric_.tier(next) > fabric_.tier(node)) above.push_back(next);
      }
      const auto tier = static_cast<std::size_t>(std::max(fabric_.tier(node), 0));
      width[tier] = std::max(width[tier], static_cast<std::int64_t>(above.size()));
      std::ranges::sort(above);
      const auto more = std::ranges::unique(above);
      parents[tier] = std::max(parents[tier], static_cast<std::int64_t>(above.size() - more.size()));
    }
    for (std::size_t tier = 0; tier < levels; ++tier)
      if (width[tier] % parents[tier] != 0) parents[tier] = width[tier];
    for (std::size_t place = 0; place < places.size(); ++place)
      number_[places[place]] = digits(static_cast<std::int64_t>(place), width, parents);
    stride_.assign(levels, 1);
    for (std::size_t tier = 2; tier < levels; ++tier) stride_[tier] = stride_[tier - 1] * width[tier - 1];
  }

  /// The number of the destination that is counted at ``place``.
  [[nodiscard]] static std::int64_t digits(std::int64_t place, const std::vector<std::int64_t>& width,
                                           const std::vector<std::int64_t>& parents) {
    std::int64_t number = 0, base = 1, top = place;
    for (std::size_t tier = 1; tier < width.size(); ++tier) {
      const std::int64_t cables = width[tier] / parents[tier];
      number += base * (place % parents[tier] * cables + place / parents[tier] % cables);
      base *= width[tier];
      place /= parents[tier];
      top = place / cables;
    }
    return base > 1 ? number + base * top : place;
  }

  FabricView fabric_;
  Mode mode_;
  Layers layers_;
  Tiers tiers_;
  Bundles bundles_;
  IdVector<PortId, std::int64_t> number_;  // of NIC ports; deterministic only
  std::vector<std::int64_t> stride_;       // by tier
  mutable Search search_;
  mutable DetourPaths detours_;
  bool tells_stages_ = true, takes_detours_ = true;
  mutable std::vector<PortId> found_;
  mutable std::vector<Bundle> closer_;
  mutable SpreadLevel spread_, next_;
  mutable IdVector<PortId, double> load_;  // 0 between calls
  mutable std::vector<Hop> way_;
  mutable std::vector<Crossing> crossed_;
  mutable DeviceId hashed_device_;
  mutable std::uint32_t hash_ = 0;
  mutable std::unordered_map<std::uint64_t, std::int64_t> capacity_bps_;  // by switch and leaf; weighted only
};

Router::Router(const FabricView& fabric, Mode mode, Layers layers, Rule rule, const DetourRule& detours,
               std::int64_t most_steps)
    : routes_(std::make_unique<Routes>(fabric, mode, std::move(layers), rule, detours, most_steps)) {
}
Router::~Router() = default;

void Router::use(std::span<const std::uint8_t> live, std::size_t table) {
  routes_->use(live, table);
}
void Router::path(PortId source_port, PortId destination_port, std::uint16_t entropy, std::uint32_t destination_qp,
                  std::int64_t queue_pair_hash, std::vector<Hop>& hops, PathFacts& about) const {
  routes_->path(source_port, destination_port, entropy, destination_qp, queue_pair_hash, hops, about);
}
void Router::tell_stages(bool tells_stages) {
  routes_->tell_stages(tells_stages);
}
void Router::take_detours(bool takes_detours) {
  routes_->take_detours(takes_detours);
}
Mode Router::mode() const {
  return routes_->mode();
}
const Layers& Router::layers() const {
  return routes_->layers();
}
bool Router::splits() const {
  return routes_->splits();
}
const FabricView& Router::fabric() const {
  return routes_->fabric();
}
PortId Router::bundle_of_port(PortId port) const {
  return routes_->bundle_of_port(port);
}
void Router::members(PortId bundle, std::vector<PortId>& ports) const {
  routes_->members(bundle, ports);
}

}  // namespace weftwork::flow

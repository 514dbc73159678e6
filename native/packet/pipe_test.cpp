#include <doctest/doctest.h>

#include "packet/two_hosts_test.hpp"

using namespace weftwork;

namespace {

constexpr std::int64_t kThreeBytes = 2 * TwoHosts::kMtuBytes + 1'808;  // three packets, the last one short
constexpr Ps kLongPs = 1'000'000'000;

/// Time on the line of a data packet with so much payload.
Ps line_ps(std::int64_t payload_bytes) {
  return (payload_bytes + TwoHosts::kOverheadBytes + TwoHosts::kGapBytes) * TwoHosts::kPsPerByte;
}

}  // namespace

TEST_CASE("a message leaves at line rate: packet after packet, each a delay later at the far end") {
  TwoHosts hosts;
  const QueuePairId id = hosts.open(kThreeBytes);
  hosts.run(0);
  hosts.run(kLongPs);
  const auto packets = hosts.arrivals();
  REQUIRE(packets.size() == 3);
  const Ps full_ps = line_ps(TwoHosts::kMtuBytes);
  CHECK(packets[0]->at_ps == full_ps + TwoHosts::kDelayPs);
  CHECK(packets[1]->at_ps == 2 * full_ps + TwoHosts::kDelayPs);
  CHECK(packets[2]->at_ps == 2 * full_ps + line_ps(1'808) + TwoHosts::kDelayPs);
  CHECK(packets[2]->bytes == 1'808 + TwoHosts::kOverheadBytes);
  CHECK(hosts.state->fabric.ports[TwoHosts::kSource].bytes == kThreeBytes + 3 * TwoHosts::kOverheadBytes);
  CHECK(hosts.queue_pair(id).sender.nxt_bytes == kThreeBytes);
  CHECK(hosts.state->schedule.due_at_ps[TwoHosts::kSource] == kNeverPs);
}

TEST_CASE("the first packet of a message says so, and the last one alone asks for an acknowledgement") {
  TwoHosts hosts;
  hosts.open(kThreeBytes);
  hosts.run(0);
  hosts.run(kLongPs);
  const auto packets = hosts.arrivals();
  REQUIRE(packets.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(packets[i]->seq == i);
    CHECK(has(packets[i]->flags, kForward));
    CHECK(has(packets[i]->flags, kFirst) == (i == 0));
    CHECK(has(packets[i]->flags, kAckRequest) == (i == 2));
  }
}

TEST_CASE("at a quarter of the line rate packets begin four line times apart") {
  TwoHosts hosts;
  hosts.open(kThreeBytes, TwoHosts::kRateBps / 4.0);
  hosts.run(0);
  CHECK(hosts.arrivals().size() == 1);
  hosts.run(4 * line_ps(TwoHosts::kMtuBytes) - 1);
  CHECK(hosts.arrivals().size() == 1);
  hosts.run(kLongPs);
  const auto packets = hosts.arrivals();
  REQUIRE(packets.size() == 3);
  CHECK(packets[1]->at_ps - packets[0]->at_ps == 4 * line_ps(TwoHosts::kMtuBytes));
}

TEST_CASE("a window holds the sender back until it is acknowledged, and its last packet asks for that") {
  TwoHosts hosts;
  const QueuePairId id = hosts.open(4 * TwoHosts::kMtuBytes, TwoHosts::kRateBps, 2.0 * TwoHosts::kMtuBytes);
  hosts.run(0);
  hosts.run(kLongPs);
  auto packets = hosts.arrivals();
  REQUIRE(packets.size() == 2);
  CHECK_FALSE(has(packets[0]->flags, kAckRequest));
  CHECK(has(packets[1]->flags, kAckRequest));
  hosts.answer(id, 1, false, kLongPs);
  hosts.run(kLongPs);
  hosts.run(2 * kLongPs);
  packets = hosts.arrivals();
  REQUIRE(packets.size() == 3);
  CHECK(packets[2]->seq == 2);
  CHECK(packets[2]->at_ps == kLongPs + line_ps(TwoHosts::kMtuBytes) + TwoHosts::kDelayPs);
}

TEST_CASE("a window smaller than a packet lets one packet go when nothing is in flight, and none if it is 0") {
  TwoHosts narrow;
  narrow.open(kThreeBytes, TwoHosts::kRateBps, 1.0);
  narrow.run(0);
  narrow.run(kLongPs);
  CHECK(narrow.arrivals().size() == 1);
  TwoHosts shut;
  shut.open(kThreeBytes, TwoHosts::kRateBps, 0.0);
  shut.run(0);
  shut.run(kLongPs);
  CHECK(shut.arrivals().empty());
}

TEST_CASE("queue pairs of one port take turns") {
  TwoHosts hosts;
  const std::array ids{hosts.open(kThreeBytes), hosts.open(kThreeBytes)};
  hosts.run(0);
  hosts.run(kLongPs);
  const auto packets = hosts.arrivals();
  REQUIRE(packets.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(packets[i]->queue_pair == ids[i % 2]);
}

TEST_CASE("a control packet goes before the next data packet") {
  TwoHosts hosts;
  const QueuePairId id = hosts.open(kThreeBytes);
  hosts.run(0);
  queue_control(hosts.state->setup, hosts.state->fabric, hosts.state->routing, hosts.state->hosts, TwoHosts::kSource,
                id, PacketKind::kProbe, true, 7, 3, TwoHosts::kAckBytes);
  hosts.run(kLongPs);
  const auto packets = hosts.arrivals();
  REQUIRE(packets.size() == 4);
  CHECK(packets[1]->kind == PacketKind::kProbe);
  CHECK(packets[1]->seq == 7);
  CHECK(packets[1]->attempt == 3);
  CHECK(packets[2]->at_ps - packets[1]->at_ps == line_ps(TwoHosts::kMtuBytes));
  CHECK(hosts.state->fabric.ports[TwoHosts::kSource].pending == 0);
}

TEST_CASE("a port that is down sends nothing") {
  TwoHosts hosts;
  hosts.state->fabric.ports[TwoHosts::kSource].up = false;
  hosts.open(kThreeBytes);
  CHECK(nic_due(hosts.state->setup, hosts.state->fabric, hosts.state->hosts, hosts.state->job, TwoHosts::kSource) ==
        kNeverPs);
}

TEST_CASE("a paused class waits until its pause ends") {
  TwoHosts hosts;
  hosts.open(kThreeBytes);
  hosts.state->fabric.ports[TwoHosts::kSource].paused = 1;
  hosts.state->fabric.queue_controls[QueueId(0)].paused_until_ps = 5'000'000;
  hosts.run(0);
  CHECK(hosts.arrivals().empty());
  CHECK(hosts.state->schedule.due_at_ps[TwoHosts::kSource] == 5'000'000);
  hosts.run(5'000'000);
  REQUIRE(hosts.arrivals().size() == 1);
  CHECK(hosts.arrivals()[0]->at_ps == 5'000'000 + line_ps(TwoHosts::kMtuBytes) + TwoHosts::kDelayPs);
}

#include <doctest/doctest.h>

#include "packet/two_hosts_test.hpp"

using namespace weftwork;

namespace {

constexpr std::int64_t kMtu = TwoHosts::kMtuBytes;
constexpr Ps kLongPs = 1'000'000'000;

/// Two hosts of which the first has sent a message of that many full packets.
QueuePairId send_all(TwoHosts& hosts, std::int64_t packets) {
  const QueuePairId id = hosts.open(packets * kMtu);
  hosts.run(0);
  hosts.run(kLongPs);
  REQUIRE(hosts.queue_pair(id).sender.nxt == packets);
  return id;
}

}  // namespace

TEST_CASE("a credit code tells the largest number of the table that is not more") {
  for (std::size_t code = 0; code < kCredits.size(); ++code) {
    CHECK(credit_code(kCredits[code]) == code);
    if (code + 1 < kCredits.size()) CHECK(credit_code(kCredits[code + 1] - 1) == code);
  }
  CHECK(credit_code(1'000'000) == 30);
}

TEST_CASE("an acknowledgement is cumulative, and the last one completes the message") {
  TwoHosts hosts;
  const QueuePairId id = send_all(hosts, 4);
  Sender& sender = hosts.queue_pair(id).sender;
  CHECK(inflight_bytes(sender) == 4 * kMtu);
  hosts.answer(id, 3, false, kLongPs);
  CHECK(sender.una == 3);
  CHECK(inflight_bytes(sender) == kMtu);
  CHECK(sender.deadline_at_ps == kLongPs + TwoHosts::kTimeoutPs);
  CHECK(hosts.state->job.open_work == 1);
  hosts.answer(id, 2, false, kLongPs + 1);  // an old one changes nothing
  CHECK(sender.una == 3);
  hosts.answer(id, 4, false, kLongPs + 2);
  CHECK(inflight_bytes(sender) == 0);
  CHECK(sender.deadline_at_ps == kOff);
  CHECK(hosts.state->job.open_work == 0);
  CHECK(hosts.state->job.messages[MessageId(0)].acked_at_ps == kLongPs + 2);
  CHECK(hosts.state->job.streams[StreamId(0)].outstanding == 0);
}

TEST_CASE("go-back-N sends everything from the packet on that is asked for") {
  TwoHosts hosts;
  const QueuePairId id = send_all(hosts, 4);
  hosts.answer(id, 1, true, kLongPs);
  const Sender& sender = hosts.queue_pair(id).sender;
  CHECK(sender.una == 1);
  CHECK(sender.nxt == 1);
  CHECK(inflight_bytes(sender) == 0);
  hosts.run(kLongPs);
  hosts.run(2 * kLongPs);
  const auto packets = hosts.arrivals();
  REQUIRE(packets.size() == 7);
  for (std::size_t i = 4; i < 7; ++i) {
    CHECK(packets[i]->seq == i - 3);
    CHECK(packets[i]->attempt == 1);
  }
  CHECK(hosts.state->recordings.count.retransmissions == 3);
  CHECK(hosts.state->recordings.count.data_sent == 7);
}

TEST_CASE("an acknowledgement of what is sent again is believed") {
  TwoHosts hosts;
  const QueuePairId id = send_all(hosts, 4);
  hosts.answer(id, 1, true, kLongPs);
  hosts.answer(id, 3, false, kLongPs);  // they had arrived after all
  const Sender& sender = hosts.queue_pair(id).sender;
  CHECK(sender.nxt == 3);
  CHECK(sender.nxt_bytes == sender.una_bytes);
  CHECK(sender.una_bytes == 3 * kMtu);
}

TEST_CASE("a queue pair gives up after its retries, and an acknowledgement makes it count anew") {
  TwoHosts hosts;
  const QueuePairId id = send_all(hosts, 2);
  const auto expire = [&](Ps at_ps) {
    handle_timeout(*hosts.state, id, at_ps);
    hosts.run(at_ps);
    hosts.run(at_ps + kLongPs / 2);
  };
  Sender& sender = hosts.queue_pair(id).sender;
  expire(kLongPs);
  expire(2 * kLongPs);
  CHECK(sender.retries == TwoHosts::kRetries);
  hosts.answer(id, 1, false, 3 * kLongPs);
  CHECK(sender.retries == 0);
  for (std::int64_t retry = 1; retry <= TwoHosts::kRetries; ++retry) {
    expire((3 + retry) * kLongPs);
    CHECK_FALSE(sender.failed);
  }
  expire(9 * kLongPs);
  CHECK(sender.failed);
  CHECK(hosts.state->recordings.count.timeouts == 2 + TwoHosts::kRetries + 1);
  CHECK(hosts.state->recordings.count.queue_pair_errors == 1);
  const auto sent = hosts.arrivals().size();
  expire(10 * kLongPs);
  CHECK(hosts.arrivals().size() == sent);
}

TEST_CASE("selective repeat sends the lost packet alone, and the bytes in flight add up all along") {
  TwoHosts hosts(1);
  const QueuePairId id = send_all(hosts, 6);
  QueuePair& qp = hosts.queue_pair(id);
  hosts.answer(id, 1, true, kLongPs, 2);  // 1 is missing, 2 is kept: overtaken by one packet, which is no loss yet
  CHECK_FALSE(has_lost(hosts.state->setup, qp));
  CHECK(inflight_bytes(qp.sender) == 4 * kMtu);  // 1, 3, 4, 5
  hosts.answer(id, 1, true, kLongPs, 3);
  REQUIRE(has_lost(hosts.state->setup, qp));
  CHECK(qp.selective->first_lost() == 1);
  CHECK(inflight_bytes(qp.sender) == 2 * kMtu);  // 4, 5
  hosts.run(kLongPs);
  hosts.run(2 * kLongPs);
  const auto packets = hosts.arrivals();
  REQUIRE(packets.size() == 7);
  CHECK(packets[6]->seq == 1);
  CHECK(has(packets[6]->flags, kAckRequest));
  CHECK(inflight_bytes(qp.sender) == 3 * kMtu);
  hosts.answer(id, 6, false, 2 * kLongPs);
  CHECK(inflight_bytes(qp.sender) == 0);
  CHECK(hosts.state->job.open_work == 0);
}

TEST_CASE("what is known of packets under selective repeat") {
  Selective known;
  CHECK(known.keep(5, 0) == Selective::Before::kInFlight);
  CHECK(known.keep(5, 0) == Selective::Before::kKept);
  CHECK(known.judge(0, 3) == 0);
  CHECK(known.judge(0, 3) == 1);
  CHECK(known.judge(0, 3) == 2);
  CHECK(known.judge(0, 3) == -1);
  CHECK(known.judge(0, 3) == -1);  // judged once
  CHECK(known.keep(1, 0) == Selective::Before::kLost);
  CHECK(known.first_lost() == 0);
  known.resend(0, 10);  // packet 0 goes again after 9
  CHECK(known.first_lost() == 2);
  CHECK(known.judge(0, 10) == 3);  // never sent again, and overtaken
  CHECK(known.judge(0, 10) == 4);
  CHECK(known.judge(0, 10) == 6);  // 5 is kept
  for (const std::int64_t seq : {7, 8, 9}) CHECK(known.judge(0, 10) == seq);
  CHECK(known.judge(0, 10) == 0);  // 10 has overtaken its second transmission
  CHECK(known.judge(0, 10) == -1);
  const auto away = known.take_away_below(2);
  CHECK(away.seq == 1);
  CHECK(away.kept);
  CHECK(known.take_away_below(2).seq == 0);
  CHECK(known.take_away_below(2).seq == -1);
}

TEST_CASE("a packet that was cut is lost once, and being overtaken later is no second loss") {
  Selective known;
  CHECK(known.trim(3, 0));
  CHECK_FALSE(known.trim(3, 0));
  known.resend(0, 8);
  CHECK_FALSE(known.has_lost());
  for (const std::int64_t seq : {0, 1, 2, 4}) CHECK(known.judge(0, 5) == seq);  // not 3, which is on its way again
  CHECK(known.judge(0, 5) == -1);
  CHECK(known.judge(0, 8) == 5);
}

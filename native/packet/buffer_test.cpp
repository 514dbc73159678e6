#include "packet/buffer.hpp"

#include <doctest/doctest.h>

#include <array>
#include <random>

using namespace weftwork;

namespace {

/// A switch with 10,000 bytes to share, 1,000 reserved for each ingress, and a threshold of half of what is free.
struct Buffer {
  SwitchNode node;
  SwitchRow row{};
  std::array<Ingress, 4> ingresses{};
  Queue queue;

  explicit Buffer(double alpha = 0.5) {
    node.shared_bytes = 10'000;
    row.reserve_bytes = 1'000;
    row.alpha = row.egress_alpha = alpha;
  }
  [[nodiscard]] SwitchView view() { return {node, row, {}, {}, PortId(0), QueueId(0), NodeId(0), 0, false}; }
  [[nodiscard]] Verdict judged(std::size_t from, std::int64_t bytes, bool lossless, std::int64_t headroom = 0) {
    return judge(view(), ingresses[from], headroom, queue, bytes, lossless);
  }
  [[nodiscard]] std::int64_t shared_by_ingresses() const {
    std::int64_t bytes = 0;
    for (const Ingress& ingress : ingresses) bytes += shared_growth(0, ingress.used, row.reserve_bytes);
    return bytes;
  }
};

}  // namespace

TEST_CASE("the reserve is an ingress's own, and only what exceeds it is shared") {
  Buffer buffer;
  occupy(buffer.view(), buffer.ingresses[0], 1'000);
  CHECK(buffer.node.shared_used == 0);
  occupy(buffer.view(), buffer.ingresses[0], 300);
  CHECK(buffer.node.shared_used == 300);
  CHECK(free_bytes(buffer.node) == 9'700);
  release(buffer.view(), buffer.ingresses[0], 600);
  CHECK(buffer.ingresses[0].used == 700);
  CHECK(buffer.node.shared_used == 0);
}

TEST_CASE("headroom is given back first, and counts as used once it is folded") {
  Buffer buffer;
  Ingress& ingress = buffer.ingresses[0];
  occupy(buffer.view(), ingress, 1'500);
  ingress.headroom_used = 400;
  release(buffer.view(), ingress, 600);
  CHECK(ingress.headroom_used == 0);
  CHECK(ingress.used == 1'300);
  CHECK(buffer.node.shared_used == 300);
  ingress.headroom_used = 200;
  fold_headroom(buffer.view(), ingress);
  CHECK(ingress.used == 1'500);
  CHECK(ingress.headroom_used == 0);
  CHECK(buffer.node.shared_used == 500);
}

TEST_CASE("a lossless ingress pauses above alpha times what is free behind the packet") {
  // One queue settles at alpha / (1 + alpha) of the buffer (Choudhury and Hahne): 3,333 bytes of 10,000.
  Buffer buffer;
  CHECK_FALSE(buffer.judged(0, 1'000 + 3'333, true).pause);
  CHECK(buffer.judged(0, 1'000 + 3'334, true).pause);
  CHECK(buffer.judged(0, 1'000 + 3'334, true).admission == Admission::kShared);
  CHECK_FALSE(buffer.judged(0, 1'000, true).pause);
}

TEST_CASE("the threshold falls while others fill the buffer") {
  Buffer buffer;
  occupy(buffer.view(), buffer.ingresses[1], 7'000);  // 6,000 shared
  CHECK_FALSE(buffer.judged(0, 1'000 + 1'333, true).pause);
  CHECK(buffer.judged(0, 1'000 + 1'400, true).pause);
}

TEST_CASE("a paused ingress goes on in its headroom, up to the last byte") {
  Buffer buffer;
  Ingress& ingress = buffer.ingresses[0];
  ingress.paused = true;
  ingress.headroom_used = 400;
  CHECK(buffer.judged(0, 600, true, 1'000).admission == Admission::kHeadroom);
  CHECK(buffer.judged(0, 601, true, 1'000).admission == Admission::kHeadroomFull);
  CHECK(is_refused(buffer.judged(0, 601, true, 1'000)));
  CHECK_FALSE(buffer.judged(0, 600, true, 1'000).pause);  // it has been told
}

TEST_CASE("a full buffer sends lossless packets into the headroom, with a pause, and drops others") {
  Buffer buffer(100.0);
  occupy(buffer.view(), buffer.ingresses[1], 11'000);
  CHECK(free_bytes(buffer.node) == 0);
  const Verdict kept = buffer.judged(0, 1'001, true, 2'000);
  CHECK(kept.admission == Admission::kHeadroom);
  CHECK(kept.pause);
  CHECK(buffer.judged(0, 1'001, true, 1'000).admission == Admission::kBufferFull);
  CHECK(buffer.judged(0, 1'001, false).admission == Admission::kEgressThreshold);
  CHECK(buffer.judged(0, 1'000, false).admission == Admission::kShared);  // of its reserve
}

TEST_CASE("a lossy queue takes alpha times what is free, beyond its reserve") {
  Buffer buffer;
  buffer.queue.bytes = 5'000;
  CHECK(buffer.judged(0, 1'000, false).admission == Admission::kShared);  // 5,000 = 10,000 / 2
  CHECK(buffer.judged(0, 1'001, false).admission == Admission::kEgressThreshold);
}

TEST_CASE("more than 1 GiB in a queue is refused, since counters have 32 bits") {
  CHECK_NOTHROW(refuse_above_limit(1 << 30));
  CHECK_THROWS_AS(refuse_above_limit((1 << 30) + 1), LimitError);
}

TEST_CASE("generated traffic: shared bytes are those of the ingresses, and the quick check agrees with the full one") {
  // A test repeats itself. NOLINTNEXTLINE(bugprone-random-generator-seed,cert-msc32-c,cert-msc51-cpp)
  std::mt19937_64 random(11);
  for (const bool lossless : {false, true}) {
    Buffer buffer;
    std::vector<std::pair<std::size_t, std::int32_t>> held;
    int quick = 0, refused = 0;
    for (int step = 0; step < 20'000; ++step) {
      const auto from = static_cast<std::size_t>(random() % 4);
      Ingress& ingress = buffer.ingresses[from];
      const auto bytes = static_cast<std::int32_t>(64 + random() % 1'400);
      if (random() % 2 == 0 && !held.empty()) {
        const std::size_t place = random() % held.size();
        release(buffer.view(), buffer.ingresses[held[place].first], held[place].second);
        held[place] = held.back();
        held.pop_back();
      } else {
        const Verdict verdict = buffer.judged(from, bytes, lossless);
        if (admits_at_once(buffer.view(), ingress, buffer.queue, bytes, lossless)) {
          REQUIRE(verdict.admission == Admission::kShared);
          REQUIRE_FALSE(verdict.pause);
          held.emplace_back(from, bytes);
          ++quick;
        } else if (verdict.admission == Admission::kShared) {
          occupy(buffer.view(), ingress, bytes);
          note_largest(ingress);
          held.emplace_back(from, bytes);
        } else {
          ++refused;
        }
      }
      REQUIRE(buffer.node.shared_used == buffer.shared_by_ingresses());
      REQUIRE(buffer.node.shared_used <= buffer.node.shared_bytes);
    }
    CHECK(quick > 1'000);
    CHECK(refused > 100);
    for (const auto& [from, bytes] : held) release(buffer.view(), buffer.ingresses[from], bytes);
    CHECK(buffer.node.shared_used == 0);
  }
}

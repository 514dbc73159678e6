/// The digest of chosen header fields, from which a switch's hash is made (paths/hash_function.hpp).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/crc.hpp"
#include "base/ids.hpp"
#include "rows/fabric.hpp"

namespace weftwork {

/// The header fields of one packet of a queue pair, as a switch reads them.
struct HashInput {
  std::uint32_t source_ip, destination_ip;
  std::uint16_t source_port, in_port;
  std::uint32_t destination_qp;
};

inline constexpr std::uint32_t kFirstAddress = 0x0A000000;  // chosen: 10.0.0.0/8 holds 16 million NIC ports
/// The address of a NIC port.
inline std::uint32_t address_of(PortId port) {
  return kFirstAddress + static_cast<std::uint32_t>(port.value);
}

inline constexpr std::uint16_t kRocePort = 4791;  // IANA; IBTA annex A17
inline constexpr std::uint8_t kUdp = 17;

struct FieldBytes {
  std::array<std::uint8_t, 20> data{};
  std::size_t count = 0;

  void put(std::uint32_t value, int width) {
    for (int shift = 8 * (width - 1); shift >= 0; shift -= 8) data[count++] = static_cast<std::uint8_t>(value >> shift);
  }
};

inline FieldBytes field_bytes(std::uint32_t fields, const HashInput& input) {
  FieldBytes bytes;
  if ((fields & kSrcIp) != 0) bytes.put(input.source_ip, 4);
  if ((fields & kDstIp) != 0) bytes.put(input.destination_ip, 4);
  if ((fields & kProtocol) != 0) bytes.put(kUdp, 1);
  if ((fields & kSrcPort) != 0) bytes.put(input.source_port, 2);
  if ((fields & kDstPort) != 0) bytes.put(kRocePort, 2);
  if ((fields & kInPort) != 0) bytes.put(input.in_port, 2);
  if ((fields & kDestinationQp) != 0) bytes.put(input.destination_qp, 3);
  return bytes;
}

inline std::uint32_t digest(HashAlgorithm algorithm, std::uint32_t initial, const FieldBytes& bytes) {
  switch (algorithm) {
    case HashAlgorithm::kCrc32:
      return crc_reflected(detail::kCrc32, initial, bytes.data.data(), bytes.count);
    case HashAlgorithm::kMix:
      return crc_reflected(detail::kCrc32, 0, bytes.data.data(), bytes.count);
    case HashAlgorithm::kCrc32c:
      return crc_reflected(detail::kCrc32c, initial, bytes.data.data(), bytes.count);
    case HashAlgorithm::kCrc16Ccitt:
      return crc_ccitt(initial & 0xFFFFU, bytes.data.data(), bytes.count);
    case HashAlgorithm::kXor: {
      std::uint32_t value = initial;
      for (std::size_t i = 0; i < bytes.count; i += 4)  // the array is zero behind `count`
        value ^= static_cast<std::uint32_t>(bytes.data[i]) << 24U |
                 static_cast<std::uint32_t>(bytes.data[i + 1]) << 16U |
                 static_cast<std::uint32_t>(bytes.data[i + 2]) << 8U | bytes.data[i + 3];
      return value;
    }
  }
  return 0;
}

}  // namespace weftwork

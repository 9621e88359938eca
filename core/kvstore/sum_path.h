// SPDX-License-Identifier: Apache-2.0
// The ways in which processes sum an array, and the choice between them by its size.
#pragma once

#include <cstdint>
#include <string_view>

namespace mge {

enum class SumPath {
  // Each process sends its whole array to all others, and sums all elements. One round of messages.
  kWhole,
  // Each process sums one part of the elements, and sends it to all others. Two rounds, with 2 / ranks of the bytes. The same
  // bits as kWhole.
  kParts,
  // Parts within each host first, then those parts over the hosts, and back: four rounds, of which two cross the network. The
  // order of the additions is another one.
  kHosts,
};
std::string_view Name(SumPath path);

// The processes of a group. All hosts have the same number of them.
struct GroupShape {
  uint32_t ranks = 1, ranks_per_host = 1;
  uint32_t hosts() const { return ranks / ranks_per_host; }
};

// The costs of messages, in seconds.
struct MessageCosts {
  double round;    // from the end of a message until its receiver knows of it
  double message;  // for each message that a process sends or receives
  double byte;     // for each byte: of a process within a host, of the adapter of a host between hosts
};
struct TransportCosts {
  MessageCosts local, network;
  double summed_byte;  // for each byte that a process adds
};

// Measured within a host with two cores, by shared memory. The network is assumed: TCP over adapters of 25 Gbit/s.
inline constexpr TransportCosts kTransportCosts = {.local = {.round = 20e-6, .message = 2e-6, .byte = 0.2e-9},
                                                   .network = {.round = 50e-6, .message = 5e-6, .byte = 0.32e-9},
                                                   .summed_byte = 0.1e-9};

// Returns the time of a sum of arrays with so many bytes, in seconds.
double TimeOfSum(SumPath path, const GroupShape& group, double bytes, const TransportCosts& costs);

// Returns the fastest way. On one host, kHosts is none.
SumPath FastestSumPath(const GroupShape& group, double bytes, const TransportCosts& costs = kTransportCosts);

}  // namespace mge

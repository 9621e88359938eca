// SPDX-License-Identifier: Apache-2.0
// Claims an integer product or convolution with the nodes that follow it in quantized models: Cast, Mul by a scale, Add of a
// bias, QuantizeLinear.
#include "kernel_table.h"
#include "support/int8_parameters.h"
#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

void FindGroups(const Pattern& pattern, ClaimList& claims) {
  for (int i = 0; i < pattern.graph().node_count(); ++i) {
    const Node n = pattern.node(i);
    const bool matrices = n.Is("MatMulInteger");
    if ((!matrices && !n.Is("ConvInteger")) || HasOwnMeaning(n) || !n.has_output(0)) continue;
    const Value y = n.output(0);
    if (!y.is_static() || !n.input(1).is_static() || y.elements() == 0 || n.input(1).rank() < 2) continue;
    const ChannelAxis axis = matrices ? ChannelAxis::kLast : ChannelAxis::kSecond;
    const int64_t columns = n.input(1).dim(matrices ? -1 : 0);
    std::vector<int32_t> nodes = {i};
    // Each node would write and read the product. The factor makes the group win over a chain of the elementwise nodes.
    const double each = 1.2 * (0.1 + StreamUs(2.0 * 4.0 * static_cast<double>(y.elements())));
    double saved = 0;
    Int8Step step = Int8Step::kSums;
    for (int last = i, next = pattern.Next(i); next >= 0; last = next, next = pattern.Next(next)) {
      if (!FollowsInt8(pattern.node(next), pattern.node(last).output_id(0), axis, columns, step)) break;
      nodes.push_back(next);
      saved += each;
      if (step != Int8Step::kCast) claims.Offer("int8_epilogue", nodes, saved);
    }
  }
}

}  // namespace

MGE_CPU_CLAIM(int8_epilogue) = FindGroups;

}  // namespace mge::cpu

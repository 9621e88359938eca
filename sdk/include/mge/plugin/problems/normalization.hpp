// SPDX-License-Identifier: Apache-2.0
// Reads LayerNormalization, RMSNormalization, InstanceNormalization and GroupNormalization.
#pragma once

#include "mge/plugin/graph.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// Rows of n neighbouring elements, each with statistics of its own. A scale and a bias follow: for the first two operators one
// for each element of a row, for the others one for each channel.
struct Normalization {
  int64_t rows = 1, n = 1;
  int64_t channels = 1, groups = 1;  // of an image; its groups are rows. 1 if parameters belong to the elements of a row
  int64_t channel_elements = 1;      // of an image
  bool centred = true;               // subtracts the mean
  float epsilon = 0;

  int64_t group_channels() const { return channels / groups; }
};

// Checks that inputs first to last have the type of input 0 and `elements` elements.
inline Result CheckParameters(const Node& node, int first, int last, int64_t elements) {
  for (int k = first; k <= last; ++k) {
    if (!node.has_input(k)) continue;
    if (node.input(k).dtype() != node.input(0).dtype()) return {MGE_UNIMPLEMENTED, "parameters of another type"};
    if (static_cast<int64_t>(node.input(k).elements()) != elements) return {MGE_UNIMPLEMENTED, "parameters of another size"};
  }
  return {};
}

// Fails if scale or bias have another type than X or are broadcast, or if statistics are wanted in a type other than float32 (or
// float64 for float64).
inline Result ReadNormalization(const Node& node, Normalization* out) {
  const Value x = node.input(0);
  out->epsilon = node.Float("epsilon");
  out->centred = node.op() != "RMSNormalization";
  if (node.op() == "LayerNormalization" || node.op() == "RMSNormalization") {
    for (int d = 0; d < x.rank(); ++d) (d < node.Int("axis") ? out->rows : out->n) *= x.dim(d);
    if (Result r = CheckParameters(node, 1, 2, out->n); !r.ok()) return r;
  } else {
    if (x.rank() < 2) return {MGE_UNIMPLEMENTED, "needs a channel dimension"};
    out->channels = x.dim(1);
    out->groups = node.op() == "GroupNormalization" ? node.Int("num_groups") : out->channels;
    if (out->groups <= 0 || out->channels % out->groups) {
      return {MGE_UNIMPLEMENTED, "the groups do not divide the channels"};
    }
    for (int d = 2; d < x.rank(); ++d) out->channel_elements *= x.dim(d);
    out->rows = x.dim(0) * out->groups;
    out->n = out->group_channels() * out->channel_elements;
    if (Result r = CheckParameters(node, 1, 2, out->channels); !r.ok()) return r;
  }
  const mge_dtype statistics = x.dtype() == MGE_DTYPE_F64 ? MGE_DTYPE_F64 : MGE_DTYPE_F32;
  for (int o = 1; o < node.output_count(); ++o) {
    if (node.has_output(o) && node.output(o).dtype() != statistics) return {MGE_UNIMPLEMENTED, "statistics in another type"};
  }
  return {};
}

}  // namespace MGE_HIDDEN

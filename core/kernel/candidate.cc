// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/candidate.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>

#include "core/base/errors.h"
#include "core/base/lines.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/host_services.h"
#include "core/plugin/strategy.h"
#include "core/plugin/tables.h"
#include "fmt/format.h"
#include "mge/plugin/attributes.hpp"

namespace mge {
namespace {

constexpr size_t kMaxCandidates = 256;
constexpr size_t kMaxRefusals = 256;

std::string PrintableText(const mge_text& t) { return OneLine(CopyText(t, 256)); }

std::span<const int64_t> DimsOf(const mge_value& v) { return {v.dims, static_cast<size_t>(std::max(v.rank, 0))}; }

std::vector<mge_layout> CopyLayouts(const mge_layout* const* list, size_t count) {
  std::vector<mge_layout> out(count, PlainLayout());
  for (size_t i = 0; list && i < count; ++i) {
    if (!list[i]) continue;
    out[i] = Widen(*list[i]);
    out[i].struct_size = sizeof(mge_layout);
  }
  return out;
}

struct Collector {
  Device* device;
  const mge_problem* problem;
  const mge_constraints* constraints;
  CandidateList list = {};
  size_t unlisted = 0;  // number of refusals beyond kMaxRefusals
  Deferred deferred = {};

  void Drop(std::string id, std::string reason) {
    if (list.refused.size() >= kMaxRefusals) {
      ++unlisted;
      return;
    }
    list.refused.push_back({std::move(id), std::move(reason)});
  }

  void Add(const mge_candidate* given) {
    OwnedCandidate o;
    std::string fault = ReadCandidate(given, *problem, &o);
    if (o.id.empty()) o.id.assign(1, '?');
    if (list.offered.size() >= kMaxCandidates) fault = "too many candidates for one problem";
    if (fault.empty()) fault = WhyNotAllowed(o.attributes, constraints->require, constraints->forbid);
    if (fault.empty() && o.workspace > constraints->workspace_limit) {
      fault = fmt::format("needs {} bytes of workspace, the limit is {}", o.workspace, constraints->workspace_limit);
    }
    const mge_graph& g = *problem->graph;
    for (size_t i = 0; i < o.inputs.size() + o.outputs.size() && fault.empty(); ++i) {
      const bool input = i < o.inputs.size();
      const size_t k = input ? i : i - o.inputs.size();
      fault = WhyNotOpaque(input ? o.inputs[k] : o.outputs[k], *g.values[input ? g.inputs[k] : g.outputs[k]]);
    }
    if (!fault.empty()) return Drop(o.id, std::move(fault));
    list.offered.push_back(std::move(o));
  }

  // Returns "" if the layout is not opaque, or if the backend describes it correctly for this value.
  std::string WhyNotOpaque(const mge_layout& layout, const mge_value& v) const {
    if (layout.kind != MGE_LAYOUT_OPAQUE) return {};
    if (!device->layout_api()) return "it names an opaque layout, but its backend has no table 'layout'";
    mge_layout_info info = {};
    absl::Status described = DescribeLayout(*device, layout, static_cast<DType>(v.dtype), DimsOf(v), info);
    if (!described.ok()) return fmt::format("its opaque layout {}: {}", layout.opaque_id, ErrorTitle(described));
    if (info.bytes == layout.opaque_bytes) return {};
    return fmt::format("its layout {} takes {} bytes in its own description, but {} bytes in the candidate",
                       CopyText(info.name, 64), info.bytes, layout.opaque_bytes);
  }
};

}  // namespace

std::string ReadCandidate(const mge_candidate* given, const mge_problem& problem, OwnedCandidate* out) {
  if (!given || given->struct_size < offsetof(mge_candidate, input_layouts))
    return "a candidate is described by a struct that is NULL or too short";
  const mge_candidate c = Widen(*given);
  const mge_graph& g = *problem.graph;
  OwnedCandidate& o = *out;
  o.id = PrintableText(c.id);
  if (o.id.empty()) return "a candidate has no id";
  if (c.in_place_count > g.input_count * g.output_count || (c.in_place_count > 0 && !c.in_place))
    return fmt::format("lists {} in-place pairs", c.in_place_count);
  for (uint64_t i = 0; i < c.in_place_count; ++i) {
    if (c.in_place[i].input >= g.input_count || c.in_place[i].output >= g.output_count)
      return "an in-place pair names an operand that does not exist";
  }
  o.rank = c.rank;
  o.attributes = c.attributes;
  o.workspace = c.workspace_bound;
  o.cost_us = c.cost_us;
  o.token = c.token;
  o.inputs = CopyLayouts(c.input_layouts, g.input_count);
  o.outputs = CopyLayouts(c.output_layouts, g.output_count);
  o.in_place.assign(c.in_place, c.in_place + c.in_place_count);
  if (c.attributes & ~MGE_KERNEL_KNOWN_BITS) return "has attribute bits that this host does not know";
  if (!std::isfinite(c.cost_us)) {
    return fmt::format("estimates {} us (cost_us), which is not finite; a negative estimate means unknown", c.cost_us);
  }
  for (size_t i = 0; i < o.inputs.size() + o.outputs.size(); ++i) {
    const bool input = i < o.inputs.size();
    const size_t k = input ? i : i - o.inputs.size();
    const mge_value& v = *g.values[input ? g.inputs[k] : g.outputs[k]];
    const mge_layout& layout = input ? o.inputs[k] : o.outputs[k];
    absl::Status sized = LayoutBytes(layout, ElementBytes(static_cast<DType>(v.dtype)), DimsOf(v)).status();
    if (!sized.ok()) return fmt::format("operand {}: {}", i, ErrorTitle(sized));
    if (!input || CanBeGiven(v, layout)) continue;
    return fmt::format("it wants input {}, the constant '{}', in the layout {}; constants are always given plain", i,
                       PrintableText(v.name), LayoutText(layout));
  }
  return {};
}

OwnedCandidate::Abi OwnedCandidate::ToAbi() const {
  Abi abi = {};
  for (const mge_layout& l : inputs) abi.inputs.push_back(&l);
  for (const mge_layout& l : outputs) abi.outputs.push_back(&l);
  mge_candidate& c = abi.candidate;
  c.struct_size = sizeof(c);
  c.rank = rank;
  c.id = {id.data(), id.size()};
  c.attributes = attributes;
  c.workspace_bound = workspace;
  c.cost_us = cost_us;
  c.token = token;
  c.input_layouts = abi.inputs.data();
  c.output_layouts = abi.outputs.data();
  c.in_place = in_place.data();
  c.in_place_count = in_place.size();
  return abi;
}

absl::StatusOr<CandidateList> EnumerateCandidates(Device& device, const mge_problem& problem,
                                                  const mge_constraints& constraints) {
  Collector collector = {.device = &device, .problem = &problem, .constraints = &constraints};
  const mge_kernel_api& api = device.kernel_api();
  mge_candidate_sink sink = {sizeof(mge_candidate_sink), 0, &collector,
                             [](void* self, const mge_candidate* c) {
                               auto& to = *static_cast<Collector*>(self);
                               to.deferred.Run([&] { to.Add(c); });
                             },
                             [](void* self, const mge_text* kernel, const mge_text* reason) {
                               auto& to = *static_cast<Collector*>(self);
                               to.deferred.Run([&] {
                                 if (kernel && reason) to.Drop(PrintableText(*kernel), PrintableText(*reason));
                               });
                             }};
  mge_error error;
  mge_code code =
      CallBackend(error, [&](mge_error* e) { return api.enumerate(device.handle(), &problem, &constraints, &sink, e); });
  collector.deferred.Rethrow();
  if (code != MGE_OK) return StatusOfBackend(code, error, fmt::format("device {}: enumerating kernels", device.name()));
  if (size_t n = collector.unlisted) {
    collector.list.refused.push_back(
        {fmt::format("{} others", n), fmt::format("only {} refusals per problem are kept", kMaxRefusals)});
  }
  return std::move(collector.list);
}

// Asks the backend's own strategy for the order. Fails if it fails, or does not return each index once.
static absl::Status OrderByBackend(Device& device, const mge_strategy_api& strategy, const mge_choice& choice,
                                   std::vector<uint32_t>& order) {
  mge_error error;
  const mge_code code =
      CallBackend(error, [&](mge_error* e) { return strategy.order(device.handle(), &choice, order.data(), e); });
  if (code != MGE_OK) return StatusOfBackend(code, error, fmt::format("device {}: ordering candidates", device.name()));
  std::vector<uint32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] == i) continue;
    return Fail(errors::kKernelFailed,
                fmt::format("for {} candidates it returned the order [{}]", order.size(), fmt::join(order, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int>> OrderCandidates(Device& device, const mge_problem& problem,
                                                 const std::vector<OwnedCandidate>& candidates, int32_t mode,
                                                 std::string* fault) {
  std::vector<int> order(candidates.size());
  std::iota(order.begin(), order.end(), 0);
  if (candidates.size() <= 1) return order;
  std::vector<OwnedCandidate::Abi> abis;
  std::vector<const mge_candidate*> pointers;
  std::vector<double> measured;
  for (const OwnedCandidate& c : candidates) {
    abis.push_back(c.ToAbi());
    measured.push_back(c.measured_us);
  }
  for (const OwnedCandidate::Abi& a : abis) pointers.push_back(&a.candidate);
  mge_choice choice = {sizeof(mge_choice), mode,
                       &problem,           pointers.data(),
                       pointers.size(),    mode == MGE_SELECT_PROFILE ? measured.data() : nullptr};
  std::vector<uint32_t> answer(candidates.size());
  const mge_strategy_api* strategy = OwnOrder(device.backend().plugin());
  if (strategy) {
    const absl::Status asked = OrderByBackend(device, *strategy, choice, answer);
    const int id = ErrorId(asked);
    if (id == errors::kOutOfMemory.id || id == errors::kDeviceLost.id) return asked;
    if (!asked.ok()) {
      *fault = PartsOf(asked).what.empty() ? ErrorTitle(asked) : PartsOf(asked).what;
      strategy = nullptr;
    }
  }
  if (!strategy) MGE_RETURN_IF_ERROR(OrderByHost(choice, answer.data()));
  order.assign(answer.begin(), answer.end());
  return order;
}

bool CanBeGiven(const mge_value& input, const mge_layout& layout) {
  if (!input.data || layout.kind == MGE_LAYOUT_ANY) return true;
  return LayoutBytes(layout, 1, DimsOf(input)).ok() && IsPlain(Canonical(layout, DimsOf(input)));
}

}  // namespace mge

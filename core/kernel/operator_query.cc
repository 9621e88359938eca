// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/operator_query.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/kernel/candidate.h"

namespace mge {
namespace {

// An mge_graph of one node. It has pointers into itself, so it is not copyable.
class OneNode {
 public:
  explicit OneNode(const OperatorShape& op)
      : ids_(static_cast<size_t>(op.inputs + op.outputs)), values_(ids_.size()), pointers_(ids_.size()) {
    std::iota(ids_.begin(), ids_.end(), 0);
    for (size_t i = 0; i < values_.size(); ++i) {
      mge_value& v = values_[i];
      v.struct_size = sizeof(v);
      v.dtype = MGE_DTYPE_F32;
      v.rank = 1;
      v.dims = &kOne;
      v.uses = 1;
      pointers_[i] = &v;
    }
    const size_t inputs = static_cast<size_t>(op.inputs);
    node_.struct_size = sizeof(node_);
    node_.version = op.version;
    node_.op = {op.name.data(), op.name.size()};
    node_.domain = {op.domain.data(), op.domain.size()};
    node_.inputs = ids_.data();
    node_.input_count = inputs;
    node_.outputs = ids_.data() + inputs;
    node_.output_count = ids_.size() - inputs;
    graph_.struct_size = sizeof(graph_);
    graph_.nodes = &node_pointer_;
    graph_.node_count = 1;
    graph_.values = pointers_.data();
    graph_.value_count = pointers_.size();
    graph_.inputs = node_.inputs;
    graph_.input_count = node_.input_count;
    graph_.outputs = node_.outputs;
    graph_.output_count = node_.output_count;
  }
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;
  const mge_graph* graph() const { return &graph_; }

 private:
  static constexpr int64_t kOne = 1;
  std::vector<int32_t> ids_;
  std::vector<mge_value> values_;
  std::vector<const mge_value*> pointers_;
  mge_node node_ = {};
  const mge_node* node_pointer_ = &node_;
  mge_graph graph_ = {};
};

}  // namespace

bool HasOperator(Device& device, const OperatorShape& op) {
  const OneNode node(op);
  const mge_problem problem = {sizeof(mge_problem), 1, node.graph(), nullptr, nullptr, 0};
  const mge_constraints all = {sizeof(mge_constraints), 0, 0, 0, std::numeric_limits<uint64_t>::max()};
  if (!device.usable() || !device.Open().ok()) return false;
  absl::StatusOr<CandidateList> list = EnumerateCandidates(device, problem, all);
  return list.ok() && !(list->offered.empty() && list->refused.empty());
}

std::vector<std::string> BackendsWithOperator(std::span<const std::shared_ptr<Device>> devices, const OperatorShape& op) {
  std::vector<std::string> out;
  for (const auto& device : devices) {
    const std::string name(device->backend().name());
    if (std::find(out.begin(), out.end(), name) == out.end() && HasOperator(*device, op)) out.push_back(name);
  }
  return out;
}

}  // namespace mge

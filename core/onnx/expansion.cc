// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/expansion.h"

#include <algorithm>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge::onnx {

ExpansionCounter::Content ExpansionCounter::ContentOf(std::span<const Bytes> nodes) const {
  Content out;
  std::unordered_map<const Function*, int64_t> calls;
  std::vector<Bytes> open(nodes.begin(), nodes.end());
  auto add_body = [&](Bytes graph) {
    WireReader reader(source_, "GraphProto", graph);
    while (reader.Next()) {
      if (reader.field() == field::graph::kNode) {
        open.push_back(reader.Message());
      } else {
        reader.Skip();
      }
    }
  };
  auto add_attribute = [&](Bytes attribute) {
    WireReader reader(source_, "AttributeProto", attribute);
    while (reader.Next()) {
      if (reader.field() == field::attribute::kGraph || reader.field() == field::attribute::kGraphs) {
        add_body(reader.Message());
      } else {
        reader.Skip();
      }
    }
  };
  while (!open.empty()) {
    std::string_view op, domain, overload;
    WireReader reader(source_, "NodeProto", open.back());
    open.pop_back();
    while (reader.Next()) {
      switch (reader.field()) {
        case field::node::kOpType: op = reader.Text(); break;
        case field::node::kDomain: domain = PlainDomain(reader.Text()); break;
        case field::node::kOverload: overload = reader.Text(); break;
        case field::node::kAttribute: add_attribute(reader.Message()); break;
        default: reader.Skip();
      }
    }
    ++out.nodes;
    auto called = functions_.find(Function::Key(domain, op, overload));
    if (called != functions_.end()) ++calls[&called->second];
  }
  out.calls.assign(calls.begin(), calls.end());
  return out;
}

// Goes down the calls with a stack of its own, since their depth is the model's.
void ExpansionCounter::Count(const Function& root) {
  struct Open {
    const Function* function;
    Content content;
    size_t next = 0;  // index of the call to look at
  };
  std::vector<Open> open;
  auto enter = [&](const Function& function) {
    if (sizes_.try_emplace(&function, 0).second) open.push_back({&function, ContentOf(function.nodes)});
  };
  enter(root);
  while (!open.empty()) {
    Open& top = open.back();
    if (top.next < top.content.calls.size()) {
      enter(*top.content.calls[top.next++].first);
      continue;
    }
    double size = static_cast<double>(top.content.nodes);
    for (const auto& [called, times] : top.content.calls) size += static_cast<double>(times) * sizes_[called];
    sizes_[top.function] = size;
    open.pop_back();
  }
}

absl::Status ExpansionCounter::Check(std::span<const Bytes> nodes, int64_t limit) {
  if (functions_.empty()) return absl::OkStatus();
  double total = 0, most = 0;
  const Function* largest = nullptr;
  for (const auto& [called, times] : ContentOf(nodes).calls) {
    Count(*called);
    total += static_cast<double>(times) * sizes_[called];
    if (sizes_[called] <= most) continue;
    most = sizes_[called];
    largest = called;
  }
  if (total <= static_cast<double>(limit)) return absl::OkStatus();
  return Fail(errors::kLimit, "the model becomes too large when its functions are inlined",
              {.what = fmt::format("its functions add {:.4g} nodes; the limit is {}; a call of '{}' adds {:.4g}", total,
                                   limit, largest->Title(), most),
               .where = source_.place,
               .fix = fmt::format("export the model again without the nested calls in '{}'", largest->Title())});
}

}  // namespace mge::onnx

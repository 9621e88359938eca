// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/unroll.h"

#include <algorithm>

#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kMaxNodes = 200000;  // of all iterations; a plan of more takes minutes

}  // namespace

absl::StatusOr<std::vector<ValueId>> Unrolled::Add(std::vector<ValueId> before, const std::vector<ValueId>& after) {
  nodes_ += body_.node_count();
  if (nodes_ > kMaxNodes) {
    return f_.Unsupported(fmt::format("the gradient of a loop with more than {} nodes in all its iterations", kMaxNodes));
  }
  for (const std::vector<ValueId>* list : {&std::as_const(states_), &after, &f_.captures()}) {
    before.insert(before.end(), list->begin(), list->end());
  }
  return f_.Inline(body_, before);
}

void Unrolled::Pass(const std::vector<ValueId>& outputs, size_t first) {
  std::copy_n(outputs.begin() + static_cast<std::ptrdiff_t>(first), states_.size(), states_.begin());
}

absl::Status RequireTensors(const FunctionBody& f, const Graph& body) {
  for (const std::vector<ValueId>* list : {&body.inputs(), &body.outputs()}) {
    for (ValueId v : *list) {
      if (body.value(v).kind != ValueKind::kTensor)
        return f.Unsupported("the gradient of a loop over sequences or optionals");
    }
  }
  return absl::OkStatus();
}

absl::Status StackResult(FunctionBody& f, int output, const std::vector<ValueId>& values, int64_t axis) {
  if (f.output(output) == kNone) return absl::OkStatus();
  if (values.empty()) return f.Unsupported("the gradient of a loop without an iteration");
  std::vector<ValueId> parts;
  for (ValueId v : values) parts.push_back(f.Add("Unsqueeze", {v, f.Integers({axis})}));
  f.Result(output, "Concat", std::move(parts), IntAttribute("axis", axis));
  return absl::OkStatus();
}

}  // namespace mge

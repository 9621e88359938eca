// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/recursion.h"

#include <memory>
#include <string>
#include <utility>

namespace mge {
namespace {

// More steps become a Scan, which the host drives: a plan of many nodes takes long to make.
constexpr int64_t kMaxUnrolled = 128;

}  // namespace

Recursion::Results Recursion::AddTo(FunctionBody& f) const {
  if (steps > kMaxUnrolled) {
    Graph body;
    ExpressionBuilder b(body, "step", f.dtype());
    Now now = {b, {}, {}, {}};
    Node scan;
    scan.op = "Scan";
    for (size_t i = 0; i < states.size(); ++i) now.states.emplace_back(b, body.AddInput("state", {}));
    for (size_t i = 0; i < sequences.size(); ++i) now.parts.emplace_back(b, body.AddInput("part", {}));
    for (size_t i = 0; i < constants.size(); ++i) {
      now.constants.emplace_back(b, body.AddInput("constant", {}));
      body.value(now.constants.back().id()).role = Role::kCapture;
    }
    for (const Term& t : step(now)) body.outputs().push_back(t.id());
    const size_t outputs = body.outputs().size();
    std::vector<ValueId> inputs = states;
    inputs.insert(inputs.end(), sequences.begin(), sequences.end());
    Attributes attrs = IntAttribute("num_scan_inputs", static_cast<int64_t>(sequences.size()));
    attrs.Set("scan_input_directions", Ints(sequences.size(), reversed));
    attrs.Set("scan_output_directions", Ints(outputs - states.size(), reversed));
    attrs.Set("body", GraphPtr(std::make_shared<Graph>(std::move(body))));
    const std::vector<ValueId> all = f.AddWithBody("Scan", std::move(inputs), constants, outputs, std::move(attrs));
    return {{all.begin(), all.begin() + static_cast<std::ptrdiff_t>(states.size())},
            {all.begin() + static_cast<std::ptrdiff_t>(states.size()), all.end()}};
  }

  const std::vector<int64_t> ones(static_cast<size_t>(steps), 1);
  std::vector<std::vector<ValueId>> parts;
  for (ValueId v : sequences) {
    parts.push_back(steps == 1 ? std::vector{v}
                               : f.Add("Split", {v, f.Integers(ones)}, ones.size(), IntAttribute("axis", 0)));
  }
  Now now = {f, {}, {}, {}};
  for (ValueId v : constants) now.constants.emplace_back(f, v);
  for (ValueId v : states) now.states.emplace_back(f, v);
  std::vector<std::vector<ValueId>> made;
  for (int64_t k = 0; k < steps; ++k) {
    const auto t = static_cast<size_t>(reversed ? steps - 1 - k : k);
    now.parts.clear();
    for (size_t i = 0; i < sequences.size(); ++i)
      now.parts.emplace_back(f, f.Add("Squeeze", {parts[i][t], f.Integers({0})}));
    const std::vector<Term> results = step(now);
    made.resize(results.size() - states.size(), std::vector<ValueId>(ones.size()));
    for (size_t i = 0; i < made.size(); ++i)
      made[i][t] = f.Add("Unsqueeze", {results[states.size() + i].id(), f.Integers({0})});
    now.states.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(states.size()));
  }
  Results out;
  for (const Term& t : now.states) out.states.push_back(t.id());
  for (const auto& list : made)
    out.sequences.push_back(steps == 1 ? list[0] : f.Add("Concat", list, IntAttribute("axis", 0)));
  return out;
}

}  // namespace mge

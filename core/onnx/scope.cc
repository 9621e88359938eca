// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/graph_reader.h"
#include "fmt/format.h"

namespace mge::onnx {

std::string GraphReader::UniqueName(Frame& frame, std::string_view name) {
  std::string out(name);
  auto [it, is_new] = frame.names.emplace(out, 2);
  int& count = it->second;  // continues at the last suffix, so that n equal names need O(n) steps
  while (!is_new) {
    out = fmt::format("{}_{}", name, count++);
    is_new = frame.names.emplace(out, 2).second;
  }
  return out;
}

absl::StatusOr<ValueId> GraphReader::NewValue(int frame, std::string_view name, Value value) {
  // Limits memory use: in a valid model, most nodes have only a few values.
  if (++values_ > 4 * model_.options.max_nodes) {
    return Fail(errors::kLimit, fmt::format("the model has more than {} values", 4 * model_.options.max_nodes),
                {.where = model_.source.place});
  }
  Frame& f = frames_[frame];
  value.name = UniqueName(f, name);
  return f.graph.AddValue(std::move(value));
}

std::pair<int, ValueId> GraphReader::Find(const Scope* scope, std::string_view name) const {
  for (; scope; scope = scope->parent) {
    if (auto it = scope->names.find(name); it != scope->names.end()) return {scope->frame, it->second};
  }
  return {-1, kNone};
}

absl::StatusOr<ValueId> GraphReader::Use(const Scope& scope, std::string_view name, std::string_view user) {
  if (name.empty()) return kNone;
  auto [frame, id] = Find(&scope, name);
  if (frame < 0) return Invalid(fmt::format("'{}' reads '{}', which nothing computes", user, name));
  int top = static_cast<int>(frames_.size()) - 1;
  while (id != kNone && frame < top) {
    ++frame;
    MGE_ASSIGN_OR_RETURN(id, Capture(frame, id));
  }
  return id;
}

absl::StatusOr<ValueId> GraphReader::Capture(int frame, ValueId outer) {
  if (auto it = frames_[frame].inner.find(outer); it != frames_[frame].inner.end()) return it->second;
  MGE_RETURN_IF_ERROR(CountExpansion(0));
  const Value& from = frames_[frame - 1].graph.value(outer);
  Value value;
  value.kind = from.kind;
  value.type = from.type;
  if (from.role == Role::kConstant) {
    value.role = Role::kConstant;
    value.constant = from.constant;
  } else {
    value.role = Role::kCapture;
    frames_[frame].captures.push_back(outer);
  }
  std::string name = from.name;
  MGE_ASSIGN_OR_RETURN(ValueId id, NewValue(frame, name, std::move(value)));
  frames_[frame].inner[outer] = id;
  return id;
}

absl::Status GraphReader::CountExpansion(int64_t bytes) {
  // Inlined nodes are decoded again for every call, so their bytes are limited too.
  int64_t max_bytes = static_cast<int64_t>(model_.source.bytes.size()) + (int64_t{256} << 20);
  expanded_bytes_ += bytes;
  if (++expansions_ <= model_.options.max_expansions && expanded_bytes_ <= max_bytes) return absl::OkStatus();
  return Fail(errors::kLimit, "the model becomes too large when its functions are inlined",
              {.what = fmt::format("the limits are {} nodes and {} bytes", model_.options.max_expansions, max_bytes),
               .where = model_.source.place});
}

}  // namespace mge::onnx

// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/problem_key.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace mge {
namespace {

// The version of the checks in measure.h. Times that were measured with another version are not used.
constexpr int64_t kChecks = 3;

constexpr uint64_t kMaxConstantBytes = 4096;  // size limit of a list of integers that is not a weight
// Returns true if a kernel may be chosen by the value of a constant: axes, pads, or a single number such as an exponent.
// Longer lists, and more than one float, are weights.
bool DecidesByValue(const mge_value& v) {
  const DType dtype = static_cast<DType>(v.dtype);
  return v.data &&
         v.data_bytes <= (kFloating.Contains(dtype) ? static_cast<uint64_t>(ElementBytes(dtype)) : kMaxConstantBytes);
}

// A writer of bytes to hash. Different data give different bytes: numbers are little-endian, texts and lists follow their
// lengths.
class KeyWriter {
 public:
  void Number(int64_t n) {
    char bytes[8];
    for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(static_cast<uint64_t>(n) >> (8 * i));
    bytes_.append(bytes, sizeof(bytes));
  }
  void Raw(const void* data, uint64_t size) {
    Number(static_cast<int64_t>(size));
    if (size) bytes_.append(static_cast<const char*>(data), size);
  }
  void Text(std::string_view text) { Raw(text.data(), text.size()); }
  void Text(const mge_text& text) { Raw(text.data, text.size); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

void Write(KeyWriter& w, const mge_layout& l) {
  w.Number(l.kind);
  if (l.kind == MGE_LAYOUT_OPAQUE) w.Number(static_cast<int64_t>(l.opaque_id));
  if (l.kind != MGE_LAYOUT_PERMUTED) return;
  for (int i = 0; i < l.rank; ++i) w.Number(l.perm[i]);
  for (int i = 0; i < l.block_count; ++i) {
    w.Number(l.block_axis[i]);
    w.Number(l.block_size[i]);
  }
}

void Write(KeyWriter& w, const mge_value& v, bool shapes = true) {
  w.Number(v.dtype);
  w.Number(v.rank);
  for (int i = 0; shapes && i < v.rank; ++i) w.Number(v.dims[i]);
  w.Number(v.data != nullptr);
  if (DecidesByValue(v)) w.Raw(v.data, v.data_bytes);
  w.Number(v.layout != nullptr);
  if (v.layout) Write(w, *v.layout);
}

void Write(KeyWriter& w, const mge_attr& a) {
  w.Text(a.name);
  w.Number(a.type);
  switch (a.type) {
    case MGE_ATTR_INT: return w.Number(a.i);
    case MGE_ATTR_FLOAT: return w.Number(std::bit_cast<int64_t>(a.f));
    case MGE_ATTR_TEXT: return w.Text(a.text);
    case MGE_ATTR_INTS: return w.Raw(a.ints, a.count * sizeof(int64_t));
    case MGE_ATTR_FLOATS: return w.Raw(a.floats, a.count * sizeof(float));
    default: return;
  }
}

void Write(KeyWriter& w, const mge_node& n) {
  w.Text(n.op);
  w.Text(n.domain);
  w.Number(n.version);
  w.Raw(n.inputs, n.input_count * sizeof(int32_t));
  w.Raw(n.outputs, n.output_count * sizeof(int32_t));
  std::vector<const mge_attr*> attrs(n.attrs, n.attrs + n.attr_count);
  std::sort(attrs.begin(), attrs.end(), [](const mge_attr* a, const mge_attr* b) {
    return std::string_view(a->name.data, a->name.size) < std::string_view(b->name.data, b->name.size);
  });
  w.Number(static_cast<int64_t>(attrs.size()));
  for (const mge_attr* a : attrs) Write(w, *a);
}

std::string Hash(const std::string& bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

std::string InWords(const mge_problem& problem) {
  const mge_graph& g = *problem.graph;
  std::string out;
  for (uint64_t i = 0; i < g.node_count; ++i) {
    const mge_text& op = g.nodes[i]->op;
    if (i) out += '+';
    out.append(op.data, op.size);
  }
  for (uint64_t i = 0; i < g.input_count; ++i) {
    const mge_value& v = *g.values[g.inputs[i]];
    out += fmt::format(" {}{}", DTypeName(static_cast<DType>(v.dtype)),
                       ShapeText(std::span(v.dims, static_cast<size_t>(std::max(v.rank, 0)))));
  }
  return out + fmt::format(" with {} thread{}", problem.threads, problem.threads == 1 ? "" : "s");
}

}  // namespace

ProblemKey KeyOf(const Device& device, const mge_problem& problem, uint64_t require, uint64_t forbid) {
  const mge_graph& g = *problem.graph;
  const DeviceDescription& d = device.description();
  KeyWriter w;
  w.Text("mge.problem/1");
  w.Text(device.backend().name());
  w.Text(d.class_name);
  w.Text(d.device_class.empty() ? d.name : d.device_class);
  w.Text(device.kernel_api().set_version);
  w.Number(problem.threads);
  w.Number(static_cast<int64_t>(g.value_count));
  for (uint64_t i = 0; i < g.value_count; ++i) Write(w, *g.values[i]);
  w.Number(static_cast<int64_t>(g.node_count));
  for (uint64_t i = 0; i < g.node_count; ++i) Write(w, *g.nodes[i]);
  w.Raw(g.inputs, g.input_count * sizeof(int32_t));
  w.Raw(g.outputs, g.output_count * sizeof(int32_t));
  for (uint64_t i = 0; problem.write_modes && i < g.output_count; ++i) w.Number(problem.write_modes[i]);
  if (problem.alias_count) w.Raw(problem.aliases, problem.alias_count * sizeof(mge_in_place));
  for (uint64_t i = 0; i < g.value_count; ++i) {
    if (g.values[i]->role == MGE_ROLE_STATE) w.Number(static_cast<int64_t>(i));
  }
  ProblemKey key = {.choice = Hash(w.bytes()), .timing = {}, .text = InWords(problem)};
  w.Number(kChecks);
  w.Number(static_cast<int64_t>(require));
  w.Number(static_cast<int64_t>(forbid));
  w.Text(device.backend().version());
  w.Text(device.backend().build());
  w.Text(d.driver);
  key.timing = Hash(w.bytes());
  return key;
}

std::string FamilyOf(const Device& device, const mge_problem& problem, const std::string& candidate) {
  const mge_graph& g = *problem.graph;
  KeyWriter w;
  w.Text(device.name());
  w.Text(candidate);
  w.Number(problem.threads);
  for (uint64_t i = 0; i < g.value_count; ++i) {
    const mge_value& v = *g.values[i];
    Write(w, v, /*shapes=*/false);
    w.Number(static_cast<int64_t>(reinterpret_cast<uintptr_t>(v.data)));
    w.Number(v.role == MGE_ROLE_STATE);
  }
  for (uint64_t i = 0; i < g.node_count; ++i) Write(w, *g.nodes[i]);
  w.Raw(g.inputs, g.input_count * sizeof(int32_t));
  w.Raw(g.outputs, g.output_count * sizeof(int32_t));
  if (problem.write_modes) w.Raw(problem.write_modes, g.output_count * sizeof(int32_t));
  w.Raw(problem.aliases, problem.alias_count * sizeof(mge_in_place));
  return w.bytes();
}

}  // namespace mge

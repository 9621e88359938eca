// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/timing_request.h"

#include <charconv>
#include <cstring>
#include <type_traits>

#include "core/base/errors.h"
#include "core/base/lines.h"
#include "core/ops/op.h"
#include "fmt/format.h"
#include "mge/mge.h"

namespace mge {
namespace {

// The first bytes of a request.
std::string Head() {
  return fmt::format("mge-worker/1 {}.{}.{} {:x}\n", MGE_VERSION_MAJOR, MGE_VERSION_MINOR, MGE_VERSION_PATCH,
                     sizeof(TimingRequest));
}

// Fields() below lists the fields once, for both directions.
class RequestWriter {
 public:
  std::string out;

  void Raw(const void* data, size_t bytes) { out.append(static_cast<const char*>(data), bytes); }
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(T& number) { Raw(&number, sizeof(number)); }
  void operator()(std::string& text) {
    size_t size = text.size();
    (*this)(size);
    Raw(text.data(), size);
  }
  template <typename T>
  size_t Size(const T& list) {
    size_t size = list.size();
    (*this)(size);
    return size;
  }
  void Constant(Tensor& tensor) {
    const absl::StatusOr<Tensor> held = tensor.Held();
    Raw(held.ok() ? held->data() : tensor.data(), static_cast<size_t>(tensor.bytes()));  // data() records the error
  }
  static constexpr bool kReads = false;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool ok = true;
  bool AtEnd() const { return rest_.empty(); }

  void Raw(void* data, size_t bytes) {
    ok = ok && bytes <= rest_.size();
    if (!ok) return;
    std::memcpy(data, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
  }
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(T& number) { Raw(&number, sizeof(number)); }
  void operator()(std::string& text) {
    text.resize(Size(text));
    Raw(text.data(), text.size());
  }
  // Each element takes at least one byte, so a list is never longer than the rest.
  template <typename T>
  size_t Size(const T&) {
    size_t size = 0;
    (*this)(size);
    ok = ok && size <= rest_.size();
    return ok ? size : 0;
  }
  void Constant(Tensor& tensor) {
    absl::StatusOr<Tensor> made = Tensor::Create(tensor.dtype(), tensor.shape());
    ok = ok && made.ok() && static_cast<uint64_t>(made->bytes()) <= rest_.size();
    if (!ok) return;
    tensor = *std::move(made);
    Raw(tensor.mutable_data(), static_cast<size_t>(tensor.bytes()));
  }
  static constexpr bool kReads = true;

 private:
  std::string_view rest_;
};

template <typename A, typename T>
void Numbers(A& a, T& list) {
  if (const size_t size = a.Size(list); A::kReads) list.resize(size);
  for (auto& number : list) a(number);
}

template <typename A, typename T, typename F>
void List(A& a, std::vector<T>& list, F field) {
  if (const size_t size = a.Size(list); A::kReads) list.resize(size);
  for (T& element : list) field(element);
}

template <typename A>
void Texts(A& a, std::vector<std::string>& list) {
  List(a, list, [&](std::string& text) { a(text); });
}

template <typename A, size_t kIndex>
void VisitAlternative(A& a, size_t index, AttributeValue& value) {
  if (index != kIndex) return;
  if constexpr (A::kReads) value.emplace<kIndex>();
  auto& field = *std::get_if<kIndex>(&value);
  using T = std::remove_cvref_t<decltype(field)>;
  if constexpr (std::is_same_v<T, mge::Texts>) {
    Texts(a, field);
  } else if constexpr (std::is_same_v<T, Ints> || std::is_same_v<T, Floats>) {
    Numbers(a, field);
  } else {
    a(field);
  }
}

// A backend sees no other kinds of attributes (VisibleToBackends).
template <typename A>
void Attribute(A& a, AttributeValue& value) {
  size_t index = value.index();
  a(index);
  [&]<size_t... kIndex>(std::index_sequence<kIndex...>) { (VisitAlternative<A, kIndex>(a, index, value), ...); }
  (std::make_index_sequence<6>());
}

template <typename A>
void Fields(A& a, Value& v) {
  a(v.name);
  a(v.type.dtype);
  Numbers(a, v.type.dims);
  a(v.role);
  v.type.has_rank = true;
  if (v.role != Role::kConstant) return;
  if constexpr (A::kReads) v.constant = Tensor::View(v.type.dtype, v.type.dims, nullptr, nullptr);
  a.Constant(v.constant);
}

template <typename A>
void Fields(A& a, Node& n) {
  a(n.op);
  a(n.domain);
  a(n.name);
  a(n.version);
  Numbers(a, n.inputs);
  Numbers(a, n.outputs);
  std::vector<std::pair<std::string, AttributeValue>> attrs(n.attrs.begin(), n.attrs.end());
  List(a, attrs, [&](auto& attr) {
    a(attr.first);
    Attribute(a, attr.second);
  });
  if constexpr (A::kReads) {
    for (auto& [name, value] : attrs) n.attrs.Set(std::move(name), std::move(value));
  }
}

template <typename A>
void Fields(A& a, TimingRequest& r) {
  Texts(a, r.plugin_directories);
  List(a, r.settings, [&](auto& pair) {
    a(pair.first);
    a(pair.second);
  });
  a(r.device);
  a(r.key);
  a(r.threads);
  a(r.require);
  a(r.forbid);
  a(r.workspace_limit);
  a(r.seconds);
  a(r.bytes);
  Texts(a, r.offered);
  Texts(a, r.measured);
  std::vector<Value> values;
  std::vector<Node> nodes;
  for (ValueId v = 0; v < r.graph.value_count(); ++v) values.push_back(r.graph.value(v));
  for (NodeId n = 0; n < r.graph.node_count(); ++n) nodes.push_back(r.graph.node(n));
  List(a, values, [&](Value& v) { Fields(a, v); });
  List(a, nodes, [&](Node& n) { Fields(a, n); });
  Numbers(a, r.uses);
  if constexpr (A::kReads) {
    for (Value& v : values) r.graph.AddValue(std::move(v));
    const int32_t count = r.graph.value_count();
    for (Node& n : nodes) {
      for (const std::vector<ValueId>* ids : {&n.inputs, &n.outputs}) {
        for (ValueId v : *ids) a.ok = a.ok && v >= kNone && v < count;
      }
      n.def = FindOp(n.domain, n.op);
      a.ok = a.ok && n.def;
      if (a.ok) r.graph.AddNode(std::move(n));
    }
    a.ok = a.ok && r.uses.size() == values.size();
  }
}

constexpr std::string_view kWords[] = {"ready", "begin", "end", "result", "failed"};  // by TimingLine::Kind

}  // namespace

void SetGraph(const Graph& graph, const Group& group, TimingRequest& request) {
  const mge_graph& abi = *group.abi->graph();
  std::vector<int32_t> index(static_cast<size_t>(graph.value_count()), kNone);
  for (uint64_t i = 0; i < abi.value_count; ++i) {
    const ValueId id = group.abi->value(static_cast<int32_t>(i));
    const Value& v = graph.value(id);
    index[static_cast<size_t>(id)] =
        request.graph.AddValue({.name = v.name, .type = v.type, .role = v.role, .constant = v.constant});
    request.uses.push_back(static_cast<int32_t>(abi.values[i]->uses));
  }
  for (NodeId id : group.nodes) {
    Node node = graph.node(id);
    for (std::vector<ValueId>* ids : {&node.inputs, &node.outputs}) {
      for (ValueId& v : *ids) v = v == kNone ? kNone : index[static_cast<size_t>(v)];
    }
    request.graph.AddNode(std::move(node));
  }
}

std::string TimingRequestBytes(const TimingRequest& request) {
  RequestWriter writer;
  writer.out = Head();
  Fields(writer, const_cast<TimingRequest&>(request));  // a RequestWriter changes nothing
  return std::move(writer.out);
}

absl::StatusOr<TimingRequest> ReadTimingRequest(std::string_view bytes) {
  const std::string head = Head();
  if (!bytes.starts_with(head)) return Fail(errors::kUsage, "the request is of another version of MGE");
  bytes.remove_prefix(head.size());
  Reader reader(bytes);
  TimingRequest request;
  Fields(reader, request);
  if (!reader.ok || !reader.AtEnd()) return Fail(errors::kUsage, "the request is damaged");
  return request;
}

std::string TimingLineText(const TimingLine& line) {
  const Measurement& m = line.result;
  std::string out = fmt::format("mge\t{}\t{}", kWords[static_cast<size_t>(line.kind)], WithoutControl(line.id));
  if (line.kind == TimingLine::Kind::kResult) {
    out += fmt::format("\t{}\t{:d}{:d}{:d}\t{}", m.us, m.wrong, m.unchecked, m.kept, WithoutControl(m.fault));
  }
  return out + WithoutControl(line.error) + '\n';
}

bool ParseTimingLine(std::string_view text, TimingLine* line) {
  if (TakeUntil(text, '\t') != "mge") return false;
  const std::string_view word = TakeUntil(text, '\t');
  const auto* known = std::find(std::begin(kWords), std::end(kWords), word);
  if (known == std::end(kWords)) return false;
  *line = {.kind = static_cast<TimingLine::Kind>(known - kWords)};
  if (line->kind == TimingLine::Kind::kFailed) {
    line->error = text;
    return true;
  }
  line->id = TakeUntil(text, '\t');
  if (line->kind != TimingLine::Kind::kResult) return true;
  Measurement& m = line->result;
  const std::string_view us = TakeUntil(text, '\t'), flags = TakeUntil(text, '\t');
  if (std::from_chars(us.data(), us.data() + us.size(), m.us).ec != std::errc() || flags.size() != 3) return false;
  m.wrong = flags[0] == '1';
  m.unchecked = flags[1] == '1';
  m.kept = flags[2] == '1';
  m.fault = text;
  return true;
}

}  // namespace mge

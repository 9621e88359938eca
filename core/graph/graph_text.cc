// SPDX-License-Identifier: Apache-2.0
// Writes the text form; graph_parse.cc describes its grammar.
#include <cmath>

#include "core/base/narrow.h"
#include "core/graph/graph.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kShownElements = 64;

bool IsPlainName(const std::string& s) {
  if (s.empty() || s == "_") return false;
  for (unsigned char c : s) {
    if (!std::isalnum(c) && c != '_' && c != '.' && c != '/' && c != '-') return false;
  }
  return std::isalpha(static_cast<unsigned char>(s[0])) || s[0] == '_';
}

std::string Quoted(std::string_view s) {
  std::string out = "\"";
  for (unsigned char c : s) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

std::string Name(const std::string& s) { return IsPlainName(s) ? s : Quoted(s); }

std::string Number(double value, bool single) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string s = single ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

template <typename T, typename F>
std::string List(const T& items, F f) {
  std::string out;
  for (const auto& item : items) {
    if (!out.empty()) out += ", ";
    out += f(item);
  }
  return out;
}

std::string TensorText(const Tensor& t) {
  std::string out = fmt::format("{}{}<", DTypeName(t.dtype()), ShapeText(t.shape()));
  if (t.elements() > kShownElements) return out + "...>";
  DispatchFloating(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    out += List(t.Data<T>(), [](T v) { return Number(static_cast<double>(v), sizeof(T) <= 4); });
  });
  DispatchInteger(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    out += List(t.Data<T>(), [](T v) { return fmt::format("{}", v); });
  });
  if (t.dtype() == DType::kBool) out += List(t.Data<bool>(), [](bool b) { return b ? "true" : "false"; });
  if (t.dtype() == DType::kString) out += List(t.Data<std::string>(), [](const std::string& s) { return Quoted(s); });
  if (kNarrow.Contains(t.dtype())) {
    out += List(t.Data<uint8_t>(), [&](uint8_t e) {
      const float value = NarrowToFloat(t.dtype(), e);
      return kNarrowInteger.Contains(t.dtype()) ? fmt::format("{:g}", value) : Number(value, /*single=*/true);
    });
  }
  if (t.dtype() == DType::kC64 || t.dtype() == DType::kC128) out += "...";
  return out + ">";
}

class Writer {
 public:
  void Write(const Graph& graph, const std::string& indent);
  std::string out;

 private:
  void WriteNode(const Graph& graph, const Node& n, const std::string& indent);
  void WriteAttribute(const AttributeValue& value, const std::string& indent);
};

void Writer::WriteAttribute(const AttributeValue& value, const std::string& indent) {
  switch (value.index()) {
    case 0: out += fmt::format("{}", std::get<int64_t>(value)); break;
    case 1: out += Number(std::get<float>(value), true); break;
    case 2: out += Quoted(std::get<std::string>(value)); break;
    case 3: out += fmt::format("[{}]", List(std::get<Ints>(value), [](int64_t v) { return std::to_string(v); })); break;
    case 4: {
      const Floats& v = std::get<Floats>(value);
      out += v.empty() ? "floats[]" : fmt::format("[{}]", List(v, [](float f) { return Number(f, true); }));
      break;
    }
    case 5: {
      const Texts& v = std::get<Texts>(value);
      out += v.empty() ? "texts[]" : fmt::format("[{}]", List(v, [](const std::string& s) { return Quoted(s); }));
      break;
    }
    case 6: out += TensorText(std::get<Tensor>(value)); break;
    case 7: {
      const auto& v = std::get<std::vector<Tensor>>(value);
      out += v.empty() ? "tensors[]" : fmt::format("[{}]", List(v, TensorText));
      break;
    }
    default: {
      const GraphPtr& body = std::get<GraphPtr>(value);
      out += "graph {\n";
      if (body) Write(*body, indent + "  ");
      out += indent + "}";
    }
  }
}

void Writer::WriteNode(const Graph& graph, const Node& n, const std::string& indent) {
  auto name_of = [&](ValueId v) { return v == kNone ? std::string("_") : Name(graph.value(v).name); };
  out += indent + List(n.outputs, name_of) + (n.outputs.empty() ? "= " : " = ");
  if (!n.domain.empty()) out += Name(n.domain) + "::";
  out += Name(n.op);
  if (n.version) out += fmt::format("@{}", n.version);
  out += fmt::format("({})", List(n.inputs, name_of));
  if (!n.captures.empty()) out += fmt::format(" captures({})", List(n.captures, name_of));
  if (!n.attrs.written().empty()) {
    out += " {";
    bool first = true;
    for (const auto& [name, value] : n.attrs.written()) {
      if (!first) out += ", ";
      first = false;
      out += Name(name) + "=";
      WriteAttribute(value, indent);
    }
    out += "}";
  }
  if (!n.outputs.empty()) {
    out += " : " + List(n.outputs, [&](ValueId v) {
             return v == kNone ? std::string("_") : TypeText(graph.value(v).kind, graph.value(v).type);
           });
  }
  if (!n.name.empty()) out += " as " + Quoted(n.name);
  if (!n.device.empty()) out += " on " + Quoted(n.device);
  out += "\n";
}

void Writer::Write(const Graph& graph, const std::string& indent) {
  if (!graph.name.empty()) out += indent + "name " + Quoted(graph.name) + "\n";
  for (ValueId id : graph.inputs()) {
    const Value& v = graph.value(id);
    out += fmt::format("{}{} {} : {}\n", indent, v.role == Role::kCapture ? "capture" : "input", Name(v.name),
                       TypeText(v.kind, v.type));
  }
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& v = graph.value(id);
    if (v.dead) continue;
    if (v.role == Role::kConstant) out += fmt::format("{}const {} = {}\n", indent, Name(v.name), TensorText(v.constant));
    if (v.role == Role::kState) {
      out += fmt::format("{}state {} : {}\n", indent, Name(v.name), TypeText(v.kind, v.type));
    }
  }
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (!graph.node(id).dead) WriteNode(graph, graph.node(id), indent);
  }
  out += indent + "output " + List(graph.outputs(), [&](ValueId v) { return Name(graph.value(v).name); }) + "\n";
}

}  // namespace

std::string GraphText(const Graph& graph) {
  Writer writer;
  writer.Write(graph, "");
  return std::move(writer.out);
}

}  // namespace mge

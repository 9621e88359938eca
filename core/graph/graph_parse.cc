// SPDX-License-Identifier: Apache-2.0
// Parses the text form of a graph: one statement per line; '#' begins a comment.
//
//   name "g"
//   input x : float32[1,N,?]              also: capture, state. Types: ?, float32, seq float32[?], optional [seq] ..., [seq] map ...
//   const w = float32[2]<1, 2.5>          a single element is repeated for the whole shape
//   y, _ = Domain::Op@13(x, _, w) captures(a) {k=1, a=0.5, s="t", l=[1,2], t=int64[1]<3>, b=graph {
//     input z : float32
//     output z
//   }} : float32[1], _ as "node name" on "gpu0"
//   output y
//
// Names consist of letters, digits and _./- or are quoted; "_" is an absent value. Version, captures, attributes, types,
// "as" and "on" are optional. A value may be used before the line that produces it. Empty lists of types other than
// integers are written floats[], texts[] and tensors[].
#include <charconv>
#include <unordered_map>

#include "core/base/errors.h"
#include "core/base/narrow.h"
#include "core/graph/graph.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int kMaxBodyDepth = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Graph> ParseAll() {
    MGE_ASSIGN_OR_RETURN(Graph graph, ParseGraph(/*depth=*/0));
    if (at_ < text_.size()) return Error("'}' without a body");
    return graph;
  }

 private:
  using Names = std::unordered_map<std::string, ValueId>;

  absl::Status Error(std::string what) const {
    int line = 1;
    for (size_t i = 0; i < std::min(at_, text_.size()); ++i) line += text_[i] == '\n';
    return Fail(errors::kInvalidGraph, fmt::format("line {}: {}", line, what));
  }

  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) ++at_;
    if (at_ < text_.size() && text_[at_] == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    }
  }
  void SkipLines() {
    for (SkipBlanks(); at_ < text_.size() && text_[at_] == '\n'; SkipBlanks()) ++at_;
  }
  bool Take(std::string_view token) {
    SkipBlanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  static bool IsNameChar(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' || c == '-';
  }
  bool TakeWord(std::string_view word) {
    SkipBlanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    size_t end = at_ + word.size();
    if (end < text_.size() && IsNameChar(text_[end])) return false;
    at_ = end;
    return true;
  }
  absl::Status Expect(std::string_view token) {
    return Take(token) ? absl::OkStatus() : Error(fmt::format("expected '{}'", token));
  }

  absl::StatusOr<std::string> ParseQuoted() {
    MGE_RETURN_IF_ERROR(Expect("\""));
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c != '\\') {
        out += c;
        continue;
      }
      if (at_ >= text_.size()) break;
      c = text_[at_++];
      if (c == 'x') {
        int value = 0;
        if (at_ + 2 > text_.size() || std::from_chars(&text_[at_], &text_[at_] + 2, value, 16).ptr != &text_[at_] + 2) {
          return Error("bad \\x escape");
        }
        at_ += 2;
        out += static_cast<char>(value);
      } else {
        out += c;
      }
    }
    if (at_ >= text_.size()) return Error("a string has no closing quote");
    ++at_;
    return out;
  }

  absl::StatusOr<std::string> ParseName() {
    SkipBlanks();
    if (at_ < text_.size() && text_[at_] == '"') return ParseQuoted();
    size_t begin = at_;
    while (at_ < text_.size() && IsNameChar(text_[at_])) ++at_;
    if (at_ == begin) return Error("expected a name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  // Reads a word that may be a number, "inf", "true" and so on.
  std::string_view ScalarText() {
    SkipBlanks();
    size_t begin = at_;
    while (at_ < text_.size() && (IsNameChar(text_[at_]) || text_[at_] == '+')) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  template <typename T>
  absl::StatusOr<T> ParseNumber(std::string_view s) const {
    T value{};
    auto result = std::from_chars(s.data(), s.data() + s.size(), value);
    if (s.empty() || result.ec != std::errc() || result.ptr != s.data() + s.size()) {
      return Error(fmt::format("'{}' is not a number of this type", s));
    }
    return value;
  }

  static DType DTypeOf(std::string_view name) {
    for (int i = 1; i < kDTypeCount; ++i) {
      if (DTypeName(static_cast<DType>(i)) == name) return static_cast<DType>(i);
    }
    return DType::kUndefined;
  }

  absl::StatusOr<TensorType> ParseTensorType() {
    TensorType type;
    if (!Take("?")) {
      MGE_ASSIGN_OR_RETURN(std::string name, ParseName());
      type.dtype = DTypeOf(name);
      if (type.dtype == DType::kUndefined) return Error(fmt::format("'{}' is not an element type", name));
    }
    if (at_ >= text_.size() || text_[at_] != '[') return type;
    ++at_;
    type.has_rank = true;
    bool symbolic = false;
    while (!Take("]")) {
      if (!type.dims.empty()) MGE_RETURN_IF_ERROR(Expect(","));
      type.symbols.emplace_back();
      if (Take("?")) {
        type.dims.push_back(kUnknownDim);
        continue;
      }
      SkipBlanks();
      if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
        MGE_ASSIGN_OR_RETURN(int64_t dim, ParseNumber<int64_t>(ScalarText()));
        type.dims.push_back(dim);
      } else {
        MGE_ASSIGN_OR_RETURN(type.symbols.back(), ParseName());
        type.dims.push_back(kUnknownDim);
        symbolic = true;
      }
      if (type.dims.size() > kMaxRank) return Error("a type has too many dimensions");
    }
    if (!symbolic) type.symbols.clear();
    return type;
  }

  absl::Status ParseType(Value& value) {
    if (Take("_")) return absl::OkStatus();
    bool optional = TakeWord("optional");
    bool sequence = TakeWord("seq");
    bool map = !optional && TakeWord("map");
    value.kind = optional ? (sequence ? ValueKind::kOptionalSequence : ValueKind::kOptional)
                 : map    ? (sequence ? ValueKind::kMapSequence : ValueKind::kMap)
                          : (sequence ? ValueKind::kSequence : ValueKind::kTensor);
    MGE_ASSIGN_OR_RETURN(value.type, ParseTensorType());
    return absl::OkStatus();
  }

  template <typename T, typename F>
  absl::StatusOr<Tensor> ParseElements(Shape shape, F parse) {
    absl::StatusOr<Tensor> tensor =
        Tensor::Create(std::is_same_v<T, std::string> ? DType::kString : kDTypeOf<T>, std::move(shape));
    if (!tensor.ok()) return Error(ErrorTitle(tensor.status()));
    std::span<T> out = tensor->template MutableData<T>();
    size_t n = 0;
    while (!Take(">")) {
      if (n) MGE_RETURN_IF_ERROR(Expect(","));
      MGE_ASSIGN_OR_RETURN(T element, parse());
      if (n < out.size()) out[n] = element;
      ++n;
    }
    if (n == 1) {
      for (T& o : out) o = out[0];
    } else if (n != out.size()) {
      return Error(fmt::format("{} elements for a tensor of {} elements", n, out.size()));
    }
    return *std::move(tensor);
  }

  absl::StatusOr<Tensor> ParseTensor() {
    MGE_ASSIGN_OR_RETURN(TensorType type, ParseTensorType());
    if (!type.IsStatic()) return Error("the shape of a tensor must be known");
    MGE_RETURN_IF_ERROR(Expect("<"));
    absl::StatusOr<Tensor> out = Error("tensors of this type cannot be written as text");
    DispatchFloating(type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      out = ParseElements<T>(type.dims, [&]() -> absl::StatusOr<T> {
        MGE_ASSIGN_OR_RETURN(Compute<T> v, ParseNumber<Compute<T>>(ScalarText()));
        return T(v);
      });
    });
    DispatchInteger(type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      out = ParseElements<T>(type.dims, [&]() -> absl::StatusOr<T> { return ParseNumber<T>(ScalarText()); });
    });
    if (kNarrow.Contains(type.dtype)) {
      out = ParseElements<uint8_t>(type.dims, [&]() -> absl::StatusOr<uint8_t> {
        MGE_ASSIGN_OR_RETURN(float value, ParseNumber<float>(ScalarText()));
        return FloatToNarrow(type.dtype, value);
      });
      if (out.ok()) out = out->Within(type.dtype, out->shape(), out->data());
    }
    if (type.dtype == DType::kBool) {
      out = ParseElements<bool>(type.dims, [&]() -> absl::StatusOr<bool> {
        std::string_view s = ScalarText();
        if (s != "true" && s != "false") return Error("expected true or false");
        return s == "true";
      });
    }
    if (type.dtype == DType::kString) {
      out = ParseElements<std::string>(type.dims, [&] { return ParseQuoted(); });
    }
    return out;
  }

  bool AtTensor() {
    SkipBlanks();
    size_t end = at_;
    while (end < text_.size() && std::isalnum(static_cast<unsigned char>(text_[end]))) ++end;
    return end < text_.size() && text_[end] == '[' && DTypeOf(text_.substr(at_, end - at_)) != DType::kUndefined;
  }

  absl::StatusOr<AttributeValue> ParseScalar() {
    SkipBlanks();
    if (at_ < text_.size() && text_[at_] == '"') return ParseQuoted();
    if (AtTensor()) return ParseTensor();
    std::string_view s = ScalarText();
    if (s.find_first_of(".enia") == std::string_view::npos) return ParseNumber<int64_t>(s);
    return ParseNumber<float>(s);
  }

  template <typename T>
  absl::StatusOr<AttributeValue> ParseList(T first) {
    std::vector<T> items = {std::move(first)};
    while (!Take("]")) {
      MGE_RETURN_IF_ERROR(Expect(","));
      MGE_ASSIGN_OR_RETURN(AttributeValue next, ParseScalar());
      T* item = std::get_if<T>(&next);
      if (!item) return Error("a list must hold values of one type");
      items.push_back(std::move(*item));
    }
    return items;
  }

  absl::StatusOr<AttributeValue> ParseAttribute(int depth) {
    if (Take("floats[]")) return Floats{};
    if (Take("texts[]")) return Texts{};
    if (Take("tensors[]")) return std::vector<Tensor>{};
    if (TakeWord("graph")) {
      MGE_RETURN_IF_ERROR(Expect("{"));
      MGE_ASSIGN_OR_RETURN(Graph body, ParseGraph(depth + 1));
      MGE_RETURN_IF_ERROR(Expect("}"));
      return std::make_shared<const Graph>(std::move(body));
    }
    if (!Take("[")) return ParseScalar();
    if (Take("]")) return Ints{};
    MGE_ASSIGN_OR_RETURN(AttributeValue first, ParseScalar());
    if (auto* v = std::get_if<int64_t>(&first)) return ParseList(*v);
    if (auto* v = std::get_if<float>(&first)) return ParseList(*v);
    if (auto* v = std::get_if<std::string>(&first)) return ParseList(*v);
    return ParseList(std::get<Tensor>(first));
  }

  ValueId IdOf(Graph& graph, Names& names, const std::string& name) {
    auto [it, fresh] = names.try_emplace(name, kNone);
    if (fresh) it->second = graph.AddValue({.name = name});
    return it->second;
  }

  absl::StatusOr<ValueId> ParseRef(Graph& graph, Names& names) {
    SkipBlanks();
    bool quoted = at_ < text_.size() && text_[at_] == '"';
    MGE_ASSIGN_OR_RETURN(std::string name, ParseName());
    return !quoted && name == "_" ? kNone : IdOf(graph, names, name);
  }

  absl::Status ParseRefs(Graph& graph, Names& names, std::vector<ValueId>& out) {
    MGE_RETURN_IF_ERROR(Expect("("));
    while (!Take(")")) {
      if (!out.empty()) MGE_RETURN_IF_ERROR(Expect(","));
      MGE_ASSIGN_OR_RETURN(ValueId id, ParseRef(graph, names));
      out.push_back(id);
    }
    return absl::OkStatus();
  }

  absl::Status ParseNode(Graph& graph, Names& names, int depth) {
    Node node;
    while (!Take("=")) {
      if (!node.outputs.empty()) MGE_RETURN_IF_ERROR(Expect(","));
      MGE_ASSIGN_OR_RETURN(ValueId id, ParseRef(graph, names));
      if (id != kNone && (graph.value(id).producer != kNone || graph.value(id).role != Role::kTemporary)) {
        return Error(fmt::format("'{}' is produced twice", graph.value(id).name));
      }
      node.outputs.push_back(id);
    }
    MGE_ASSIGN_OR_RETURN(node.op, ParseName());
    if (Take("::")) {
      node.domain = std::move(node.op);
      MGE_ASSIGN_OR_RETURN(node.op, ParseName());
    }
    if (Take("@")) {
      MGE_ASSIGN_OR_RETURN(node.version, ParseNumber<int>(ScalarText()));
    }
    MGE_RETURN_IF_ERROR(ParseRefs(graph, names, node.inputs));
    if (TakeWord("captures")) MGE_RETURN_IF_ERROR(ParseRefs(graph, names, node.captures));
    if (Take("{")) {
      while (SkipLines(), !Take("}")) {
        if (node.attrs.size()) MGE_RETURN_IF_ERROR(Expect(","));
        SkipLines();
        MGE_ASSIGN_OR_RETURN(std::string name, ParseName());
        if (node.attrs.Has(name)) return Error(fmt::format("attribute '{}' is given twice", name));
        MGE_RETURN_IF_ERROR(Expect("="));
        MGE_ASSIGN_OR_RETURN(AttributeValue value, ParseAttribute(depth));
        node.attrs.Set(std::move(name), std::move(value));
      }
    }
    if (Take(":")) {
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (i) MGE_RETURN_IF_ERROR(Expect(","));
        Value ignored;
        MGE_RETURN_IF_ERROR(ParseType(node.outputs[i] == kNone ? ignored : graph.value(node.outputs[i])));
      }
    }
    if (TakeWord("as")) {
      MGE_ASSIGN_OR_RETURN(node.name, ParseQuoted());
    }
    if (TakeWord("on")) {
      MGE_ASSIGN_OR_RETURN(node.device, ParseQuoted());
    }
    graph.AddNode(std::move(node));
    return absl::OkStatus();
  }

  absl::Status ParseDeclaration(Graph& graph, Names& names, Role role) {
    MGE_ASSIGN_OR_RETURN(std::string name, ParseName());
    Value& v = graph.value(IdOf(graph, names, name));
    if (v.role != Role::kTemporary || v.producer != kNone) return Error(fmt::format("'{}' is declared twice", name));
    v.role = role;
    if (role == Role::kConstant) {
      MGE_RETURN_IF_ERROR(Expect("="));
      MGE_ASSIGN_OR_RETURN(v.constant, ParseTensor());
      v.type = {.dtype = v.constant.dtype(), .has_rank = true, .dims = v.constant.shape()};
      return absl::OkStatus();
    }
    if (role != Role::kState) graph.inputs().push_back(names[name]);
    return Take(":") ? ParseType(v) : absl::OkStatus();
  }

  absl::Status ParseStatement(Graph& graph, Names& names, int depth) {
    size_t begin = at_;
    constexpr std::pair<std::string_view, Role> kDeclarations[] = {
        {"input", Role::kInput}, {"capture", Role::kCapture}, {"const", Role::kConstant}, {"state", Role::kState}};
    for (auto [word, role] : kDeclarations) {
      if (TakeWord(word)) {
        SkipBlanks();
        if (at_ < text_.size() && text_[at_] != '=' && text_[at_] != ',') return ParseDeclaration(graph, names, role);
        at_ = begin;  // the word is the name of a value
      }
    }
    if (TakeWord("name")) {
      SkipBlanks();
      if (at_ < text_.size() && text_[at_] == '"') {
        MGE_ASSIGN_OR_RETURN(graph.name, ParseQuoted());
        return absl::OkStatus();
      }
      at_ = begin;
    }
    if (TakeWord("output")) {
      SkipBlanks();
      if (at_ >= text_.size() || (text_[at_] != '=' && text_[at_] != ',')) {
        while (at_ < text_.size() && text_[at_] != '\n') {
          MGE_ASSIGN_OR_RETURN(ValueId id, ParseRef(graph, names));
          if (id == kNone) return Error("an output cannot be absent");
          graph.outputs().push_back(id);
          if (!Take(",")) break;
        }
        return absl::OkStatus();
      }
      at_ = begin;
    }
    return ParseNode(graph, names, depth);
  }

  absl::StatusOr<Graph> ParseGraph(int depth) {
    if (depth > kMaxBodyDepth) return Error("bodies are nested too deeply");
    Graph graph;
    Names names;
    for (SkipLines(); at_ < text_.size() && text_[at_] != '}'; SkipLines()) {
      MGE_RETURN_IF_ERROR(ParseStatement(graph, names, depth));
      SkipBlanks();
      if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '}') return Error("expected the end of the line");
    }
    return graph;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<Graph> ParseGraphText(std::string_view text) {
  MGE_ASSIGN_OR_RETURN(Graph graph, Parser(text).ParseAll());
  MGE_RETURN_IF_ERROR(VerifyGraph(graph));
  return graph;
}

}  // namespace mge

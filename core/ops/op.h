// SPDX-License-Identifier: Apache-2.0
// How an operator is declared: one OpDef, alone in its file, holding schema, shape rule and reference evaluator.
//
//   // core/ops/relu.cc
//   MGE_OP(relu) = {.name = "Relu", .doc = "max(x, 0).",
//                   .inputs = {{"X", kNumeric}}, .outputs = {{"Y"}},
//                   .infer = SameTypeAsFirst, .eval = Eval, .in_place = {{0, 0}}, .traits = kElementwise};
//
// The table of all operators is derived from the files of this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/tensor.h"
#include "core/graph/graph.h"

namespace mge {

// A list with room for N entries, so that an OpDef is a constant without heap.
template <typename T, int N>
struct Few {
  T items[N] = {};
  int count = 0;
  constexpr Few() = default;
  constexpr Few(std::initializer_list<T> list) {
    for (const T& t : list) items[count++] = t;
  }
  constexpr const T* begin() const { return items; }
  constexpr const T* end() const { return items + count; }
  constexpr const T& operator[](int i) const { return items[i]; }
  constexpr int size() const { return count; }
};

enum class Arity { kRequired, kOptional, kVariadic };  // kVariadic: last only, zero or more further ones

struct Slot {
  std::string_view name;
  TypeSet types = kAnyType;             // of inputs; outputs are set by `infer`
  Arity arity = Arity::kRequired;
  ValueKind kind = ValueKind::kTensor;  // not checked if any_kind
  bool any_kind = false;
};

enum class AttrType { kInt, kFloat, kText, kInts, kFloats, kTexts, kTensor, kTensors, kGraph };

struct Attr {
  std::string_view name;
  AttrType type;
  bool required = false;
};

struct InPlacePair {
  int output;
  int input;  // the output may use the input's bytes if nothing reads them afterwards
};

// Facts about an operator that the planner uses without knowing its name.
enum Trait : uint32_t {
  kElementwise = 1,        // output element i depends on element i of the (broadcast) inputs only
  kIdentity = 2,           // output 0 is input 0, bit for bit
  kView = 4,               // output 0 has the bytes of input 0 under another shape
  kHostOnly = 8,           // control flow, sequences, strings, shape arithmetic: runs in the core, not on a backend
  kRandom = 16,            // not to be folded or merged
  kDynamicShape = 32,      // output sizes depend on the data even if the inputs' shapes are known
  kTranspose = 64,         // moves dimensions by attribute "perm" and nothing else
  kNoFold = 128,           // folding would only make constants bigger (ConstantOfShape, Expand, Tile...)
  kCommutative = 256,
};

// What a shape rule sees. Types of inputs may lack rank or sizes; rules then give what they know.
class InferContext {
 public:
  virtual ~InferContext() = default;
  virtual const Node& node() const = 0;
  const Attributes& attrs() const { return node().attrs; }
  int input_count() const { return static_cast<int>(node().inputs.size()); }
  int output_count() const { return static_cast<int>(node().outputs.size()); }
  bool has_input(int i) const { return i < input_count() && node().inputs[i] != kNone; }
  bool has_output(int i) const { return i < output_count() && node().outputs[i] != kNone; }
  virtual const TensorType& input(int i) const = 0;          // requires has_input(i)
  virtual ValueKind input_kind(int i) const = 0;
  // The input's elements where they are known now (constants; small integers computed from shapes).
  virtual /*nullable*/ const Tensor* constant(int i) const = 0;
  virtual void SetOutput(int i, TensorType type, ValueKind kind = ValueKind::kTensor) = 0;  // ignored if absent
  // The output's elements where they follow from types alone (Shape, Size). Ignored if absent or big.
  virtual void SetConstant(int i, Tensor value) = 0;
  // Types of a body's outputs for given types of its formal inputs (captures are known to the context).
  virtual absl::StatusOr<std::vector<ValueType>> InferBody(const Graph& body,
                                                           std::span<const ValueType> inputs) = 0;

  // A fault of this node: kInvalidNode with the node's name.
  absl::Status Invalid(std::string what) const;
  absl::Status Unsupported(std::string what) const;
};

// What a reference evaluator sees: plain host tensors. `infer` has just accepted their types and shapes (but for
// operators with bodies, on sequences or on optionals); everything that depends on data is checked here.
class EvalContext {
 public:
  virtual ~EvalContext() = default;
  virtual const Node& node() const = 0;
  const Attributes& attrs() const { return node().attrs; }
  int input_count() const { return static_cast<int>(node().inputs.size()); }
  int output_count() const { return static_cast<int>(node().outputs.size()); }
  bool has_input(int i) const { return i < input_count() && node().inputs[i] != kNone; }
  bool has_output(int i) const { return i < output_count() && node().outputs[i] != kNone; }
  virtual const HostValue& value(int i) const = 0;           // requires has_input(i)
  const Tensor& input(int i) const { return value(i).tensor; }
  // What `infer` found for output i; kUndefined if absent or unknown. For what the data cannot tell (a Loop without
  // a single iteration still has scan outputs of a type).
  virtual TensorType output_type(int i) const = 0;
  // Memory for output i, uninitialised. Call once for every present output. kOverBudget beyond the limit.
  virtual absl::StatusOr<Tensor*> Output(int i, DType dtype, Shape shape) = 0;
  // Sets an output to a finished value (sequences, optionals, shared tensors).
  virtual absl::Status SetOutput(int i, HostValue value) = 0;
  // Runs a body; `inputs` are its formal inputs, captures are bound by the context.
  virtual absl::StatusOr<std::vector<HostValue>> RunBody(const Graph& body, std::vector<HostValue> inputs) = 0;
  // kCancelled or kTimeout once the run should stop; to be asked in long loops.
  virtual absl::Status CheckStop() = 0;
  // Seed for random operators: the node's own attribute wins.
  virtual uint64_t seed() = 0;
  virtual HostAllocator& allocator() = 0;

  absl::Status Invalid(std::string what) const;
  absl::Status Unsupported(std::string what) const;
};

using InferFn = absl::Status (*)(InferContext&);
using EvalFn = absl::Status (*)(EvalContext&);
// Brings a node of an older operator set (node.version) into the newest form (attributes that became inputs, changed
// defaults). May add constants; adding a node would move `node`. Meaning that no newer form has is kept in attributes
// whose names begin with "_"; models may not use such names.
using UpgradeFn = absl::Status (*)(Graph&, Node&);

struct OpDef {
  std::string_view name;
  std::string_view domain = "";
  std::string_view doc = {};
  Few<Slot, 14> inputs = {};
  Few<Slot, 10> outputs = {};
  Few<Attr, 16> attrs = {};
  InferFn infer = nullptr;
  EvalFn eval = nullptr;
  UpgradeFn upgrade = nullptr;
  Few<InPlacePair, 2> in_place = {};
  uint32_t traits = 0;
  int since = 1;    // first operator set that has it
  int until = 999;  // last operator set that has it

  constexpr bool Is(Trait trait) const { return (traits & trait) != 0; }
  constexpr bool KeepsBytes() const { return Is(kView) || Is(kIdentity); }  // output 0 has the bytes of input 0
};

// Declares the operator of this file; the name is the file's.
#define MGE_OP(id)                 \
  extern const OpDef mge_op_##id;  \
  constexpr OpDef mge_op_##id

// All operators, by file name.
std::span<const OpDef* const> AllOps();

// The operator of that name; nullptr if there is none. "ai.onnx" means "".
/*nullable*/ const OpDef* FindOp(std::string_view domain, std::string_view name);

// Binds node.def, upgrades the node (once, and only if it has a version), and checks arity, attributes and input
// types against the schema.
// kUnsupportedOp (with the nearest name), kUnsupportedVersion, kUnsupportedType, kInvalidNode.
absl::Status BindNode(Graph& graph, NodeId node);

// The nearest of `known` to `name` by edit distance, or "" if nothing is near. For did-you-mean.
std::string NearestName(std::string_view name, std::span<const std::string> known);

// Runs the reference evaluator of one node on host values; no bodies, no budget. For tests and constant folding.
absl::StatusOr<std::vector<HostValue>> Evaluate(const Node& node, std::span<const HostValue> inputs,
                                                HostAllocator& allocator = UnlimitedHostAllocator());

// Infers types through a whole graph, in order. Input types are taken from the graph's values; known small
// integer values are propagated so that Reshape(x, Concat(Shape(x), ...)) gets a static shape.
absl::Status InferTypes(Graph& graph);

// "node 'conv1' (Conv)": the place for messages.
std::string NodePlace(const Node& node);

}  // namespace mge

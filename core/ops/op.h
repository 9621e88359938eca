// SPDX-License-Identifier: Apache-2.0
// Declares operators: one OpDef for each, with its schema, shape rule and reference evaluator. A source file declares one
// operator or a family of them.
//
//   // core/ops/operators/onnx/tensor/where.cc, in the namespace mge::op_where
//   MGE_OP(where) = {.name = "Where", .inputs = {{"condition", kBoolean}, {"X"}, {"Y"}}, ...};
//
//   // core/ops/operators/onnx/math/unary.cc, in the namespace mge::op_unary
//   constexpr OpDef kRows[] = {...};
//   MGE_OPS(unary) = kRows;
//
// The table of all operators (AllOps) is generated from the names of the files. OpDefs are immutable constants.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/tensor.h"
#include "core/graph/graph.h"

namespace mge {

class GradientContext;  // core/ops/gradient.h
class FunctionBody;     // core/ops/function_body.h

// A callback that returns an error if the run must stop. It is called before each node and in long loops. May be empty.
using StopCheck = std::function<absl::Status()>;

// The limit of nested bodies (Loop, If, Scan). Each level uses the stack of the thread.
inline constexpr int kMaxBodyDepth = 100;

// A list of at most N entries without heap memory, so that an OpDef is a compile-time constant.
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

enum class Arity { kRequired, kOptional, kVariadic };  // kVariadic: last slot only; it stands for zero or more values

struct Slot {
  std::string_view name;
  TypeSet types = kAnyType;  // inputs only; `infer` sets the types of outputs
  Arity arity = Arity::kRequired;
  ValueKind kind = ValueKind::kTensor;  // ignored if any_kind is true
  bool any_kind = false;
};

enum class AttrType : uint8_t { kInt, kFloat, kText, kInts, kFloats, kTexts, kTensor, kTensors, kGraph };

enum class Presence : uint8_t {
  kRequired,  // the model must set it
  kOptional,  // its absence has a meaning of its own, which the doc line tells
  kDefault,   // binding adds the default to a node that lacks it
  kNormal,    // `normalize` adds it to a node that lacks it, once the sizes on which it depends are known
};

// An attribute of an operator's nodes. Shape rules, evaluators and backends always find an attribute that has a default.
//
//   {"alpha", 0.01f, "the slope below 0"}                   has a default, which defines the type
//   {"kernel_shape", AttrType::kInts, Presence::kRequired, "the window's sizes"}
//   {"scale", AttrType::kFloat, Presence::kOptional, "absent: 1 / sqrt(size of a head)"}
//   AxisOf({"axis", -1, "the axis of the softmax"})         counts dimensions of input 0; type inference makes it positive
//   {"_axis", AttrType::kInt}                               of upgrade hooks: optional, not for models
struct Attr {
  std::string_view name = {};
  AttrType type = AttrType::kInt;
  Presence presence = Presence::kOptional;
  union {
    int64_t int_value;
    float float_value;
    const char* text_value;
    Few<int8_t, 4> ints_value;
  };
  const char* doc = "";    // one line for OPERATORS.md
  int8_t axis_of = kNone;  // the attribute is an axis, or a list of axes, of this input
  int8_t more_axes = 0;    // how many dimensions more than the input has that which the axis counts

  constexpr Attr() : int_value(0) {}
  constexpr Attr(std::string_view n, AttrType t, Presence p = Presence::kOptional, const char* d = "")
      : name(n), type(t), presence(p), int_value(0), doc(d) {}
  constexpr Attr(std::string_view n, int v, const char* d)
      : name(n), type(AttrType::kInt), presence(Presence::kDefault), int_value(v), doc(d) {}
  constexpr Attr(std::string_view n, float v, const char* d)
      : name(n), type(AttrType::kFloat), presence(Presence::kDefault), float_value(v), doc(d) {}
  constexpr Attr(std::string_view n, const char* v, const char* d)
      : name(n), type(AttrType::kText), presence(Presence::kDefault), text_value(v), doc(d) {}
  constexpr Attr(std::string_view n, Few<int8_t, 4> v, const char* d)
      : name(n), type(AttrType::kInts), presence(Presence::kDefault), ints_value(v), doc(d) {}

  constexpr bool required() const { return presence == Presence::kRequired; }
  constexpr bool has_default() const { return presence == Presence::kDefault; }
  AttributeValue DefaultValue() const;  // requires has_default()
};

constexpr Attr AxisOf(Attr attr, int input = 0, int more = 0) {
  attr.axis_of = static_cast<int8_t>(input);
  attr.more_axes = static_cast<int8_t>(more);
  return attr;
}

using InputList = Few<Slot, 18>;
using OutputList = Few<Slot, 10>;
using AttrList = Few<Attr, 20>;

struct InPlacePair {
  int output;
  int input;  // the output may reuse the input's memory if no later node reads the input
};

// Properties of an operator that the planner uses, so that it needs no operator names.
enum Trait : uint32_t {
  kElementwise = 1,    // output element i depends on element i of the (broadcast) inputs only
  kIdentity = 2,       // output 0 is input 0, bit for bit
  kView = 4,           // output 0 has the bytes of input 0 under another shape
  kHostOnly = 8,       // control flow, sequences, strings, shape arithmetic: runs in the core, never on a backend
  kRandom = 16,        // the planner neither folds nor merges such nodes
  kDynamicShape = 32,  // output sizes depend on the data even if the inputs' shapes are known
  kTranspose = 64,     // moves dimensions by attribute "perm" and nothing else
  kNoFold = 128,       // not folded: the constant would be larger than its source (Expand, Tile)
  kCommutative = 256,
  kAllReduce = 512,     // output i is input i, combined over all ranks by the attribute "reduction"
  kBroadcast = 1024,    // output i is input i of the rank that the attribute "root" names
  kAssigns = 2048,      // output 0 is written to the memory of input 0, the target. It gets the elements of input 1
  kAccumulates = 4096,  // output 0 is written to the memory of input 0, the target. It gets the sum of both inputs
  kExchange = 16384,    // output i is a tensor of the rank that the attribute "from" names
  kConvolution = 8192,  // a convolution: its fastest kernels may need much workspace
  kStartsSum = 32768,   // begins a sum over all ranks, which goes on after the node has ended; runs as early as it can
  kEndsSum = 65536,     // waits for a sum: output i is that of input i + 1 of the node that began it
  kGathers = 131072,    // output i > 0 has the parts of all ranks, of which input i is one
};

// The interface between type inference and a shape rule. The rank or sizes of an input may be unknown. The rule then
// sets the part of the output types that it can derive.
class InferContext {
 public:
  virtual ~InferContext() = default;
  virtual const Node& node() const = 0;
  const Attributes& attrs() const { return node().attrs; }
  int input_count() const { return static_cast<int>(node().inputs.size()); }
  int output_count() const { return static_cast<int>(node().outputs.size()); }
  bool has_input(int i) const { return i < input_count() && node().inputs[i] != kNone; }
  bool has_output(int i) const { return i < output_count() && node().outputs[i] != kNone; }
  virtual const TensorType& input(int i) const = 0;  // requires has_input(i)
  virtual ValueKind input_kind(int i) const = 0;
  // Returns the elements of input `i` if they are known at this time, else null. They are known for constants and for
  // small integers that follow from shapes. Requires has_input(i). The tensor is valid until the rule returns.
  virtual /*nullable*/ const Tensor* constant(int i) const = 0;
  virtual void SetOutput(int i, TensorType type, ValueKind kind = ValueKind::kTensor) = 0;  // ignored if absent
  // Sets the elements of an output that follow from types alone (Shape, Size). Ignored if output `i` is absent or large.
  virtual void SetConstant(int i, Tensor value) = 0;
  // Returns the types of a body's outputs for the given types of its formal inputs. The context supplies the captures'
  // types.
  virtual absl::StatusOr<std::vector<ValueType>> InferBody(const Graph& body, std::span<const ValueType> inputs) = 0;

  // Returns a kInvalidNode error that names the node. Unsupported() returns a kUnsupportedFeature error.
  absl::Status Invalid(std::string what) const;
  absl::Status Unsupported(std::string what) const;
};

// Data that an evaluator derives from the node alone, such as the table of a vocabulary. A step of a plan keeps it between
// runs. Several runs may use it at the same time.
struct PreparedData {
  std::mutex mutex;  // protects `data` until it is set
  std::shared_ptr<const void> data;
};

// The interface between a reference evaluator and the run. All tensors are in host memory. `infer` has already accepted
// the inputs' types and shapes, except for operators with bodies, sequences or optionals. The evaluator checks
// everything that depends on data. The context owns inputs and outputs; references to inputs are valid until the
// evaluator returns.
class EvalContext {
 public:
  virtual ~EvalContext() = default;
  virtual const Node& node() const = 0;
  const Attributes& attrs() const { return node().attrs; }
  int input_count() const { return static_cast<int>(node().inputs.size()); }
  int output_count() const { return static_cast<int>(node().outputs.size()); }
  bool has_input(int i) const { return i < input_count() && node().inputs[i] != kNone; }
  bool has_output(int i) const { return i < output_count() && node().outputs[i] != kNone; }
  virtual const HostValue& value(int i) const = 0;  // requires has_input(i)
  const Tensor& input(int i) const { return value(i).tensor; }
  // Returns the type that type inference found for output `i`; its dtype is kUndefined if that is unknown. An evaluator
  // needs it where no data defines the type, as in the scan outputs of a Loop with no iteration.
  virtual TensorType output_type(int i) const = 0;
  // Allocates output `i` without initialising it. The context owns the tensor. For an absent output, returns scratch
  // memory. Fails with kOverBudget beyond the memory limit. The evaluator must call Output() or SetOutput() for every
  // present output.
  virtual absl::StatusOr<Tensor*> Output(int i, DType dtype, Shape shape) = 0;
  // Sets an output to a complete value (sequence, optional, or tensor that shares memory).
  virtual absl::Status SetOutput(int i, HostValue value) = 0;
  // Runs a body on the values of its formal inputs. The context supplies the captures.
  virtual absl::StatusOr<std::vector<HostValue>> RunBody(const Graph& body, std::vector<HostValue> inputs) = 0;
  // Returns kCancelled or kTimeout if the run must stop. Evaluators call it regularly in long loops.
  virtual absl::Status CheckStop() = 0;
  // Returns the seed for a random operator: the node's own attribute if present.
  virtual uint64_t seed() = 0;
  virtual HostAllocator& allocator() = 0;
  // Returns the data that the step keeps, or null if the node is evaluated only once. Evaluators use Prepared().
  virtual /*nullable*/ PreparedData* prepared() { return nullptr; }

  absl::Status Invalid(std::string what) const;
  absl::Status Unsupported(std::string what) const;
};

using InferFn = absl::Status (*)(InferContext&);
using EvalFn = absl::Status (*)(EvalContext&);
// Converts a node of an older operator set (`node.version`) to the newest form, for example an attribute that became an
// input. It may add constants. It must not add nodes, because that would move `node`. A meaning that the newest form
// cannot express is kept in attributes whose names begin with "_"; models must not use such names.
using UpgradeFn = absl::Status (*)(Graph&, Node&);
// Returns how a node breaks a rule of ONNX, as far as declared types tell, and how it is computed nevertheless. Empty: it breaks
// none.
using DeviationFn = std::string (*)(const Graph&, const Node&);
// Writes the attributes of a node in the normal form that evaluators, rewrites and backends read: lists are complete, pads
// are explicit. Type inference calls it after `infer`, each time it runs. Leaves what depends on sizes that are not known.
// `attrs` is ctx.attrs().
using NormalizeFn = absl::Status (*)(InferContext& ctx, Attributes& attrs);
// Adds nodes that compute the gradients of a node's inputs (gradient.h).
using GradientFn = absl::Status (*)(GradientContext&);

// Adds nodes that compute the outputs of a node of a function operator. Returns false, and adds nothing, if more must be known
// about the inputs' types. The element types are always known.
using BodyFn = absl::StatusOr<bool> (*)(FunctionBody&);

struct OpDef {
  std::string_view name = {};
  std::string_view domain = "";
  std::string_view doc = {};
  InputList inputs = {};
  OutputList outputs = {};
  AttrList attrs = {};
  InferFn infer = nullptr;
  EvalFn eval = nullptr;
  UpgradeFn upgrade = nullptr;
  DeviationFn deviation = nullptr;
  NormalizeFn normalize = nullptr;
  GradientFn gradient = nullptr;  // null: the operator cannot be differentiated, or its outputs are not floating
  // Bit i: input i is a setting, like the scales of Resize, although it is floating. Constants that only settings read are no
  // parameters. `gradient` may set a gradient of it nevertheless.
  uint32_t fixed_inputs = 0;
  // Not null: a function operator. The planner replaces a node by the body's, unless every device has a kernel for the node.
  // `infer` and `eval` may be InferByBody and EvalByBody (function_body.h).
  BodyFn body = nullptr;
  // Not null: a body only for gradients. Its operators have gradient rules. `gradient` is ReplacementGradient, or a rule that
  // needs this body for some nodes; the body returns false for the others.
  BodyFn gradient_body = nullptr;
  Few<InPlacePair, 2> in_place = {};
  uint32_t traits = 0;
  int since = 1;    // first operator set that contains it
  int until = 999;  // last operator set that contains it
  // Problems with which kernels are tested: "(T[3,5], T[5,7]) {transA=1}". The form is described in core/conform/cases.h.
  // If there are none, they are derived from the inputs.
  Few<std::string_view, 12> examples = {};

  constexpr bool Is(Trait trait) const { return (traits & trait) != 0; }
  constexpr bool KeepsBytes() const { return Is(kView) || Is(kIdentity); }  // output 0 has the bytes of input 0
};

// The operators of a source file.
using OpRows = std::span<const OpDef>;

// Declares the operators of a source file. `id` must be the file's name without .cc.
#define MGE_OPS(id)                 \
  extern const OpRows mge_ops_##id; \
  constexpr OpRows mge_ops_##id
// Declares the only operator of a source file.
#define MGE_OP(id)                       \
  extern const OpDef mge_op_##id;        \
  MGE_OPS(id) = OpRows(&mge_op_##id, 1); \
  constexpr OpDef mge_op_##id

// Returns all operators, ordered by domain and name: those of ONNX come first.
std::span<const OpDef* const> AllOps();

// Returns the operator with this name, or null if there is none. The domain "ai.onnx" is the same as "".
/*nullable*/ const OpDef* FindOp(std::string_view domain, std::string_view name);

// Sets node.def and upgrades the node to the newest form. Then checks the number of inputs and outputs, the attributes
// and the input types against the schema, and adds the attributes that have a default. Upgrades only once, and only a node
// with a version. Fails with kUnsupportedOp (with the most similar name), kUnsupportedVersion, kUnsupportedType or
// kInvalidNode.
absl::Status BindNode(Graph& graph, NodeId node);

// Adds the attributes of the operator that have a default and that `attrs` lacks.
void AddDefaults(const OpDef& def, Attributes& attrs);

// Runs the reference evaluator of one node without a graph. Bodies are not supported. For tests and constant folding.
absl::StatusOr<std::vector<HostValue>> Evaluate(const Node& node, std::span<const HostValue> inputs,
                                                HostAllocator& allocator = UnlimitedHostAllocator());

// Infers the types of all values of a graph and of its bodies, and stores them in the graph. Binds nodes that are not
// bound. Small integers that follow from shapes are computed too, so that Reshape(x, Concat(Shape(x), ...)) gets a
// static shape. Fails if an operator's rule or a declared type is violated; the error names the node. Fails if `stop` does.
// Algorithm: infer_types.cc.
absl::Status InferTypes(Graph& graph, const StopCheck& stop = nullptr);

// Returns the place of a node for error messages, such as "node 'conv1' (Conv)".
std::string NodePlace(const Node& node);

}  // namespace mge

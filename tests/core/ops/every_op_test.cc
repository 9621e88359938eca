// SPDX-License-Identifier: Apache-2.0
// Properties of every operator of the table.
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

Tensor Ramp(DType dtype, const Shape& shape, double start, double step) {
  absl::StatusOr<Tensor> t = Tensor::Create(dtype, shape);
  EXPECT_TRUE(t.ok());
  DispatchFixedSize(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    double v = start;
    for (T& out : t->MutableData<T>()) {
      out = static_cast<T>(static_cast<Compute<T>>(v));
      v += step;
    }
  });
  return *std::move(t);
}

AttributeValue Plausible(const Attr& attr) {
  switch (attr.type) {
    case AttrType::kInt: return int64_t{1};
    case AttrType::kFloat: return 0.5f;
    case AttrType::kText: return std::string(attr.name == "equation" ? "ij,jk->ik" : "LEFT");
    case AttrType::kInts: return Ints{1, 1};
    case AttrType::kFloats: return Floats{0.5f};
    case AttrType::kTexts: return Texts{"a"};
    case AttrType::kTensor: return Tensor::Scalar<float>(1);
    case AttrType::kTensors: return std::vector<Tensor>{};
    default: return GraphPtr();
  }
}

bool NeedsBody(const OpDef& def) {
  for (const Attr& a : def.attrs) {
    if (a.type == AttrType::kGraph && a.required()) return true;
  }
  return false;
}

// Runs one node. Its first input has the shape `shape`, the others `other`. Elements count up from `start`.
absl::Status RunOnce(const OpDef& def, DType dtype, const Shape& shape, const Shape& other, double start, bool infer_first) {
  Graph graph;
  Node node{.op = std::string(def.name), .domain = std::string(def.domain), .name = "n"};
  std::vector<HostValue> inputs;
  auto add = [&](const Slot& slot, const Shape& s) {
    DType type = slot.types.Contains(dtype) ? dtype : DType::kUndefined;
    for (DType d : {DType::kI64, DType::kF32, DType::kBool, DType::kI32, DType::kU8}) {
      if (type == DType::kUndefined && slot.types.Contains(d)) type = d;
    }
    if (type == DType::kUndefined) return false;
    HostValue value;
    value.kind = slot.any_kind ? ValueKind::kTensor : slot.kind;
    value.tensor = Ramp(type, s, start, 1);
    if (value.kind != ValueKind::kTensor) value.sequence = {value.tensor};
    TensorType declared;
    if (infer_first) {
      declared.dtype = type;
      if (value.kind == ValueKind::kTensor) {
        declared.has_rank = true;
        declared.dims = s;
      }
    }
    ValueId id = graph.AddInput("i" + std::to_string(inputs.size()), declared);
    graph.value(id).kind = value.kind;
    node.inputs.push_back(id);
    inputs.push_back(std::move(value));
    return true;
  };
  for (int i = 0; i < def.inputs.size(); ++i) {
    if (!add(def.inputs[i], i == 0 ? shape : other)) return absl::OkStatus();
  }
  for (int i = 0; i < def.outputs.size(); ++i) {
    if (i > 0 && def.outputs[i].arity == Arity::kOptional) break;
    node.outputs.push_back(graph.AddTemporary("y"));
    graph.outputs().push_back(node.outputs.back());
  }
  for (const Attr& a : def.attrs) {
    if (a.required()) node.attrs.Set(std::string(a.name), Plausible(a));
  }
  graph.AddNode(std::move(node));
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  int64_t budget = 64 << 20;
  struct Bounded : HostAllocator {
    int64_t left;
    explicit Bounded(int64_t n) : left(n) {}
    absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
      if (bytes > left) return Fail(errors::kOverBudget, "the test's budget");
      left -= bytes;
      return UnlimitedHostAllocator().Allocate(bytes);
    }
  } allocator(budget);
  return Interpret(graph, std::move(inputs), allocator).status();
}

// Each operator must give results or a documented error: no crash, no internal error.
TEST(EveryOp, SurvivesEmptyScalarAndDeepInputs) {
  const Shape shapes[] = {{},
                          {0},
                          {1},
                          {3},
                          {0, 3},
                          {3, 0},
                          {2, 3},
                          {3, 3},
                          {1, 2, 3},
                          {2, 0, 3},
                          {1, 2, 4, 4},
                          {0, 2, 4, 4},
                          {1, 1, 2, 1, 1, 2, 1, 1, 2}};
  for (const OpDef* def : AllOps()) {
    if (NeedsBody(*def)) continue;
    SCOPED_TRACE(std::string(def->name));
    for (DType dtype : {DType::kF32, DType::kI64, DType::kI8, DType::kBool, DType::kF16}) {
      if (!def->inputs.items[0].types.Contains(dtype)) continue;
      for (const Shape& shape : shapes) {
        for (const Shape& other : {shape, Shape{}, Shape{1}, Shape{2}}) {
          for (double start : {0.0, -2.0}) {
            for (bool typed : {true, false}) {
              absl::Status status = RunOnce(*def, dtype, shape, other, start, typed);
              EXPECT_NE(ErrorId(status), errors::kInternal.id) << FormatError(status);
              EXPECT_TRUE(status.ok() || ErrorId(status) != 0) << status;
            }
          }
        }
      }
    }
  }
}

// The lowest and highest numbers overflow every sum and index.
TEST(EveryOp, SurvivesExtremeNumbers) {
  for (const OpDef* def : AllOps()) {
    if (NeedsBody(*def)) continue;
    SCOPED_TRACE(std::string(def->name));
    for (DType dtype : {DType::kI64, DType::kI32, DType::kI8, DType::kF32}) {
      for (double start : {-9.2e18, 9.2e18, -2147483648.0, 2147483647.0, -128.0, -1.0}) {
        DType fits = dtype;
        if (dtype == DType::kI32 && std::abs(start) > 2147483648.0) continue;
        if (dtype == DType::kI8 && std::abs(start) > 128.0) continue;
        for (const Shape& shape : {Shape{}, Shape{1}, Shape{1, 1}, Shape{1, 1, 1, 1}}) {
          absl::Status status = RunOnce(*def, fits, shape, shape, start, false);
          EXPECT_NE(ErrorId(status), errors::kInternal.id) << FormatError(status);
        }
      }
    }
  }
}

TEST(EveryOp, HasInPlacePairsInsideItsSchema) {
  for (const OpDef* def : AllOps()) {
    bool variadic = def->inputs.size() && def->inputs[def->inputs.size() - 1].arity == Arity::kVariadic;
    for (const InPlacePair& pair : def->in_place) {
      EXPECT_LT(pair.output, def->outputs.size()) << def->name;
      EXPECT_TRUE(variadic || pair.input < def->inputs.size()) << def->name;
    }
    EXPECT_LE(def->since, def->until) << def->name;
  }
}

}  // namespace
}  // namespace mge

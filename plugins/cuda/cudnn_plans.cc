// SPDX-License-Identifier: Apache-2.0
#include "cudnn_plans.h"

#include <algorithm>
#include <charconv>
#include <deque>

#include "plugins/gpu/support/layout.h"

namespace mge::cuda {
namespace {

constexpr size_t kMaxPerKind = 3;       // plans with the same attributes
constexpr int64_t kMaxConfigs = 64;     // that a heuristic may return
constexpr int64_t kFirstVirtual = 100;  // number of the first intermediate tensor

using Sizes = std::vector<int64_t>;

// The library's names of a kind of convolution and its attributes.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, w, y, window, alpha, beta;
};
constexpr ConvolutionNames kConvolutionNames[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

// The descriptors of a graph of operations. They refer to one another, so they live together.
class OperationGraph {
 public:
  OperationGraph(const Cudnn& library, const ConvolutionShape& shape)
      : library_(library), shape_(shape), sum_type_(shape.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT) {
    const bool deep = shape.axis[0].in != 1 || shape.axis[0].kernel != 1 || shape.axis[0].out != 1;
    first_ = deep ? 0 : 1;
  }

  // Builds the graph. The descriptor lives as long as this object.
  Result Build(Descriptor** out) {
    const bool adds = shape_.residual || shape_.bias;
    Descriptor* last = Convolve(Tensor(adds || shape_.relu ? next_virtual_++ : kY, OutputSizes()));
    if (shape_.residual)
      last = Pointwise(CUDNN_POINTWISE_ADD, last, &Tensor(kResidual, OutputSizes()), shape_.bias || shape_.relu);
    if (shape_.bias) last = Pointwise(CUDNN_POINTWISE_ADD, last, &Tensor(kBias, BiasSizes()), shape_.relu);
    if (shape_.relu) Pointwise(CUDNN_POINTWISE_RELU_FWD, last, nullptr, false);
    Descriptor& graph = Add(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.SetAll(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_).Finalize();
    *out = &graph;
    return graph.result();
  }

 private:
  Descriptor& Add(cudnnBackendDescriptorType_t type) { return all_.emplace_back(library_, type); }

  template <typename F>
  Sizes Sized(int64_t first, int64_t second, F&& of_axis) const {
    Sizes sizes = {first, second};
    for (const gpu::WindowAxis& axis : Axes()) sizes.push_back(of_axis(axis));
    return sizes;
  }
  std::span<const gpu::WindowAxis> Axes() const { return std::span(shape_.axis).subspan(first_); }
  Sizes OutputSizes() const {
    return Sized(shape_.images, shape_.outputs, [](auto& a) { return a.out; });
  }
  Sizes BiasSizes() const {
    return Sized(1, shape_.outputs, [](auto&) { return 1; });
  }

  Descriptor& Tensor(int64_t id, const Sizes& sizes) {
    const gpu::Layout layout = shape_.channels_last ? gpu::Layout::kChannelsLast : gpu::Layout::kPlain;
    const bool is_virtual = id >= kFirstVirtual;
    return Add(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
        .SetTensor(is_virtual ? sum_type_ : shape_.type, sizes, gpu::StridesIn(layout, sizes), id, is_virtual);
  }

  // Adds the convolution. Returns the tensor of its result.
  Descriptor* Convolve(Descriptor& y) {
    Sizes before, after, strides, dilations;
    for (const gpu::WindowAxis& a : Axes()) {
      before.push_back(a.pad_begin);
      after.push_back(a.pad_end);
      strides.push_back(a.stride);
      dilations.push_back(a.dilation);
    }
    const bool t = shape_.transposed();
    Descriptor& x = Tensor(kX, Sized(shape_.images, shape_.channels, [](auto& a) { return a.in; }));
    Descriptor& w =
        Tensor(kW, Sized(t ? shape_.channels : shape_.outputs, (t ? shape_.outputs : shape_.channels) / shape_.groups,
                         [](auto& a) { return a.kernel; }));
    Descriptor& window = Add(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    window.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, sum_type_)
        .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
        .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(before.size()))
        .SetList(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span<const int64_t>(before))
        .SetList(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span<const int64_t>(after))
        .SetList(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span<const int64_t>(strides))
        .SetList(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span<const int64_t>(dilations))
        .Finalize();
    const ConvolutionNames& names = kConvolutionNames[shape_.kind];
    Descriptor& op = Operation(names.operation);
    op.Set(names.x, x).Set(names.w, w).Set(names.y, y).Set(names.window, window);
    if (sum_type_ == CUDNN_DATA_DOUBLE) {
      op.Set(names.alpha, 1.0).Set(names.beta, 0.0);
    } else {
      op.Set(names.alpha, 1.0f).Set(names.beta, 0.0f);
    }
    op.Finalize();
    return &y;
  }

  // Adds an operation per element on `x` and `b`, which may be null. Returns the tensor of its result.
  Descriptor* Pointwise(cudnnPointwiseMode_t mode, Descriptor* x, Descriptor* b, bool followed) {
    Descriptor& y = Tensor(followed ? next_virtual_++ : kY, OutputSizes());
    Descriptor& how = Add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.Set(CUDNN_ATTR_POINTWISE_MODE, mode).Set(CUDNN_ATTR_POINTWISE_MATH_PREC, sum_type_);
    if (mode == CUDNN_POINTWISE_RELU_FWD) how.Set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
    how.Finalize();
    Descriptor& op = Operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    op.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how).Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *x);
    if (b) op.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    op.Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y).Finalize();
    return &y;
  }

  Descriptor& Operation(cudnnBackendDescriptorType_t type) {
    Descriptor& op = Add(type);
    operations_.push_back(&op);
    return op;
  }

  const Cudnn& library_;
  const ConvolutionShape& shape_;
  const cudnnDataType_t sum_type_;  // of sums and of intermediate tensors
  size_t first_ = 0;                // axis of the window
  int64_t next_virtual_ = kFirstVirtual;
  std::deque<Descriptor> all_;
  std::vector<Descriptor*> operations_;
};

// Returns the attributes of kernels that an engine's notes mean.
uint64_t AttributesOf(Descriptor& engine, cudnnDataType_t type) {
  uint64_t bits = MGE_KERNEL_CAPTURE_SAFE | MGE_KERNEL_READS_ARGS_FIRST | MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_ALLOCATES;
  for (auto note :
       engine.GetList<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)) {
    switch (note) {
      // Tensor cores round operands of 32 bits to TF32, and no others.
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
        bits |= MGE_KERNEL_TENSOR_CORE | (type == CUDNN_DATA_FLOAT ? MGE_KERNEL_REDUCED_PRECISION : 0);
        break;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: bits |= MGE_KERNEL_REDUCED_PRECISION; break;
      case CUDNN_NUMERICAL_NOTE_FFT: bits |= MGE_KERNEL_FFT; break;
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: bits &= ~MGE_KERNEL_DETERMINISTIC; break;
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: bits |= MGE_KERNEL_WINOGRAD; break;
      default: break;
    }
  }
  for (auto note :
       engine.GetList<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT)) {
    if (note == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) bits |= MGE_KERNEL_COMPILES;
  }
  return bits;
}

// Appends the plan of a configuration, unless there are enough plans with its attributes or the library refuses it.
void AddPlan(const Cudnn& library, const Descriptor& properties, cudnnDataType_t type, Descriptor& config,
             std::vector<ExecutionPlan>* out) {
  Descriptor engine(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  config.GetInto(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  ExecutionPlan found;
  found.attributes = AttributesOf(engine, type);
  if (!config.result().ok() || !engine.result().ok() || found.attributes & MGE_KERNEL_COMPILES) return;
  auto alike = [&](const ExecutionPlan& p) { return p.attributes == found.attributes; };
  if (static_cast<size_t>(std::count_if(out->begin(), out->end(), alike)) >= kMaxPerKind) return;
  Descriptor plan(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config).Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, properties).Finalize();
  found.workspace = static_cast<uint64_t>(plan.Get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  found.json = plan.GetText(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  auto same = [&](const ExecutionPlan& p) { return p.json == found.json; };
  if (plan.result().ok() && std::none_of(out->begin(), out->end(), same)) out->push_back(std::move(found));
}

void Append(std::string* text, int64_t number) { text->append(std::to_string(number)).append(" "); }

// Reads a number and the character behind it.
bool ReadNumber(std::string_view* bytes, uint64_t* out) {
  const auto [end, error] = std::from_chars(bytes->data(), bytes->data() + bytes->size(), *out);
  if (error != std::errc() || end == bytes->data() + bytes->size() || *end != ' ') return false;
  bytes->remove_prefix(static_cast<size_t>(end - bytes->data()) + 1);
  return true;
}

}  // namespace

std::string ConvolutionShape::Text() const {
  std::string text;
  for (int64_t n : {int64_t{type}, images, channels, outputs, groups, int64_t{bias}, int64_t{residual}, int64_t{relu},
                    int64_t{kind}, int64_t{channels_last}}) {
    Append(&text, n);
  }
  for (const gpu::WindowAxis& a : axis) {
    for (int64_t n : {a.in, a.out, a.kernel, a.stride, a.dilation, a.pad_begin, a.pad_end}) Append(&text, n);
  }
  return text;
}

Result FindPlans(const Cudnn& library, const Descriptor& properties, const ConvolutionShape& shape,
                 std::vector<ExecutionPlan>* out) {
  OperationGraph graph(library, shape);
  Descriptor* operations = nullptr;
  if (Result r = graph.Build(&operations); !r.ok()) return r;
  return FindPlansOf(library, properties, *operations, shape.type, out);
}

Result FindPlansOf(const Cudnn& library, const Descriptor& properties, const Descriptor& graph, cudnnDataType_t type,
                   std::vector<ExecutionPlan>* out) {
  Result last;
  auto is_safe = [](const ExecutionPlan& p) {  // allowed by every setting
    constexpr uint64_t kRisks = MGE_KERNEL_REDUCED_PRECISION | MGE_KERNEL_TENSOR_CORE | MGE_KERNEL_WINOGRAD | MGE_KERNEL_FFT;
    return p.attributes & MGE_KERNEL_DETERMINISTIC && !(p.attributes & kRisks);
  };
  // The later modes order worse, and are asked only if no plan is allowed by every setting.
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_FALLBACK}) {
    if (std::any_of(out->begin(), out->end(), is_safe)) break;
    Descriptor heuristic(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
        .Set(CUDNN_ATTR_ENGINEHEUR_MODE, mode)
        .Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, properties)
        .Finalize();
    std::vector<Descriptor> configs;
    heuristic.GetAll(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, kMaxConfigs, &configs);
    if (!heuristic.result().ok()) last = heuristic.result();
    for (Descriptor& config : configs) AddPlan(library, properties, type, config, out);
  }
  if (!out->empty()) return {};
  return last.ok() ? Result(MGE_UNIMPLEMENTED, "cuDNN has no engine that needs no compilation") : last;
}

std::string WritePlans(const std::vector<ExecutionPlan>& plans) {
  std::string bytes;
  for (const ExecutionPlan& plan : plans) {
    for (uint64_t n : {plan.attributes, plan.workspace, uint64_t{plan.json.size()}}) bytes += std::to_string(n) + " ";
    bytes += plan.json;
  }
  return bytes;
}

bool ReadPlans(std::string_view bytes, std::vector<ExecutionPlan>* plans) {
  while (!bytes.empty()) {
    ExecutionPlan plan;
    uint64_t size = 0;
    if (!ReadNumber(&bytes, &plan.attributes) || !ReadNumber(&bytes, &plan.workspace) || !ReadNumber(&bytes, &size) ||
        size > bytes.size()) {
      return false;
    }
    plan.json = bytes.substr(0, size);
    bytes.remove_prefix(size);
    plans->push_back(std::move(plan));
  }
  return !plans->empty();
}

}  // namespace mge::cuda

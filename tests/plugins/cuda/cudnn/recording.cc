// SPDX-License-Identifier: Apache-2.0
// A library with the graph interface of cuDNN that records what it is asked for, and computes convolutions and pools with
// the emulated kernels of the driver in software. Like cuDNN, it has engines without compilation only for a pool, as a fallback,
// and for a convolution, alone or followed by residual, bias and Relu in this order, with a bias.
#include <cudnn_graph.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/kernels/conv_gradient.h"
#include "tests/plugins/gpu/vendor/strides.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using mge::gpu::ConvArgs;

constexpr int64_t kWorkspace = 1000;  // of engine 1
constexpr size_t kHandleBytes = size_t{1} << 20;
// Engines: 0 is exact; 1 uses tensor cores and a workspace; 2 compiles; 3 uses Winograd's method; 4 is not deterministic.
enum Engine : int64_t { kExact, kTensor, kCompiled, kWinograd, kUnordered };

struct Value {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::string bytes;
};
// The convolution of a graph or a plan. For pools, `args` has the sizes and the windows.
struct Operation {
  ConvArgs args = {};
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::string order;  // the operations, such as "conv residual bias relu", or "max", "average" and "average_pads" for a pool
  int64_t x = 0, w = 0, residual = 0, bias = 0, y = 0;
  bool channels_last = false;
  mge::LayoutsOfTensors layouts = {};  // of graphs
};
struct Descriptor {
  cudnnBackendDescriptorType_t type;
  bool finalized = false;
  std::map<cudnnBackendAttributeName_t, Value> values = {};
  Operation operation = {};  // of graphs and plans
  int64_t engine = -1;       // of engines, configurations and plans
};
struct Handle {
  cudaStream_t stream = nullptr;
  void* memory = nullptr;  // of the device
};

std::atomic<uint64_t> g_runs{0}, g_heuristics{0}, g_handles{0}, g_descriptors{0},
    g_generation{0},           // of the texts that it reads
    g_calls{0}, g_failing{0};  // calls that can fail, and the number of the one that does
char g_order[64];              // of the last plan that was executed
const char* g_why = "";        // the last error

cudnnStatus_t Refuse(const char* why) {
  g_why = why;
  return CUDNN_STATUS_BAD_PARAM;
}

// Counts a call. Returns whether it fails.
bool Fails() {
  if (++g_calls != g_failing) return false;
  g_why = "no luck";
  return true;
}

Descriptor& As(cudnnBackendDescriptor_t raw) { return *static_cast<Descriptor*>(raw); }
template <typename T>
std::vector<T> List(const Descriptor& d, cudnnBackendAttributeName_t name) {
  const auto at = d.values.find(name);
  if (at == d.values.end()) return {};
  std::vector<T> list(at->second.bytes.size() / sizeof(T));
  std::memcpy(list.data(), at->second.bytes.data(), list.size() * sizeof(T));
  return list;
}
template <typename T>
T One(const Descriptor& d, cudnnBackendAttributeName_t name, T otherwise = T()) {
  const auto list = List<T>(d, name);
  return list.empty() ? otherwise : list[0];
}
// Returns a finalized descriptor that another refers to, or null.
const Descriptor* To(const Descriptor& d, cudnnBackendAttributeName_t name) {
  auto* to = static_cast<const Descriptor*>(One<cudnnBackendDescriptor_t>(d, name));
  return to && to->finalized ? to : nullptr;
}
int64_t IdOf(const Descriptor& tensor) { return One<int64_t>(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID); }
std::vector<int64_t> SizesOf(const Descriptor& tensor) { return List<int64_t>(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS); }
// Notes the layout of a tensor.
void Note(const Descriptor& tensor, Operation* out) {
  out->layouts.Add(SizesOf(tensor), List<int64_t>(tensor, CUDNN_ATTR_TENSOR_STRIDES));
}

// Reads a convolution. Returns false if something is missing.
bool ReadConvolution(const Descriptor& op, Operation* out) {
  const bool t = op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
             gradient = op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
  auto named = [&](auto forward, auto data, auto filter) { return To(op, t ? data : gradient ? filter : forward); };
  const Descriptor *x = named(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X),
                   *w = named(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW),
                   *y = named(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY),
                   *window = named(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
  if (!x || !w || !y || !window) return false;
  const auto in = SizesOf(*x), filter = SizesOf(*w), result = SizesOf(*y);
  const auto before = List<int64_t>(*window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
             after = List<int64_t>(*window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS),
             strides = List<int64_t>(*window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
             dilations = List<int64_t>(*window, CUDNN_ATTR_CONVOLUTION_DILATIONS);
  const size_t axes = in.size() - 2;
  if (axes < 2 || axes > 3 || filter.size() != in.size() || result.size() != in.size() || before.size() != axes ||
      after.size() != axes || strides.size() != axes || dilations.size() != axes) {
    return false;
  }
  if (One<cudnnConvolutionMode_t>(*window, CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION) return false;
  ConvArgs& a = out->args;
  a.images = in[0];
  a.channels = in[1];
  a.outputs = result[1];
  a.groups = (t ? result[1] : in[1]) / filter[1];
  a.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  for (size_t i = 0; i < axes; ++i) {
    a.axis[3 - axes + i] = {in[i + 2], result[i + 2], filter[i + 2], strides[i], dilations[i], before[i], after[i]};
    const int64_t wide = (t ? result : in)[i + 2], narrow = (t ? in : result)[i + 2];
    const int64_t room = wide + before[i] + after[i] - (filter[i + 2] - 1) * dilations[i] - 1;
    if (narrow != room / strides[i] + 1 || before[i] < 0 || after[i] < 0) return false;
  }
  for (const Descriptor* tensor : {x, w, y}) Note(*tensor, out);
  out->type = One<cudnnDataType_t>(*x, CUDNN_ATTR_TENSOR_DATA_TYPE);
  out->order = t ? "transposed" : gradient ? "gradient" : "conv";
  out->x = IdOf(*x);
  out->w = IdOf(*w);
  out->y = IdOf(*y);
  return result[0] == in[0] && filter[0] == (t ? in : result)[1] && (t ? result : in)[1] % filter[1] == 0;
}

// Reads an operation per element, which reads the result of those before it.
bool ReadPointwise(const Descriptor& op, Operation* out) {
  const Descriptor *how = To(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR),
                   *x = To(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC), *b = To(op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC),
                   *y = To(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  if (!how || !x || !y || IdOf(*x) != out->y || !One<char>(*x, CUDNN_ATTR_TENSOR_IS_VIRTUAL)) return false;
  out->y = IdOf(*y);
  Note(*y, out);
  if (b) Note(*b, out);
  const auto mode = One<cudnnPointwiseMode_t>(*how, CUDNN_ATTR_POINTWISE_MODE);
  if (mode == CUDNN_POINTWISE_RELU_FWD && !b) {
    if (One<cudnnNanPropagation_t>(*how, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) != CUDNN_PROPAGATE_NAN) return false;
    out->args.activation.kind = mge::gpu::kRelu;
    out->order += " relu";
    return true;
  }
  if (mode != CUDNN_POINTWISE_ADD || !b) return false;
  const bool whole = SizesOf(*b) == SizesOf(*y);
  (whole ? out->residual : out->bias) = IdOf(*b);
  out->order += whole ? " residual" : " bias";
  return true;
}

// Reads a pool. Returns false if something is missing.
bool ReadPool(const Descriptor& op, Operation* out) {
  const Descriptor *x = To(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC),
                   *y = To(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC),
                   *how = To(op, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC);
  if (!x || !y || !how) return false;
  const auto in = SizesOf(*x), result = SizesOf(*y);
  const auto window = List<int64_t>(*how, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS),
             strides = List<int64_t>(*how, CUDNN_ATTR_RESAMPLE_STRIDES),
             before = List<int64_t>(*how, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS),
             after = List<int64_t>(*how, CUDNN_ATTR_RESAMPLE_POST_PADDINGS);
  const size_t axes = window.size();
  if (axes < 2 || axes > 3 || in.size() != axes + 2 || result.size() != in.size() || strides.size() != axes ||
      before.size() != axes || after.size() != axes || result[0] != in[0] || result[1] != in[1]) {
    return false;
  }
  ConvArgs& a = out->args;
  a.images = in[0];
  a.channels = in[1];
  a.axis[0] = {1, 1, 1, 1, 1, 0, 0};
  for (size_t i = 0; i < axes; ++i) {
    a.axis[3 - axes + i] = {in[i + 2], result[i + 2], window[i], strides[i], 1, before[i], after[i]};
    if ((in[i + 2] + before[i] + after[i] - window[i]) / strides[i] + 1 != result[i + 2]) return false;
  }
  const auto mode = One<cudnnResampleMode_t>(*how, CUDNN_ATTR_RESAMPLE_MODE);
  const bool is_max = mode == CUDNN_RESAMPLE_MAXPOOL;
  const auto pad = One<cudnnPaddingMode_t>(*how, CUDNN_ATTR_RESAMPLE_PADDING_MODE);
  if (pad != (is_max ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD)) return false;
  out->order = is_max ? "max" : mode == CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING ? "average" : "average_pads";
  out->type = One<cudnnDataType_t>(*x, CUDNN_ATTR_TENSOR_DATA_TYPE);
  out->x = IdOf(*x);
  out->y = IdOf(*y);
  return true;
}

bool IsPool(const Operation& op) { return op.order == "max" || op.order.starts_with("average"); }

bool ReadGraph(const Descriptor& graph, Operation* out) {
  const auto ops = List<cudnnBackendDescriptor_t>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (ops.size() == 1 && As(ops[0]).type == CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR) {
    return As(ops[0]).finalized && ReadPool(As(ops[0]), out);
  }
  for (size_t i = 0; i < ops.size(); ++i) {
    const Descriptor& op = As(ops[i]);
    if (!op.finalized || !(i == 0 ? ReadConvolution(op, out) : ReadPointwise(op, out))) return false;
  }
  out->channels_last = out->layouts.ChannelsLast();
  return !ops.empty() && out->layouts.Agree();
}

// A plan as text, and back.
std::string TextOf(int64_t engine, const Operation& op) {
  std::ostringstream out;
  out << "plan " << g_generation << ' ' << engine << ' ' << op.type;
  for (int64_t n : {op.x, op.w, op.residual, op.bias, op.y, op.args.images, op.args.channels, op.args.outputs,
                    op.args.groups, int64_t{op.args.activation.kind}, int64_t{op.channels_last}}) {
    out << ' ' << n;
  }
  for (const auto& a : op.args.axis) {
    for (int64_t n : {a.in, a.out, a.kernel, a.stride, a.dilation, a.pad_begin, a.pad_end}) out << ' ' << n;
  }
  out << ' ' << op.order;
  return out.str();
}
bool FromText(const std::string& text, int64_t* engine, Operation* op) {
  std::istringstream in(text);
  std::string word;
  int type = 0;
  uint64_t generation = 0;
  in >> word >> generation >> *engine >> type >> op->x >> op->w >> op->residual >> op->bias >> op->y >> op->args.images >>
      op->args.channels >> op->args.outputs >> op->args.groups >> op->args.activation.kind >> op->channels_last;
  for (auto& a : op->args.axis) {
    in >> a.in >> a.out >> a.kernel >> a.stride >> a.dilation >> a.pad_begin >> a.pad_end;
  }
  op->type = static_cast<cudnnDataType_t>(type);
  std::getline(in >> std::ws, op->order);
  return word == "plan" && generation == g_generation && !op->order.empty();
}

// Appends the convolution to the file RECORDED_CONVOLUTIONS.
void Record(const Operation& op) {
  const char* path = std::getenv("RECORDED_CONVOLUTIONS");
  if (!path || IsPool(op)) return;
  std::ofstream out(path, std::ios::app);
  for (int64_t n : {int64_t{op.type}, op.args.images, op.args.channels, op.args.outputs, op.args.groups,
                    int64_t{op.bias != 0}, int64_t{op.residual != 0}, int64_t{op.args.activation.kind == mge::gpu::kRelu},
                    int64_t{op.order == "transposed" ? 1
                            : op.order == "gradient" ? 2
                                                     : 0},
                    int64_t{op.channels_last}}) {
    out << n << ' ';
  }
  for (const auto& a : op.args.axis) {
    for (int64_t n : {a.in, a.out, a.kernel, a.stride, a.dilation, a.pad_begin, a.pad_end}) out << n << ' ';
  }
  out << '\n';
}

std::vector<int64_t> EnginesFor(const Operation& op, cudnnBackendHeurMode_t mode) {
  const std::string& order = op.order;
  if (IsPool(op)) return mode == CUDNN_HEUR_MODE_FALLBACK ? std::vector<int64_t>{kExact} : std::vector<int64_t>{};
  for (const char* known :
       {"conv", "transposed", "gradient", "conv bias", "conv residual bias", "conv bias relu", "conv residual bias relu"}) {
    if (order != known) continue;
    if (mode == CUDNN_HEUR_MODE_A) return {kTensor, kWinograd, kTensor};
    if (mode == CUDNN_HEUR_MODE_INSTANT) return {kTensor, kExact, kCompiled, kUnordered};
    return {};
  }
  return {kCompiled};
}

// Copies a list of values to an array of the caller.
template <typename T>
cudnnStatus_t CopyOut(const std::vector<T>& list, int64_t most, int64_t* count, void* out) {
  *count = static_cast<int64_t>(list.size());
  if (out) std::memcpy(out, list.data(), sizeof(T) * static_cast<size_t>(std::min(most, *count)));
  return CUDNN_STATUS_SUCCESS;
}

template <typename F>
F Driver(const char* name) {
  void* driver = dlopen(MGE_BINARY_DIR "/lib/mge/test/libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<F>(dlsym(driver, name));
}
// Returns the driver's kernel, or null.
void* KernelOf(const char* name) {
  void *module = nullptr, *function = nullptr;
  static const uint32_t image[4] = {0xba55ed50};
  if (Driver<int (*)(void**, const void*)>("cuModuleLoadData")(&module, image) != 0) return nullptr;
  if (Driver<int (*)(void**, void*, const char*)>("cuModuleGetFunction")(&function, module, name) != 0) function = nullptr;
  Driver<int (*)(void*)>("cuModuleUnload")(module);
  return function;
}

}  // namespace

EXPORT uint64_t recorded_runs() { return g_runs; }
EXPORT uint64_t recorded_heuristics() { return g_heuristics; }
EXPORT uint64_t recorded_handles() { return g_handles; }          // that are open
EXPORT uint64_t recorded_descriptors() { return g_descriptors; }  // that exist
EXPORT void recorded_forget() { ++g_generation; }
// Counts calls from 1 again, and lets one of them fail; 0: none.
EXPORT void recorded_fail(uint64_t call) {
  g_calls = 0;
  g_failing = call;
}
EXPORT uint64_t recorded_calls() { return g_calls; }
EXPORT const char* recorded_order() { return g_order; }

EXPORT size_t cudnnGetVersion() {
#ifdef MGE_OLD
  return 90100;
#else
  return CUDNN_VERSION;
#endif
}
EXPORT const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return "CUDNN_STATUS_NOT_INITIALIZED";
  }
}
EXPORT void cudnnGetLastErrorString(char* text, size_t bytes) { std::strncpy(text, g_why, bytes - 1); }

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (Fails()) return CUDNN_STATUS_EXECUTION_FAILED;
  void* context = nullptr;
  if (Driver<int (*)(void**)>("cuCtxPopCurrent_v2")(&context) != 0) return CUDNN_STATUS_NOT_INITIALIZED;
  Driver<int (*)(void*)>("cuCtxPushCurrent_v2")(context);
  auto* made = new Handle();
  if (Driver<int (*)(void**, size_t)>("cuMemAlloc_v2")(&made->memory, kHandleBytes) != 0) {
    delete made;
    return CUDNN_STATUS_ALLOC_FAILED;
  }
  ++g_handles;
  *handle = reinterpret_cast<cudnnHandle_t>(made);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  --g_handles;
  auto* old = reinterpret_cast<Handle*>(handle);
  Driver<int (*)(void*)>("cuMemFree_v2")(old->memory);
  delete old;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (Fails()) return CUDNN_STATUS_EXECUTION_FAILED;
  reinterpret_cast<Handle*>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* out) {
  if (Fails()) return CUDNN_STATUS_EXECUTION_FAILED;
  ++g_descriptors;
  *out = new Descriptor{type};
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  --g_descriptors;
  delete static_cast<Descriptor*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  if (Fails()) return CUDNN_STATUS_EXECUTION_FAILED;
  constexpr size_t kBytes[] = {8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 8};
  const size_t bytes = type == CUDNN_TYPE_CHAR ? 1 : static_cast<size_t>(type) < std::size(kBytes) ? kBytes[type] : 4;
  if (As(descriptor).finalized) return Refuse("the descriptor is finalized");
  As(descriptor).values[name] = {type, count,
                                 std::string(static_cast<const char*>(values), static_cast<size_t>(count) * bytes)};
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  if (Fails()) return CUDNN_STATUS_EXECUTION_FAILED;
  Descriptor& d = As(descriptor);
  switch (d.type) {
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
      if (!One<cudnnHandle_t>(d, CUDNN_ATTR_DEVICEPROP_HANDLE)) return Refuse("no device");
      break;
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      if (!ReadGraph(d, &d.operation)) return Refuse("neither a convolution nor a pool");
      break;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      if (!To(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP) || !To(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH))
        return Refuse("no graph");
      d.operation = To(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)->operation;
      ++g_heuristics;
      Record(d.operation);
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const auto text = List<char>(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
      if (!text.empty()) {
        if (!One<cudnnHandle_t>(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE)) return Refuse("a plan from text needs a handle");
        if (!FromText({text.begin(), text.end()}, &d.engine, &d.operation)) return Refuse("not the text of a plan");
        break;
      }
      const Descriptor* config = To(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      if (!config || !To(d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP)) return Refuse("no configuration or device");
      if (config->engine == kCompiled) return Refuse("an engine would be compiled");
      d.engine = config->engine;
      d.operation = config->operation;
      break;
    }
    default: break;
  }
  d.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}
EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t most, int64_t* count, void* out) {
  if (Fails()) return CUDNN_STATUS_EXECUTION_FAILED;
  const Descriptor& d = As(descriptor);
  if (!d.finalized) return Refuse("the descriptor is not finalized");
  auto text = [&](const std::string& t) { return CopyOut(std::vector<char>(t.begin(), t.end()), most, count, out); };
  switch (name) {
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION: return text("{\"deviceName\":\"recording\"}");
    case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION: return text(TextOf(d.engine, d.operation));
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return CopyOut<int64_t>({d.engine == kTensor ? kWorkspace : 0}, most, count, out);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      if (d.engine != kCompiled) return CopyOut<cudnnBackendBehaviorNote_t>({}, most, count, out);
      return CopyOut<cudnnBackendBehaviorNote_t>({CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION}, most, count, out);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      std::vector<cudnnBackendNumericalNote_t> notes;
      if (d.engine == kTensor) notes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
      if (d.engine == kWinograd) notes = {CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4};
      if (d.engine == kUnordered) notes = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
      return CopyOut(notes, most, count, out);
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      Descriptor& engine = As(*static_cast<cudnnBackendDescriptor_t*>(out));
      engine.engine = d.engine;
      engine.finalized = true;
      *count = 1;
      return type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? CUDNN_STATUS_SUCCESS : Refuse("another type");
    }
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      const auto engines = EnginesFor(d.operation, One<cudnnBackendHeurMode_t>(d, CUDNN_ATTR_ENGINEHEUR_MODE));
      for (size_t i = 0; i < engines.size() && static_cast<int64_t>(i) < most; ++i) {
        Descriptor& config = As(static_cast<cudnnBackendDescriptor_t*>(out)[i]);
        config.engine = engines[i];
        config.operation = d.operation;
        config.finalized = true;
      }
      *count = static_cast<int64_t>(engines.size());
      return CUDNN_STATUS_SUCCESS;
    }
    default: return Refuse("an attribute that is not known");
  }
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t raw_plan,
                                         cudnnBackendDescriptor_t raw_pack) {
  if (Fails()) return CUDNN_STATUS_EXECUTION_FAILED;
  ++g_runs;
  const Descriptor &plan = As(raw_plan), &pack = As(raw_pack);
  const Operation& op = plan.operation;
  std::strncpy(g_order, op.order.c_str(), sizeof(g_order) - 1);
  const auto ids = List<int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = List<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto* workspace = One<char*>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (!pack.finalized || !plan.finalized || ids.size() != pointers.size()) return Refuse("the operands");
  auto find = [&](int64_t id) -> void* {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (id && ids[i] == id) return pointers[i];
    }
    return nullptr;
  };
  ConvArgs args = op.args;
  args.x = find(op.x);
  args.w = find(op.w);
  args.residual = find(op.residual);
  args.bias = find(op.bias);
  args.y = find(op.y);
  const bool is_pool = IsPool(op);
  if (!args.x || (!args.w && !is_pool) || !args.y || !args.residual != !op.residual || !args.bias != !op.bias)
    return Refuse("an operand");
  auto* stream = reinterpret_cast<Handle*>(handle)->stream;
  if (plan.engine == kTensor) {  // writes all of its workspace
    if (!workspace) return Refuse("no workspace");
    const auto fill = Driver<int (*)(void*, unsigned char, size_t, void*)>("cuMemsetD8Async");
    if (fill(workspace, 0xff, kWorkspace, stream) != 0) return CUDNN_STATUS_EXECUTION_FAILED;
  }
  const char* type = op.type == CUDNN_DATA_FLOAT      ? "_f32"
                     : op.type == CUDNN_DATA_DOUBLE   ? "_f64"
                     : op.type == CUDNN_DATA_HALF     ? "_f16"
                     : op.type == CUDNN_DATA_BFLOAT16 ? "_bf16"
                                                      : "";
  // With one channel per group, the order of the filter is the same in both layouts, and tiles would be nearly empty.
  const bool transposed = op.order == "transposed";
  args.packed = op.channels_last && (transposed || args.channels != args.groups);
  mge::gpu::PoolArgs pool = {};
  pool.x = args.x;
  pool.y = args.y;
  pool.n = args.images * args.channels * args.axis[0].out * args.axis[1].out * args.axis[2].out;
  std::copy(std::begin(args.axis), std::end(args.axis), pool.axis);
  pool.count_pads = op.order == "average_pads";
  mge::gpu::ConvGradientArgs gradient = {};
  gradient.x = args.x;
  gradient.y = args.y;
  gradient.w = const_cast<void*>(args.w);
  gradient.images = args.images;
  gradient.channels = args.channels;
  gradient.outputs = args.outputs;
  gradient.groups = args.groups;
  gradient.splits = 1;
  std::copy(std::begin(args.axis), std::end(args.axis), gradient.axis);
  const bool is_gradient = op.order == "gradient";
  const char* form = is_pool             ? (op.order == "max" ? "max_pool" : "average_pool")
                     : is_gradient       ? "conv_weight_gradient"
                     : !op.channels_last ? (transposed ? "conv_transposed" : "conv_direct")
                     : transposed        ? "conv_nhwc_transposed"
                     : args.packed       ? "conv_nhwc_product"
                                         : "conv_nhwc_direct";
  const std::string kernel = form + std::string(type);
  void* function = KernelOf(kernel.c_str());
  if (!function) return Refuse("the type");
  void* arguments[] = {is_pool ? static_cast<void*>(&pool) : is_gradient ? static_cast<void*>(&gradient) : &args};
  const auto launch =
      Driver<int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**)>(
          "cuLaunchKernel");
  return launch(function, 8, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr) == 0 ? CUDNN_STATUS_SUCCESS
                                                                                  : CUDNN_STATUS_EXECUTION_FAILED;
}

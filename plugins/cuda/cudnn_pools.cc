// SPDX-License-Identifier: Apache-2.0
#include "cudnn_pools.h"

#include <span>

#include "plugins/gpu/support/layout.h"

namespace mge::cuda {

std::string PoolShape::Text() const {
  std::string text = "pool";
  auto append = [&](int64_t number) { text.append(" ").append(std::to_string(number)); };
  for (int64_t n : {int64_t{type}, int64_t{mode}, images, channels}) append(n);
  for (const gpu::WindowAxis& a : axis) {
    for (int64_t n : {a.in, a.out, a.kernel, a.stride, a.pad_begin, a.pad_end}) append(n);
  }
  return text;
}

Result FindPlans(const Cudnn& library, const Descriptor& properties, const PoolShape& shape,
                 std::vector<ExecutionPlan>* out) {
  const gpu::WindowAxis& depth = shape.axis[0];
  const auto axes = std::span(shape.axis).subspan(depth.in == 1 && depth.kernel == 1 && depth.out == 1 ? 1 : 0);
  std::vector<int64_t> in = {shape.images, shape.channels}, result = in, window, strides, before, after;
  for (const gpu::WindowAxis& a : axes) {
    in.push_back(a.in);
    result.push_back(a.out);
    window.push_back(a.kernel);
    strides.push_back(a.stride);
    before.push_back(a.pad_begin);
    after.push_back(a.pad_end);
  }
  Descriptor x(library, CUDNN_BACKEND_TENSOR_DESCRIPTOR), y(library, CUDNN_BACKEND_TENSOR_DESCRIPTOR),
      pool(library, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR), operation(library, CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR),
      graph(library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  x.SetTensor(shape.type, in, gpu::StridesIn(gpu::Layout::kPlain, in), kPoolX);
  y.SetTensor(shape.type, result, gpu::StridesIn(gpu::Layout::kPlain, result), kPoolY);
  auto set = [&](cudnnBackendAttributeName_t name, const std::vector<int64_t>& values) {
    pool.SetList(name, std::span<const int64_t>(values));
  };
  set(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, window);
  set(CUDNN_ATTR_RESAMPLE_STRIDES, strides);
  set(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, before);
  set(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, after);
  const bool is_max = shape.mode == CUDNN_RESAMPLE_MAXPOOL;
  pool.Set(CUDNN_ATTR_RESAMPLE_MODE, shape.mode)
      .Set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, shape.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN)
      .Set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, is_max ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD)
      .Set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, static_cast<int64_t>(axes.size()))
      .Finalize();
  operation.Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x)
      .Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y)
      .Set(CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, pool)
      .Finalize();
  Descriptor* const operations[] = {&operation};
  graph.SetAll(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations).Finalize();
  if (!graph.result().ok()) return graph.result();
  return FindPlansOf(library, properties, graph, shape.type, out);
}

}  // namespace mge::cuda

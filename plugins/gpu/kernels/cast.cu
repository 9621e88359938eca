// SPDX-License-Identifier: Apache-2.0
// Conversions between element types, see cast.h. A conversion to bool tests for non-zero.
#include "mge/types.h"
#include "plugins/gpu/kernels/cast.h"
#include "plugins/gpu/kernels/elementwise.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

struct Bool {
  uint8_t value;
};

template <>
struct CastTo<Bool> {
  template <typename I>
  static GPU_DEVICE Bool Of(I v) {
    return {static_cast<uint8_t>(v != I(0))};
  }
};

template <typename To, typename From>
GPU_DEVICE void CastFrom(const CastArgs& args) {
  const From* __restrict__ x = static_cast<const From*>(args.x);
  To* __restrict__ y = static_cast<To*>(args.y);
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) y[i] = CastTo<To>::Of(Widen(x[i]));
}

template <typename To>
GPU_DEVICE void Cast(const CastArgs& args) {
  switch (args.from) {
    case MGE_DTYPE_F32: return CastFrom<To, float>(args);
    case MGE_DTYPE_U8: return CastFrom<To, uint8_t>(args);
    case MGE_DTYPE_I8: return CastFrom<To, int8_t>(args);
    case MGE_DTYPE_U16: return CastFrom<To, uint16_t>(args);
    case MGE_DTYPE_I16: return CastFrom<To, int16_t>(args);
    case MGE_DTYPE_I32: return CastFrom<To, int32_t>(args);
    case MGE_DTYPE_I64: return CastFrom<To, int64_t>(args);
    case MGE_DTYPE_BOOL: return CastFrom<To, uint8_t>(args);
    case MGE_DTYPE_F16: return CastFrom<To, f16>(args);
    case MGE_DTYPE_F64: return CastFrom<To, double>(args);
    case MGE_DTYPE_U32: return CastFrom<To, uint32_t>(args);
    case MGE_DTYPE_U64: return CastFrom<To, uint64_t>(args);
    case MGE_DTYPE_BF16: return CastFrom<To, bf16>(args);
  }
}

GPU_KERNEL(cast_to_f32, 256, CastArgs, Cast<float>)
GPU_KERNEL(cast_to_f64, 256, CastArgs, Cast<double>)
GPU_KERNEL(cast_to_f16, 256, CastArgs, Cast<f16>)
GPU_KERNEL(cast_to_bf16, 256, CastArgs, Cast<bf16>)
GPU_KERNEL(cast_to_i8, 256, CastArgs, Cast<int8_t>)
GPU_KERNEL(cast_to_i16, 256, CastArgs, Cast<int16_t>)
GPU_KERNEL(cast_to_i32, 256, CastArgs, Cast<int32_t>)
GPU_KERNEL(cast_to_i64, 256, CastArgs, Cast<int64_t>)
GPU_KERNEL(cast_to_u8, 256, CastArgs, Cast<uint8_t>)
GPU_KERNEL(cast_to_u16, 256, CastArgs, Cast<uint16_t>)
GPU_KERNEL(cast_to_u32, 256, CastArgs, Cast<uint32_t>)
GPU_KERNEL(cast_to_u64, 256, CastArgs, Cast<uint64_t>)
GPU_KERNEL(cast_to_bool, 256, CastArgs, Cast<Bool>)

}  // namespace mge::gpu

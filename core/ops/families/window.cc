// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/window.h"

#include "core/base/errors.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

enum class AutoPad { kNotSet, kValid, kSameUpper, kSameLower };

int64_t CeilDiv(int64_t a, int64_t b) { return a <= 0 ? -(-a / b) : (a - 1) / b + 1; }

absl::StatusOr<AutoPad> ReadAutoPad(const Attributes& attrs) {
  std::string text = attrs.Text("auto_pad");
  if (text == "NOTSET" || text.empty()) return AutoPad::kNotSet;
  if (text == "VALID") return AutoPad::kValid;
  if (text == "SAME_UPPER") return AutoPad::kSameUpper;
  if (text == "SAME_LOWER") return AutoPad::kSameLower;
  return BadNode(
      fmt::format("attribute auto_pad = \"{}\" is not one of NOTSET, VALID, SAME_UPPER, SAME_LOWER", EscapeControl(text)));
}

// Returns the attribute's values, or `count` times `fallback` if it is absent. Fails if a value is below `low` or too
// large.
absl::StatusOr<Ints> ReadList(const Attributes& attrs, std::string_view name, size_t count, int64_t fallback, int64_t low) {
  Ints values = attrs.IntList(name);
  if (values.empty()) return Ints(count, fallback);
  if (values.size() != count) {
    return BadNode(fmt::format("attribute {} has {} values; the input's rank requires {}", name, values.size(), count));
  }
  for (int64_t v : values) {
    if (v < low || v > kMaxWindowParameter) {
      return BadNode(fmt::format("attribute {} = [{}]: {} is outside of {}..{}", name, fmt::join(values, ","), v, low,
                                 kMaxWindowParameter));
    }
  }
  return values;
}

struct Parameters {
  AutoPad auto_pad = AutoPad::kNotSet;
  Ints strides, dilations, pads;
};

absl::StatusOr<Parameters> ReadParameters(const Attributes& attrs, std::span<const int64_t> kernel) {
  Parameters p;
  const size_t n = kernel.size();
  MGE_ASSIGN_OR_RETURN(p.auto_pad, ReadAutoPad(attrs));
  MGE_ASSIGN_OR_RETURN(p.strides, ReadList(attrs, "strides", n, 1, 1));
  MGE_ASSIGN_OR_RETURN(p.dilations, ReadList(attrs, "dilations", n, 1, 1));
  MGE_ASSIGN_OR_RETURN(p.pads, ReadList(attrs, "pads", 2 * n, 0, -kMaxWindowParameter));
  for (int64_t k : kernel) {
    if (k != kUnknownDim && (k < 1 || k > kMaxWindowParameter)) {
      return BadNode(
          fmt::format("kernel shape [{}]: {} is outside of 1..{}", fmt::join(kernel, ","), k, kMaxWindowParameter));
    }
  }
  return p;
}

bool IsSame(AutoPad mode) { return mode == AutoPad::kSameUpper || mode == AutoPad::kSameLower; }

// Splits the total padding. If it is odd, `more_at_end` selects the end that gets one more.
void SplitPads(int64_t total, bool more_at_end, WindowAxis& axis) {
  axis.pad_begin = more_at_end ? total / 2 : total - total / 2;
  axis.pad_end = total - axis.pad_begin;
}

}  // namespace

IndexRange WindowAxis::TapsInside(int64_t output) const {
  int64_t start = output * stride - pad_begin;
  int64_t begin = start >= 0 ? 0 : CeilDiv(-start, dilation);
  const int64_t limit = in + std::min<int64_t>(pad_end, 0);
  int64_t end = start >= limit ? 0 : (limit - 1 - start) / dilation + 1;
  return {begin, std::max(begin, std::min(end, kernel))};
}

IndexRange WindowAxis::OutputsInside(int64_t tap) const {
  int64_t start = tap * dilation - pad_begin;
  int64_t begin = start >= 0 ? 0 : CeilDiv(-start, stride);
  const int64_t limit = in + std::min<int64_t>(pad_end, 0);
  int64_t end = start >= limit ? 0 : (limit - 1 - start) / stride + 1;
  begin = std::min(begin, out);
  return {begin, std::max(begin, std::min(end, out))};
}

absl::StatusOr<Window> ResolveWindow(const Attributes& attrs, std::span<const int64_t> in, std::span<const int64_t> kernel) {
  MGE_CHECK(in.size() == kernel.size());
  MGE_ASSIGN_OR_RETURN(Parameters p, ReadParameters(attrs, kernel));
  const bool ceil_mode = attrs.Int("ceil_mode") != 0;
  Window window(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    WindowAxis& axis = window[i];
    axis = {.in = in[i], .out = kUnknownDim, .kernel = kernel[i], .stride = p.strides[i], .dilation = p.dilations[i]};
    if (p.auto_pad == AutoPad::kNotSet) {
      axis.pad_begin = p.pads[i];
      axis.pad_end = p.pads[i + in.size()];
    }
    if (axis.in == kUnknownDim || axis.kernel == kUnknownDim) continue;
    if (axis.in > INT64_MAX / 4) return BadNode(fmt::format("input size {} is too large for a window", axis.in));

    if (IsSame(p.auto_pad)) {
      axis.out = CeilDiv(axis.in, axis.stride);
      int64_t total = std::max<int64_t>((axis.out - 1) * axis.stride + axis.Extent() - axis.in, 0);
      SplitPads(total, p.auto_pad == AutoPad::kSameUpper, axis);
      continue;
    }
    const int64_t room = axis.in + axis.pad_begin + axis.pad_end - axis.Extent();
    axis.out = (ceil_mode ? CeilDiv(room, axis.stride) : room / axis.stride) + 1;
    // With ceil_mode, even the first window may exceed the padded input. An output of size 0 is valid.
    if (room < 0 && (!ceil_mode || axis.out < 0)) {
      return BadNode(
          fmt::format("the kernel does not fit: {} taps with dilation {} span {}, but the input "
                      "has {} + pads [{},{}] = {} along "
                      "spatial axis {}",
                      axis.kernel, axis.dilation, axis.Extent(), axis.in, axis.pad_begin, axis.pad_end,
                      axis.in + axis.pad_begin + axis.pad_end, i));
    }
    // With ceil_mode, the last window must begin in the input or in the padding before it.
    if (ceil_mode && axis.out > 1 && (axis.out - 1) * axis.stride >= axis.in + axis.pad_begin) --axis.out;
  }
  return window;
}

absl::StatusOr<Window> ResolveTransposedWindow(const Attributes& attrs, std::span<const int64_t> in,
                                               std::span<const int64_t> kernel) {
  MGE_CHECK(in.size() == kernel.size());
  const size_t n = in.size();
  MGE_ASSIGN_OR_RETURN(Parameters p, ReadParameters(attrs, kernel));
  MGE_ASSIGN_OR_RETURN(Ints output_padding, ReadList(attrs, "output_padding", n, 0, 0));
  // Some exporters write the complete output shape, with batch and channels.
  Ints output_shape = attrs.IntList("output_shape");
  if (output_shape.size() == n + 2) output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
  if (!output_shape.empty() && output_shape.size() != n) {
    return BadNode(
        fmt::format("attribute output_shape has {} values; the input's rank requires {}", output_shape.size(), n));
  }
  Window window(n);
  for (size_t i = 0; i < n; ++i) {
    WindowAxis& axis = window[i];
    axis = {.in = kUnknownDim, .out = in[i], .kernel = kernel[i], .stride = p.strides[i], .dilation = p.dilations[i]};
    if (p.auto_pad == AutoPad::kNotSet) {
      axis.pad_begin = p.pads[i];
      axis.pad_end = p.pads[i + n];
    }
    if (!output_shape.empty() && (output_shape[i] < 1 || output_shape[i] > INT64_MAX / 4)) {
      return BadNode(fmt::format("attribute output_shape = [{}]: {} is outside of 1..{}", fmt::join(output_shape, ","),
                                 output_shape[i], INT64_MAX / 4));
    }
    if (!output_shape.empty()) axis.in = output_shape[i];
    if (axis.out == kUnknownDim || axis.kernel == kUnknownDim) continue;

    if (axis.out > (INT64_MAX / 4) / axis.stride) {
      return BadNode(fmt::format("input size {} times stride {} is too large for a window", axis.out, axis.stride));
    }
    if (axis.out == 0) {
      return BadNode(fmt::format("the input has size 0 along spatial axis {}; it must be at least 1", i));
    }
    int64_t full = (axis.out - 1) * axis.stride + axis.Extent() + output_padding[i];
    if (!output_shape.empty() || IsSame(p.auto_pad)) {
      if (output_shape.empty()) axis.in = axis.out * axis.stride;
      SplitPads(std::max<int64_t>(full - axis.in, 0), p.auto_pad == AutoPad::kSameUpper, axis);
    } else {
      axis.in = full - axis.pad_begin - axis.pad_end;
    }
    if (axis.in < 1) {
      return BadNode(fmt::format("the output is empty along spatial axis {}: {} - pads [{},{}] = {}", i, full,
                                 axis.pad_begin, axis.pad_end, axis.in));
    }
  }
  return window;
}

void NormalizeWindow(Attributes& attrs, const OpDef& def, size_t axes) {
  for (const Attr& attr : def.attrs) {
    const bool pads = attr.name == "pads";
    if (!pads && attr.name != "strides" && attr.name != "dilations") continue;
    if (attrs.IntList(attr.name).empty())
      attrs.SetImplied(std::string(attr.name), Ints(pads ? 2 * axes : axes, pads ? 0 : 1));
  }
  if (attrs.Text("auto_pad") == "VALID") SetPads(attrs, Ints(2 * axes, 0));
}

void NormalizeWindow(Attributes& attrs, const OpDef& def, const Window& window) {
  NormalizeWindow(attrs, def, window.size());
  const std::string mode = attrs.Text("auto_pad");
  const bool known =
      std::ranges::all_of(window, [](const WindowAxis& a) { return a.in != kUnknownDim && a.out != kUnknownDim; });
  if (known && (mode == "SAME_UPPER" || mode == "SAME_LOWER")) SetPads(attrs, PadsOf(window));
}

Ints PadsOf(const Window& window) {
  Ints pads;
  for (const WindowAxis& axis : window) pads.push_back(axis.pad_begin);
  for (const WindowAxis& axis : window) pads.push_back(axis.pad_end);
  return pads;
}

void SetPads(Attributes& attrs, Ints pads) {
  attrs.Set("pads", std::move(pads));
  attrs.Remove("auto_pad");
  attrs.SetImplied("auto_pad", std::string("NOTSET"));
}

absl::StatusOr<Ints> KernelShape(const Attributes& attrs, size_t axes) {
  if (attrs.IntList("kernel_shape").empty()) return BadNode("attribute kernel_shape is missing");
  return ReadList(attrs, "kernel_shape", axes, 1, 1);
}

Shape WindowOutputs(const Window& window) {
  Shape sizes;
  for (const WindowAxis& axis : window) sizes.push_back(axis.out);
  return sizes;
}

Shape WindowInputs(const Window& window) {
  Shape sizes;
  for (const WindowAxis& axis : window) sizes.push_back(axis.in);
  return sizes;
}

void CollectTapRows(const Window& window, std::span<const int64_t> index, std::vector<TapRow>& rows) {
  rows.assign(1, TapRow{});
  for (size_t d = 0; d < index.size(); ++d) {
    const IndexRange taps = window[d].TapsInside(index[d]);
    int64_t in_stride = 1, w_stride = 1;
    for (size_t j = d + 1; j < window.size(); ++j) {
      in_stride *= window[j].in;
      w_stride *= window[j].kernel;
    }
    std::vector<TapRow> next;
    for (const TapRow& row : rows) {
      for (int64_t k = taps.begin; k < taps.end; ++k) {
        next.push_back({row.input + window[d].Position(index[d], k) * in_stride, row.weights + k * w_stride});
      }
    }
    rows = std::move(next);
  }
}

bool IsPointwise(const Window& window) {
  return std::all_of(window.begin(), window.end(), [](const WindowAxis& a) {
    return a.kernel == 1 && a.stride == 1 && a.pad_begin == 0 && a.pad_end == 0;
  });
}

}  // namespace mge

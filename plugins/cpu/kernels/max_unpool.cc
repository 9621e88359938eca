// SPDX-License-Identifier: Apache-2.0
// MaxUnpool of numbers of 2, 4 and 8 bytes whose output has the shape that the indices refer to.
#include <cstring>
#include <string>

#include "mge/plugin/problems/window.hpp"
#include "support/kernel.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

struct Args {
  Slot x, indices, y;
  int64_t inputs, outputs, bytes;
};

template <typename T>
void Scatter(const T* x, const int64_t* indices, int64_t n, T* y) {
  for (int64_t i = 0; i < n; ++i) y[indices[i]] = x[i];
}

mge_code Launch(const Args& a, const mge_run* run) {
  auto* indices = At<const int64_t>(run, a.indices);
  for (int64_t i = 0; i < a.inputs; ++i) {
    if (indices[i] < 0 || indices[i] >= a.outputs) {
      return Report(run->error, MGE_OUT_OF_RANGE,
                    "MaxUnpool: index " + std::to_string(indices[i]) + " is outside of the " + std::to_string(a.outputs) +
                        " elements of the output");
    }
  }
  char* y = At<char>(run, a.y);
  const char* x = At<char>(run, a.x);
  std::memset(y, 0, static_cast<size_t>(a.outputs * a.bytes));
  auto scatter = [&](auto tag) {
    using T = decltype(tag);
    Scatter(reinterpret_cast<const T*>(x), indices, a.inputs, reinterpret_cast<T*>(y));
  };
  if (a.bytes == 2) scatter(uint16_t());
  if (a.bytes == 4) scatter(uint32_t());
  if (a.bytes == 8) scatter(uint64_t());
  return MGE_OK;
}

// Returns whether the output has the sizes that strides, pads and kernel give. A given output_shape may be larger; indices then
// refer to another shape than the output's.
bool HasPooledShape(const Node& n) {
  WindowAxis axes[3];
  if (!ReadWindow(n, n.output(0), n.input(0), n.Ints("kernel_shape"), axes).ok()) return false;
  for (const WindowAxis& a : axes) {
    if ((a.out - 1) * a.stride - a.pad_begin - a.pad_end + a.kernel != a.in) return false;
  }
  return true;
}

struct MaxUnpoolRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    const Node n = p.node();
    if (!HasPooledShape(n)) return offers.Refuse("the output has another shape than the indices refer to");
    constexpr double kNs = 1.2;  // of an element
    const double us = StreamUs(static_cast<double>(n.input(0).bytes() + n.input(1).bytes() + n.output(0).bytes())) +
                      1e-3 * kNs * static_cast<double>(n.input(0).elements());
    offers.Add({.id = "cpu.max_unpool", .attributes = kExact, .cost_us = us});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    const Node n = p.node();
    const Value x = n.input(0), y = n.output(0);
    const Args a = {{}, {}, {}, static_cast<int64_t>(x.elements()), static_cast<int64_t>(y.elements()), SizeOf(x.dtype())};
    return MakeSimple<Args, Launch>([a, xi = p.operand(0, 0), ii = p.operand(0, 1)](const Binding& b) {
      Args out = a;
      out.x = b.input(xi);
      out.indices = b.input(ii);
      out.y = b.output(0);
      return out;
    });
  }
};

constexpr KernelRow kRows[] = {Row<MaxUnpoolRow>("MaxUnpool")};

}  // namespace

MGE_KERNELS(max_unpool) = kRows;

}  // namespace mge::cpu

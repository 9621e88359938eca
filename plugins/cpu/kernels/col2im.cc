// SPDX-License-Identifier: Apache-2.0
// Col2Im with one to three spatial dimensions, float32 and float64.
#include "mge/plugin/problems/window.hpp"
#include "support/kernel.h"
#include "support/work.h"
#include "vec/fold.h"

namespace mge::cpu {
namespace {

struct Args {
  void (*fn)(const FoldTask&, int64_t, int64_t);
  FoldTask task;
  Slot x, y;
  Chunks planes;
};

mge_code Launch(const Args& a, const mge_run* run) {
  FoldTask task = a.task;
  task.columns = At<char>(run, a.x);
  task.image = At<char>(run, a.y);
  ForChunks(run, a.planes,
            [&](uint64_t begin, uint64_t end) { a.fn(task, static_cast<int64_t>(begin), static_cast<int64_t>(end)); });
  return MGE_OK;
}

double SerialUs(const Node& n, const WindowAxis& columns) {
  const double elements = static_cast<double>(n.input(0).elements());
  constexpr double kNs = 0.15, kStridedNs = 1.0;  // of an element
  return StreamUs(static_cast<double>(n.input(0).bytes() + n.output(0).bytes())) +
         1e-3 * elements * (columns.stride == 1 ? kNs : kStridedNs);
}

struct Col2ImRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    const Node n = p.node();
    const mge_dtype type = n.input(0).dtype();
    if (type != MGE_DTYPE_F32 && type != MGE_DTYPE_F64) return offers.Refuse("only float32 and float64");
    WindowAxis axes[3];
    if (Result r = ReadCol2Im(n, axes); !r.ok()) return offers.Refuse(r.text());
    Add(offers, AllowedIsa(), {.id = "cpu.col2im", .attributes = kExact, .cost_us = RunUs(p, SerialUs(n, axes[2]))});
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    const Node n = p.node();
    WindowAxis axes[3];
    if (!ReadCol2Im(n, axes).ok()) return nullptr;
    Args a = {};
    const FoldTable& table = Fold(IsaOf(c));
    a.fn = n.input(0).dtype() == MGE_DTYPE_F32 ? table.f32 : table.f64;
    for (int d = 0; d < 3; ++d) {
      const WindowAxis& axis = axes[d];
      a.task.in[d] = axis.in;
      a.task.out[d] = axis.out;
      a.task.kernel[d] = axis.kernel;
      a.task.stride[d] = axis.stride;
      a.task.dilation[d] = axis.dilation;
      a.task.pad[d] = axis.pad_begin;
    }
    const Value y = n.output(0);
    const auto planes = y.elements() ? static_cast<uint64_t>(y.dim(0) * y.dim(1)) : 0;
    a.planes = SplitWork(planes, planes ? SerialUs(n, axes[2]) / static_cast<double>(planes) : 0);
    return MakeSimple<Args, Launch>([a](const Binding& b) {
      Args out = a;
      out.x = b.input(0);
      out.y = b.output(0);
      return out;
    });
  }
};

constexpr KernelRow kRows[] = {Row<Col2ImRow>("Col2Im")};

}  // namespace

MGE_KERNELS(col2im) = kRows;

}  // namespace mge::cpu

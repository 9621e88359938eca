// SPDX-License-Identifier: Apache-2.0
// The kernels: the rows of plugins/gpu, and the wrong kernel if the setting requests it.
#include "handles.h"
#include "kernels/wrong.h"
#include "plugins/gpu/launch.h"

namespace mge::virtual_gpu {
namespace {

using Rows = KernelTable<gpu::KernelRows>;

// Forwards the rows' offers and refusals, and counts the offers.
struct Counter {
  const mge_candidate_sink* sink;
  uint64_t offers = 0;
};

mge_code Enumerate(mge_device* device, const mge_problem* problem, const mge_constraints* constraints,
                   const mge_candidate_sink* sink, mge_error* error) noexcept {
  if (!CurrentOptions().wrong_kernel) return Rows::Enumerate(device, problem, constraints, sink, error);
  return Guard(error, [&] {
    Counter counter = {sink};
    mge_candidate_sink counting = {sizeof(counting), 0, &counter,
                                   [](void* self, const mge_candidate* candidate) {
                                     auto* c = static_cast<Counter*>(self);
                                     ++c->offers;
                                     c->sink->offer(c->sink->self, candidate);
                                   },
                                   [](void* self, const mge_text* kernel, const mge_text* reason) {
                                     auto* c = static_cast<Counter*>(self);
                                     c->sink->refuse(c->sink->self, kernel, reason);
                                   }};
    mge_code code = Rows::Enumerate(device, problem, constraints, &counting, error);
    if (code == MGE_OK && counter.offers) OfferWrong(problem, constraints, sink);
    return code;
  });
}

mge_code Prepare(mge_device* device, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                 mge_error* error) noexcept {
  if (!Covers(candidate, &mge_candidate::token) || candidate->token != kWrongToken)
    return Rows::Prepare(device, problem, candidate, out, error);
  return Guard(error, [&] {
    KernelPtr kernel = MakeWrong(problem);
    mge_prepared made = {};
    made.args_bytes = kernel->args_bytes();
    made.kernel = reinterpret_cast<mge_kernel*>(kernel.release());
    Fill(out, made);
    return MGE_OK;
  });
}

}  // namespace

constinit const mge_kernel_api kKernelTable = [] {
  mge_kernel_api table = Rows::Api("1");
  table.enumerate = Enumerate;
  table.prepare = Prepare;
  return table;
}();

}  // namespace mge::virtual_gpu

// SPDX-License-Identifier: Apache-2.0
// Kernels, with the faults of the mutants. A launch looks up the operands' addresses; the queue computes later.
#pragma once

#include <unistd.h>
#include <xmmintrin.h>

#include <cfenv>
#include <cmath>
#include <future>
#include <string>

#include "devices.h"

namespace mutant {

// Attributes of all kernels. MGE_KERNEL_ALLOCATES, because queues allocate memory for enqueued work.
inline constexpr uint64_t kSafe = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_CAPTURE_SAFE | MGE_KERNEL_ALLOCATES;

inline std::atomic<bool> cancelled_for_good = false;

inline bool Cancelled(const mge_run* run) {
  if (*run->cancel && Is("stays_cancelled")) cancelled_for_good = true;
  return cancelled_for_good || *run->cancel;
}

inline Result Launch(const mge_run* run, Work work) {
  if (Is("noisy_driver")) mge_mutant_driver_works();
  if (!run->queue) return work();
  auto& queue = mge::QueueOf<Queue>(run);
  if (Is("works_later")) {
    return queue.Enqueue([run, begun = *run, operands = Use::Of(run->bases[0], 1), work = std::move(work)] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (run->bases != begun.bases || run->cancel != begun.cancel || run->error != begun.error) std::abort();
      return *run->cancel ? Result(MGE_CANCELLED, "the run was cancelled") : work();
    });
  }
  if (Is("cancels_by_fence")) {
    const int32_t* cancel = queue.Capturing() ? nullptr : run->cancel;  // a replay does not belong to this run
    return queue.Enqueue([cancel, work = std::move(work)] {
      return cancel && *cancel ? Result(MGE_CANCELLED, "the run was cancelled") : work();
    });
  }
  if (Cancelled(run)) return cancelled_for_good ? Result() : Result(MGE_CANCELLED, "the run was cancelled");
  if (Is("runs_in_caller")) return work();
  if (Is("runs_beside")) {  // the queue waits for it, but it does not wait for the queue
    auto done = std::async(std::launch::async, std::move(work)).share();
    return queue.Enqueue([done] { return done.get(); });
  }
  return queue.Enqueue(std::move(work));
}

constexpr uint64_t kColumns = 7;
inline uint64_t Padding() { return Is("leaves_padding") ? 64 : 0; }  // bytes behind the elements, never written

struct Layouts {
  static Result Describe(Device&, const mge::LayoutQuestion& question, mge_layout_info* out) {
    if (question.layout.opaque_id != kColumns && !Is("describes_anything"))
      return {MGE_INVALID_ARGUMENT, "there is number 7"};
    out->bytes = 4 + (Is("describes_wrong_size") ? 1 : 0);
    for (int64_t d : question.dims) out->bytes *= static_cast<uint64_t>(d);
    out->bytes += Padding();
    if (!Is("describes_no_name")) out->name = mge::Text("columns");
    return {};
  }
};

inline volatile float shared_elements[70001];
inline std::atomic<int> busy;  // number of Relu runs in progress

struct Relu {
  static constexpr const char* kOp = "Relu";
  static void Offer(const mge::Problem& p, mge::Offers& offers) {
    if (p.node_count() != 1 || p.input(0).dtype() != MGE_DTYPE_F32 || p.adds(0))
      return Is("says_nothing") ? void() : offers.Refuse("only one Relu of float32");
    if (Is("twin_ids")) offers.Add({.id = "mutant.relu", .rank = 7, .attributes = kSafe});
    mge::Candidate c = {.id = Is("nameless_candidate") ? "" : "mutant.relu",
                        .attributes = kSafe | MGE_KERNEL_BATCH_INVARIANT,
                        .in_place = {{0, 0}}};
    if (Is("ids_of_a_process")) c.id += "." + std::to_string(getpid());
    if (Is("costs_nothing_known")) c.cost_us = std::nan("");
    if (Is("reads_args_late")) c.attributes |= MGE_KERNEL_READS_ARGS_FIRST;
    if (Is("allocates_silently") || Is("allocating_driver")) c.attributes &= ~MGE_KERNEL_ALLOCATES;
    offers.Add(c);
    if (p.input(0).rank() != 2) return;
    int32_t columns[] = {1, 0};
    offers.Add({.id = "mutant.relu.columns",
                .rank = 1,
                .attributes = kSafe,
                .variant = 1,
                .inputs = {mge::Permuted(columns)},
                .outputs = {mge::Permuted(columns)}});
    const mge_layout own = mge::Opaque(kColumns, 4 * p.input(0).elements() + Padding());  // the same layout as an opaque one
    offers.Add({.id = "mutant.relu.own", .rank = 2, .attributes = kSafe, .variant = 1, .inputs = {own}, .outputs = {own}});
  }
  Relu(const mge::Problem& p, const mge::Candidate&) : count(p.input(0).elements()) {
    if (Is("kernel_leak")) keep = ::new char[100];
    if (Is("large_kernel_leak")) keep = ::new char[1 << 20];  // so large that malloc maps it separately
  }
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  Result Launch(const mge_run* run) const {
    const bool splits = count > 10000 && run->width > 1;
    if (splits && Is("fails_when_split") && *run->cancel) return {MGE_INTERNAL, "a part of the work was not done"};
    auto *from = mge::At<float>(run, x), *to = mge::At<float>(run, y);
    if (Is("needs_alignment") && reinterpret_cast<uintptr_t>(from) % 16) from += 1;
    if (Is("fails_without_text") && from == to) return {MGE_INTERNAL, ""};
    if (Is("allocating_driver")) mge_mutant_driver_works();
    if (Is("leaves_rounding")) std::fesetround(FE_UPWARD);
    if (Is("leaves_flushing")) _mm_setcsr(_mm_getcsr() | 0x8040);
    return mutant::Launch(run, [args = this, n = count, from, to] {
      if (Is("reads_args_late") && args->count != n) return Result(MGE_INTERNAL, "the arguments of a launch have changed");
      const bool alone = ++busy == 1;
      if (!alone && Is("skips_when_busy")) return --busy, Result();
      for (uint64_t i = 0; i < n && Is("shared_elements"); ++i) shared_elements[i] = from[i];
      for (uint64_t i = 0; i < (Is("first_chunk_only") ? std::min<uint64_t>(n, 16384) : n); ++i) {
        const float x = Is("shared_elements") ? shared_elements[i] : from[i];
        to[Is("index_in_float") ? static_cast<uint64_t>(static_cast<float>(i)) : i] =
            x < 0 || (Is("drops_nan") && std::isnan(x)) ? 0 : x;
        if (Is("blocks_of_16_bits") && i == uint64_t{65535} * 256 - 1) break;
      }
      if (Is("copies_too_far")) reinterpret_cast<char*>(to + n)[0] = reinterpret_cast<char*>(from + n)[0];
      if (Is("one_byte_too_far")) reinterpret_cast<char*>(to + n)[0] = 0x11;
      if (Is("leaves_memory") && n) *reinterpret_cast<volatile float*>(uintptr_t{64}) = 1;
      if (Is("writes_input") && n && from != to) from[0] += 1;
      --busy;
      return Result();
    });
  }
  uint64_t count;
  mge::Slot x, y;
  char* keep = nullptr;
};

// Offers faulty claims for MatMul followed by Relu, if the library is one of the mutants named below.
// "claims_any_rank" also claims ranks that no kernel computes.
inline void ClaimMatMulRelu(const mge::Pattern& graph, mge::ClaimList& claims) {
  if (Is("claims_crashes")) std::abort();
  static const mge::PatternNode matmul_relu = mge::Op("Relu", {mge::Op("MatMul")});
  for (const mge::Match& m : graph.FindAll(matmul_relu)) {
    if (Is("claims_any_rank")) claims.Offer("matmul_relu", m.nodes, 1);
    if (Is("claims_one_node")) claims.Offer("relu", std::span(m.nodes).last(1), 1);
    if (Is("claims_no_name")) claims.Offer("", m.nodes, 1);
    if (Is("claims_no_number")) claims.Offer("matmul_relu", m.nodes, std::nan(""));
    if (Is("claims_a_loss")) claims.Offer("matmul_relu", m.nodes, -1);
  }
}

// Offers MatMul and the Add of a constant row for the mutant "bias_comes_second", and of a constant with one row per batch
// for "bias_of_one_batch", whose kernel reads the first of them only.
inline void ClaimBias(const mge::Pattern& graph, mge::ClaimList& claims) {
  const int rank = Is("bias_of_one_batch") ? 3 : 1;
  if (rank == 1 && !Is("bias_comes_second")) return;
  static const mge::PatternNode add = std::move(mge::Op("Add", {mge::Op("MatMul"), mge::Any()})).Commutes();
  for (const mge::Match& m : graph.FindAll(add)) {
    const mge::Node node = graph.node(m.root);
    for (int i : {0, 1}) {
      if (node.input(i).is_constant() && node.input(i).rank() == rank) claims.Offer("matmul_bias", m.nodes, 1);
    }
  }
}

// Offers Add and Relu of every type for the mutant "claims_any_type", which computes float32 only.
inline void ClaimAddRelu(const mge::Pattern& graph, mge::ClaimList& claims) {
  if (!Is("claims_any_type")) return;
  static const mge::PatternNode relu = mge::Op("Relu", {mge::Op("Add")});
  for (const mge::Match& m : graph.FindAll(relu)) {
    if (graph.node(m.root).input(0).dtype() != MGE_DTYPE_F32) claims.Offer("add_relu", m.nodes, 1);
  }
}

// Offers Add followed by Neg for the mutant "fuses_wrong", whose kernel leaves out the Neg.
inline void ClaimAddNeg(const mge::Pattern& graph, mge::ClaimList& claims) {
  if (!Is("fuses_wrong")) return;
  static const mge::PatternNode add_neg = mge::Op("Neg", {mge::Op("Add")});
  for (const mge::Match& m : graph.FindAll(add_neg)) claims.Offer("add_neg", m.nodes, 1);
}
inline bool IsAlone(const mge::Problem& p) { return p.node_count() == 1 || (Is("fuses_wrong") && p.last().Is("Neg")); }

// A kernel of Add that broadcasts up to six dimensions.
struct Add {
  static constexpr const char* kOp = "Add";
  static constexpr uint64_t kAttributes = kSafe;
  static constexpr const char* kId = "mutant.add";
  static void Describe(const mge::Problem&, mge::Candidate& c) {
    if (Is("malformed_offer")) c.in_place = {{3, 7}};
  }
  static mge::Support Supports(const mge::Problem& p) {
    if (!IsAlone(p)) return mge::No("only one Add");
    const mge_dtype type = p.input(0).dtype();
    if (type != MGE_DTYPE_F32 && type != MGE_DTYPE_I32 && type != MGE_DTYPE_I64)
      return mge::No("only float32, int32 and int64");
    return p.output(0).rank() <= kRank ? mge::Yes() : mge::No("only six dimensions");
  }
  explicit Add(const mge::Problem& p) : type(p.input(0).dtype()), adds(p.adds(0)) {
    if (Is("keeps_constant_pointer") && p.input(p.operand(0, 1)).is_constant())
      kept = p.input(p.operand(0, 1)).data<std::byte>().data();
    int rank = p.output(0).rank();
    for (int d = 0; d < rank; ++d) size[kRank - rank + d] = p.output(0).dim(d);
    if (rank == 0 && Is("scalars_unwritten")) size[0] = 0;
    second = p.operand(0, 1);
    for (int i = 0; i < 2; ++i) {
      mge::Value v = p.node().input(i);
      int64_t stride = 1;
      for (int d = v.rank() - 1; d >= 0; --d) {
        step[i][kRank - v.rank() + d] = v.dim(d) == 1 ? 0 : stride;
        stride *= v.dim(d);
      }
      if (Is("broadcasts_four")) step[i][0] = step[i][1] = 0;
    }
    constant = p.input(second).is_constant();
    if (Is("wrong_broadcast") && size[5] % 2 == 1 && step[1][5] == 1 && step[1][4] == 0) step[1][5] = 0;
    if (Is("prepares_in_shared_memory")) {  // two threads that prepare at once get each other's sizes
      static int64_t shared[kRank];
      std::copy(size, size + kRank, shared);
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      std::copy(shared, shared + kRank, size);
    }
  }
  void Bind(const mge::Binding& b) {
    x = b.input(0), y = b.output(0);
    z = second == 0 && Is("two_operands_always") ? y : b.input(second);
  }
  template <typename T>
  void Compute(const T* a, const T* b, T* out) const {
    const bool ignores_add = Is("ignores_write_add"), narrow = Is("adds_in_32_bits"), rounds = Is("adds_in_double");
    int64_t count = 1;
    for (int64_t n : size) count *= n;
    for (int64_t at = 0; at < count; ++at) {
      int64_t from[2] = {}, rest = at;
      for (int d = kRank - 1; d >= 0; rest /= size[d--])
        for (int i : {0, 1}) from[i] += rest % size[d] * step[i][d];
      const T left = a[from[0]], right = b[from[1]];
      T sum = left;
      if constexpr (std::is_integral_v<T>) {  // wraps around
        using U = std::make_unsigned_t<T>;
        sum = static_cast<T>(static_cast<U>(left) + static_cast<U>(right));
        if (narrow) sum = static_cast<int32_t>(sum);
        if (rounds) sum = static_cast<T>(static_cast<U>(static_cast<T>(static_cast<double>(left))) + static_cast<U>(right));
      } else {
        sum = left * static_cast<T>(first_sign) + right * static_cast<T>(sign);
      }
      out[at] = adds && !ignores_add ? static_cast<T>(out[at] + sum) : sum;
    }
  }
  Result Launch(const mge_run* run) const {
    auto *a = mge::At<char>(run, x), *b = mge::At<char>(run, z), *out = mge::At<char>(run, y);
    if (kept) b = static_cast<char*>(const_cast<void*>(static_cast<const void*>(kept)));
    if (Is("needs_aligned_constants") && constant && reinterpret_cast<uintptr_t>(b) % 16) b += 4;
    return mutant::Launch(run, [self = *this, a, b, out] {
      if (self.type == MGE_DTYPE_I32)
        self.Compute(reinterpret_cast<const int32_t*>(a), reinterpret_cast<const int32_t*>(b),
                     reinterpret_cast<int32_t*>(out));
      else if (self.type == MGE_DTYPE_I64)
        self.Compute(reinterpret_cast<const int64_t*>(a), reinterpret_cast<const int64_t*>(b),
                     reinterpret_cast<int64_t*>(out));
      else
        self.Compute(reinterpret_cast<const float*>(a), reinterpret_cast<const float*>(b), reinterpret_cast<float*>(out));
      return Result();
    });
  }
  static constexpr int kRank = 6;
  mge_dtype type;
  bool adds;
  int first_sign = 1, sign = 1;
  int second = 1;  // operand number of the second input; 0 for x + x, because a value is listed once
  bool constant;   // the second operand is a constant
  const std::byte* kept = nullptr;
  int64_t size[kRank] = {1, 1, 1, 1, 1, 1}, step[2][kRank] = {};
  mge::Slot x, z, y;
};

inline float shared_row[4096];

// A product of matrices that computes one row at a time in the workspace. Packs a constant right operand by columns.
struct MatMul {
  static constexpr const char* kOp = "MatMul";
  static constexpr const char* kId = "mutant.matmul";
  static constexpr uint64_t kAttributes = kSafe | MGE_KERNEL_BATCH_INVARIANT;
  static mge::Support Supports(const mge::Problem& p) {
    const bool taken = p.node_count() == 1 || (Is("claims_any_rank") && p.last().Is("Relu")) || TakesBias(p);
    const int rank = p.node().input(0).rank();
    bool flat = taken && p.input_count() == (TakesBias(p) ? 3 : 2) && p.node().input(1).rank() == 2 &&
                (rank == 2 || (rank == 3 && !Is("claims_any_rank")));
    if (!flat || p.input(0).dtype() != MGE_DTYPE_F32 || p.adds(0))
      return mge::No("only products of two matrices of float32");
    return p.output(0).dim(-1) <= 4096 ? mge::Yes() : mge::No("only up to 4096 columns");
  }
  // The second node is an Add, and its constant is taken to be its second operand.
  static bool TakesBias(const mge::Problem& p) {
    return (Is("bias_comes_second") || Is("bias_of_one_batch")) && p.last().Is("Add") && p.node_count() == 2;
  }
  static void Describe(const mge::Problem& p, mge::Candidate& c) {
    c.workspace = static_cast<uint64_t>(p.output(0).dim(-1)) * sizeof(float);
    if (Is("in_place_wrong") && p.output(0).bytes() <= p.input(1).bytes()) c.in_place = {{0, 1}};
    if (Is("lays_out_constants") && p.input(1).is_constant()) {
      c.inputs = {mge::PlainLayout(), mge::Opaque(kColumns, p.input(1).bytes())};
    }
  }
  explicit MatMul(const mge::Problem& p)
      : k(p.node().input(0).dim(-1)),
        n(p.node().input(1).dim(1)),
        packed(p.input(1).is_constant()),
        relu(p.node_count() == 2 && !TakesBias(p)) {
    for (int d = 0; d + 1 < p.node().input(0).rank(); ++d) m *= p.node().input(0).dim(d);
    if (TakesBias(p)) bias_at = std::max(1, p.operand(1, 1));
    if (Is("device_leak")) Memory::in_use += 65536;
  }
  uint64_t workspace_bytes() const {
    uint64_t exact = static_cast<uint64_t>(n) * sizeof(float);
    return Is("workspace_lies") ? exact - 4 : Is("workspace_over_bound") ? exact + 64 : exact;
  }
  uint64_t prepack_bytes(int input) const {
    const uint64_t more = Is("form_lies") ? 1 : 0;
    return input == 1 && packed && !Is("lays_out_constants") ? (static_cast<uint64_t>(k * n) + more) * sizeof(float) : 0;
  }
  void Pack(const float* b, float* to) const {
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < k; ++i) to[j * k + i] = b[i * n + j];
  }
  Result Prepack(int, const void* from, void* to) const {
    if (Is("prepack_late"))
      late = static_cast<const float*>(from);
    else
      Pack(static_cast<const float*>(from), static_cast<float*>(to));
    if (Is("prepack_too_far")) static_cast<float*>(to)[k * n] = 1;
    static std::atomic<int> times = 0;
    if (Is("form_lies")) static_cast<float*>(to)[k * n] = static_cast<float>(++times);
    return {};
  }
  Result PrepackOn(int, mge_queue* queue, const void* from, void* to) const {
    if (Is("prepack_late") || Is("form_lies")) return {MGE_UNIMPLEMENTED, "packs on the host only"};
    auto* x = static_cast<const float*>(from);
    auto* y = static_cast<float*>(to);
    return mge::QueueOf<Queue>(queue).Enqueue([self = *this, x, y]() -> Result {
      self.Pack(x, y);
      if (Is("packs_otherwise_on_queue")) std::swap(y[0], y[1]);
      if (Is("packs_too_far_on_queue")) y[self.k * self.n] = 1;
      return {};
    });
  }
  std::string prepack_form(int) const { return "columns " + std::to_string(k) + "x" + std::to_string(n); }
  void Bind(const mge::Binding& b) {
    x = b.input(0), z = b.input(1), y = b.output(0), w = b.workspace();
    if (bias_at) bias = b.input(bias_at);
  }
  Result Launch(const mge_run* run) const {
    auto *a = mge::At<float>(run, x), *b = mge::At<float>(run, z), *c = mge::At<float>(run, y),
         *row = mge::At<float>(run, w);
    if (Is("shared_scratch")) row = shared_row;
    const float* add = bias_at ? mge::At<float>(run, bias) : nullptr;
    return mutant::Launch(run, [self = *this, a, b, c, row, add] { return self.Compute(a, b, c, row, add); });
  }
  Result Compute(const float* a, float* b, float* c, float* row, const float* add) const {
    static std::atomic<uint64_t> runs = 0;
    uint64_t number = runs++;
    if (late && packed) Pack(late, b);
    for (int64_t i = 0; i < (Is("first_batch_only") && m > 2 ? m / 2 : m); ++i) {
      if (k == 0 && Is("leaves_empty_product")) continue;
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        bool backwards = Is("batch_dependent") && m == 1;
        for (int64_t l = 0; l < (Is("product_of_512") ? std::min<int64_t>(k, 512) : k); ++l) {
          int64_t t = backwards ? k - 1 - l : l;
          sum += a[i * k + t] * (packed ? b[j * k + t] : b[t * n + j]);
        }
        row[j] = sum + (add ? add[j] : 0);
      }
      if (Is("not_deterministic") && number % 2) row[0] += row[0] * 1e-6f;
      if (Is("wrong_second_run") && number > 0) row[0] += 1;
      for (int64_t j = 0; j < n; ++j) c[i * n + j] = relu && row[j] < 0 ? 0 : row[j];
    }
    return {};
  }
  int64_t m = 1, k, n;
  bool packed, relu;
  int bias_at = 0;  // 0: there is none
  static inline const float* late = nullptr;
  mge::Slot x, z, y, w, bias;
};

// A sum over axes that are a constant input.
struct ReduceSum {
  static constexpr const char* kOp = "ReduceSum";
  static constexpr const char* kId = "mutant.reduce_sum";
  static constexpr uint64_t kAttributes = kSafe;
  struct State {
    float last = 0;
    char* lost = nullptr;
  };
  static mge::Support Supports(const mge::Problem& p) {
    bool known = p.node_count() == 1 && p.input(0).dtype() == MGE_DTYPE_F32 && !p.adds(0) && p.input(0).rank() <= 4;
    if (!known) return mge::No("only one ReduceSum of float32, of up to four dimensions");
    return p.input_count() == 1 || p.input(1).is_constant() ? mge::Yes() : mge::No("only axes that are constant");
  }
  explicit ReduceSum(const mge::Problem& p) : outputs(p.output(0).elements()) {
    mge::Value v = p.input(0);
    bool summed[4] = {};
    if (Is("sum_last_axis"))
      summed[v.rank() ? v.rank() - 1 : 0] = true;
    else if (p.input_count() == 1)
      std::fill(summed, summed + v.rank(), !p.node().Int("noop_with_empty_axes", 0));
    else
      for (int64_t axis : p.input(1).data<int64_t>()) summed[axis < 0 ? axis + v.rank() : axis] = true;
    uint64_t stride = 1;
    for (int d = v.rank() - 1; d >= 0; --d) {
      size[d] = static_cast<uint64_t>(v.dim(d));
      step[d] = summed[d] ? 0 : stride;
      stride *= summed[d] ? 1 : size[d];
    }
  }
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0), state = b.state_index(); }
  Result Launch(const mge_run* run) const {
    auto *from = mge::At<float>(run, x), *to = mge::At<float>(run, y);
    State* kept = &mge::StateOf<State>(run, state);
    if (Is("launch_leak")) kept->lost = ::new char[1000];
    return mutant::Launch(run, [self = *this, from, to, kept] {
      for (uint64_t i = 0; i < self.outputs; ++i) to[i] = Is("keeps_state") ? kept->last : 0;
      const float* at = from;
      for (uint64_t i = 0; i < self.size[0]; ++i)
        for (uint64_t j = 0; j < self.size[1]; ++j)
          for (uint64_t k = 0; k < self.size[2]; ++k)
            for (uint64_t l = 0; l < self.size[3]; ++l)
              to[i * self.step[0] + j * self.step[1] + k * self.step[2] + l * self.step[3]] +=
                  Is("sum_drops_nan") && std::isnan(*at) ? ++at,
                  0                                      : *at++;
      if (self.outputs) kept->last = to[0];
      if (Is("sums_in_half")) {
        for (uint64_t i = 0; i < self.outputs; ++i) to[i] = std::ldexp(std::round(std::ldexp(to[i], 6)), -6);
      }
      return Result();
    });
  }
  uint64_t outputs;
  uint64_t size[4] = {1, 1, 1, 1}, step[4] = {};
  uint32_t state = 0;
  mge::Slot x, y;
};

// A reorder between the plain layout and the layout by columns.
struct Reorder {
  static constexpr const char* kOp = "Reorder";
  static constexpr const char* kDomain = "mge";
  static constexpr const char* kId = "mutant.reorder";
  static mge::Support Supports(const mge::Problem& p) {
    return p.input(0).rank() == 2 && p.input(0).dtype() == MGE_DTYPE_F32 ? mge::Yes() : mge::No("only matrices of float32");
  }
  explicit Reorder(const mge::Problem& p) : rows(p.input(0).dim(0)), columns(p.input(0).dim(1)) {
    to_plain = mge::IsPlain(p.output(0).layout());
    same = mge::SameLayout(p.input(0).layout(), p.output(0).layout());
  }
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  Result Launch(const mge_run* run) const {
    auto *from = mge::At<float>(run, x), *to = mge::At<float>(run, y);
    auto work = [self = *this, from, to] {
      for (int64_t i = 0; i < self.rows; ++i) {
        for (int64_t j = 0; j < self.columns; ++j) {
          int64_t plain = i * self.columns + j, laid = j * self.rows + i;
          if (Is("reorder_not_inverse") && self.to_plain) laid = plain;
          if (self.same)
            to[plain] = from[plain];
          else if (self.to_plain)
            to[plain] = from[laid];
          else
            to[laid] = from[plain];
        }
      }
      return Result();
    };
    return Is("reorders_in_caller") ? work() : mutant::Launch(run, work);
  }
  int64_t rows, columns;
  bool to_plain, same;
  mge::Slot x, y;
};

inline constexpr mge::KernelRow kRelu = mge::Row<Relu>();
inline constexpr mge::KernelRow kAdd = mge::Row<Add>();
inline constexpr mge::KernelRow kMatMul = mge::Row<MatMul>();
inline constexpr mge::KernelRow kReduceSum = mge::Row<ReduceSum>();
inline constexpr mge::KernelRow kReorder = mge::Row<Reorder>();
inline constexpr mge::KernelRow kMisspelt = [] {
  mge::KernelRow row = kRelu;
  row.op = "Tahn";
  return row;
}();

}  // namespace mutant

// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention of a few new tokens over a cache, as in the generation of text. For many tokens at a time, the products of
// the operator's body are faster.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "mge/plugin/problems/cached_attention.hpp"
#include "support/index.h"
#include "support/kernel.h"
#include "support/work.h"
#include "vec/attention.h"

namespace mge::cpu {
namespace {

constexpr const char* kOp = "GroupQueryAttention";
using enum CachedAttention::Input;

struct Args : CachedAttention {
  Slot in[kInputs], y, keys, values;
  bool has_sink_input;
  void (*attend)(const AttendTask&);
  Chunks copies, blocks;
};

// The keys of one sample: `count` valid ones, of which those from `start` on are new. The first `dropped` earlier ones leave the
// cache. `position` is that of the first new token in its text.
struct Sample {
  int64_t count, start, dropped, position;
};

// Reads the lengths of a sample as the operator defines them.
Sample SampleOf(const Args& a, const mge_run* run, int64_t b, IndexCheck& check) {
  const int64_t total = *At<const int32_t>(run, a.in[kTotal]);
  if (a.window_cache) {
    constexpr int64_t kMaxTokens = std::numeric_limits<int32_t>::max();
    const int64_t tokens = check.Checked(total < 1 ? kMaxTokens : total - 1, kMaxTokens);
    const int64_t count = a.Resident(tokens + 1);
    return {count, count - 1, a.Resident(tokens) - (count - 1), tokens};
  }
  const bool fixed = a.batch == 1 || total == a.queries;
  const int64_t count = fixed ? total : At<const int32_t>(run, a.in[kLengths])[b] + int64_t{1};
  const int64_t start = check.Checked(count - a.queries < 0 ? a.rows : count - a.queries, a.rows - a.queries + 1);
  return {start + a.queries, start, 0, start};
}

// Writes the rotated head to `y`.
void Rotate(const Args& a, const mge_run* run, const float* x, int64_t position, float* y) {
  const float* cos = At<const float>(run, a.in[kCos]) + position * a.half;
  const float* sin = At<const float>(run, a.in[kSin]) + position * a.half;
  const int64_t step = a.interleaved ? 2 : 1, other = a.interleaved ? 1 : a.half;
  for (int64_t i = 0; i < a.half; ++i) {
    const float x1 = x[i * step], x2 = x[i * step + other];
    y[i * step] = x1 * cos[i] - x2 * sin[i];
    y[i * step + other] = x1 * sin[i] + x2 * cos[i];
  }
  std::copy(x + 2 * a.half, x + a.size, y + 2 * a.half);
}

// Returns the position of new token `i` of sample `b` in the table of rotations.
int64_t PositionOf(const Args& a, const mge_run* run, int64_t b, int64_t i, const Sample& s, IndexCheck& check) {
  if (!a.half) return 0;
  const int64_t position = a.has_positions ? At<const int64_t>(run, a.in[kPositions])[b * a.queries + i] : s.position + i;
  return check.Checked(position, a.cos_rows);
}

// Writes the cache of keys or of values of one head: the past, and the new ones.
void WriteCache(const Args& a, const mge_run* run, int64_t b, int64_t head, bool is_key, IndexCheck& check) {
  const Sample s = SampleOf(a, run, b, check);
  float* to = At<float>(run, is_key ? a.keys : a.values) + (b * a.kv_heads + head) * a.rows * a.size;
  if (a.has_past) {
    const float* past =
        At<const float>(run, a.in[is_key ? kPastKey : kPastValue]) + (b * a.kv_heads + head) * a.past * a.size;
    const int64_t kept = a.window_cache ? s.start : a.past;
    if (past + s.dropped * a.size != to) {  // they may overlap
      std::memmove(to, past + s.dropped * a.size, static_cast<size_t>(kept * a.size) * sizeof(float));
    }
  }
  std::fill(to + (a.window_cache ? s.start : a.past) * a.size, to + a.rows * a.size, 0.0f);
  const float* from = a.packed ? At<const float>(run, a.in[kQ]) + (a.heads + (is_key ? 0 : a.kv_heads)) * a.size
                               : At<const float>(run, a.in[is_key ? kK : kV]);
  for (int64_t i = 0; i < a.queries; ++i) {
    const float* x = from + (b * a.queries + i) * a.kv_step() + head * a.size;
    float* y = to + (s.start + i) * a.size;
    if (is_key && a.half) {
      Rotate(a, run, x, PositionOf(a, run, b, i, s, check), y);
    } else {
      std::copy(x, x + a.size, y);
    }
  }
}

// The queries of a group of heads are numbered: head within the group, then token.
void AttendBlock(const Args& a, const mge_run* run, int64_t unit, IndexCheck& check) {
  const int64_t of_group = a.group() * a.queries, blocks = (of_group + kAttendRows - 1) / kAttendRows;
  const int64_t first = unit % blocks * kAttendRows, kv = unit / blocks % a.kv_heads, b = unit / blocks / a.kv_heads;
  const Sample s = SampleOf(a, run, b, check);
  alignas(64) float q[kAttendRows][kAttendSize];
  AttendTask task = {};
  task.rows = static_cast<int>(std::min<int64_t>(kAttendRows, of_group - first));
  task.size = a.size;
  task.k = At<const float>(run, a.keys) + (b * a.kv_heads + kv) * a.rows * a.size;
  task.v = At<const float>(run, a.values) + (b * a.kv_heads + kv) * a.rows * a.size;
  task.softcap = a.softcap;
  task.has_sinks = a.has_sinks;
  for (int r = 0; r < task.rows; ++r) {
    const int64_t head = kv * a.group() + (first + r) / a.queries, i = (first + r) % a.queries, at = s.start + i;
    const float* x = At<const float>(run, a.in[kQ]) + (b * a.queries + i) * a.q_step() + head * a.size;
    if (a.half) {
      Rotate(a, run, x, PositionOf(a, run, b, i, s, check), q[r]);
    } else {
      std::copy(x, x + a.size, q[r]);
    }
    for (int64_t d = 0; d < a.size; ++d) q[r][d] *= a.scale;
    task.q[r] = q[r];
    task.out[r] = At<float>(run, a.y) + ((b * a.queries + i) * a.heads + head) * a.size;
    task.end[r] = a.causal ? at + 1 : s.count;
    if (a.has_sinks) task.sinks[r] = a.has_sink_input ? At<const float>(run, a.in[kSinks])[head] : 0;
    task.begin[r] = a.window ? std::max<int64_t>(0, at - a.window + 1) : 0;
  }
  a.attend(task);
}

mge_code Launch(const Args& a, const mge_run* run) {
  IndexCheck check;
  ForChunks(run, a.copies, [&](uint64_t first, uint64_t last) {
    for (auto u = static_cast<int64_t>(first); u < static_cast<int64_t>(last); ++u) {
      WriteCache(a, run, u / 2 / a.kv_heads, u / 2 % a.kv_heads, u % 2 == 0, check);
    }
  });
  if (check.failed()) return check.Answer(run, kOp);
  ForChunks(run, a.blocks, [&](uint64_t first, uint64_t last) {
    for (auto u = static_cast<int64_t>(first); u < static_cast<int64_t>(last); ++u) AttendBlock(a, run, u, check);
  });
  return check.Answer(run, kOp);
}

// Reads a node, and plans its work. Fails with the reason if it is not supported.
Result Describe(const Problem& p, Isa isa, Args* a, double* serial_us) {
  *a = {};
  if (Result r = ReadCachedAttention(p.node(), a); !r.ok()) return r;
  auto no = [](const char* why) { return Result{MGE_UNIMPLEMENTED, why}; };
  if (p.node().input(kQ).dtype() != MGE_DTYPE_F32) return no("only float32");
  a->has_sink_input = p.node().has_input(kSinks);
  if (a->size > kAttendSize) return no("heads of more than 512 elements");
  if (a->group() * a->queries > 64) return no("so many queries that the products of the body are faster");
  const double floats = static_cast<double>(a->batch * a->kv_heads * a->rows * a->size);
  const double products = 2 * floats * static_cast<double>(a->group() * a->queries);
  const double copy_us = StreamUs(4 * floats * sizeof(float));
  const double attend_us = copy_us / 2 + products / (isa == Isa::kAvx512 ? 16e3 : isa == Isa::kAvx2 ? 8e3 : 2e3);
  const int64_t units = a->batch * a->kv_heads, of_group = (a->group() * a->queries + kAttendRows - 1) / kAttendRows;
  a->copies = SplitWork(static_cast<uint64_t>(2 * units), copy_us / static_cast<double>(std::max<int64_t>(2 * units, 1)));
  a->blocks = SplitWork(static_cast<uint64_t>(units * of_group),
                        attend_us / static_cast<double>(std::max<int64_t>(units * of_group, 1)));
  a->attend = Attention(isa).attend;
  *serial_us = copy_us + attend_us;
  return {};
}

struct GroupQueryAttentionRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    Args a;
    double serial_us = 0;
    const Isa isa = AllowedIsa();
    if (Result r = Describe(p, isa, &a, &serial_us); !r.ok()) return offers.Refuse(r.text());
    Candidate c = {.id = "cpu.group_query_attention", .attributes = kExact, .cost_us = RunUs(p, serial_us)};
    // A cache with room for all keys stays where it is.
    if (a.has_past && a.past == a.rows) {
      c.in_place = {{1, static_cast<uint32_t>(p.operand(0, kPastKey))},
                    {2, static_cast<uint32_t>(p.operand(0, kPastValue))}};
    }
    Add(offers, isa, std::move(c));
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    Args a;
    double serial_us = 0;
    if (!Describe(p, IsaOf(c), &a, &serial_us).ok()) return nullptr;
    int operands[kInputs];
    for (int i = 0; i < kInputs; ++i) operands[i] = p.node().has_input(i) ? p.operand(0, i) : -1;
    return MakeSimple<Args, Launch>([a, operands = std::to_array(operands)](const Binding& b) {
      Args out = a;
      for (size_t i = 0; i < operands.size(); ++i) {
        if (operands[i] >= 0) out.in[i] = b.input(operands[i]);
      }
      out.y = b.output(0);
      out.keys = b.output(1);
      out.values = b.output(2);
      return out;
    });
  }
};

constexpr KernelRow kRows[] = {Row<GroupQueryAttentionRow>(kOp, "com.microsoft")};

}  // namespace

MGE_KERNELS(group_query_attention) = kRows;

}  // namespace mge::cpu

// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/process_sum.h"

#include <cstring>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/element_range.h"
#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kPieceElements = 16384;

// Lets a tensor hold so many elements. Keeps its memory if it is large enough.
absl::Status Reserve(Tensor& tensor, DType dtype, int64_t elements) {
  if (tensor.defined() && tensor.dtype() == dtype && tensor.elements() >= elements) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(tensor, Tensor::Create(dtype, {elements}));
  return absl::OkStatus();
}

}  // namespace

absl::Status ProcessSum::CompareHeaders() const {
  const uint32_t me = group_->rank();
  const Header& mine = memory_->headers[me];
  for (uint32_t r = 0; r < group_->ranks(); ++r) {
    const Header& theirs = memory_->headers[r];
    for (const auto& [what, own, other] : {std::tuple("the number of the step", mine.step, theirs.step),
                                           std::tuple("the number of examples in the batch", mine.examples, theirs.examples),
                                           std::tuple("the number of elements to sum", mine.elements, theirs.elements),
                                           std::tuple("the element type", mine.dtype, theirs.dtype)}) {
      if (own == other) continue;
      return Fail(errors::kRankFailed, "the processes of the training compute different steps",
                  {.what = fmt::format("{} is {} in {}, and {} in {}", what, own, group_->Name(me), other, group_->Name(r)),
                   .fix = "give all processes the same data, batches and checkpoints"});
    }
  }
  return absl::OkStatus();
}

absl::Status ProcessSum::Compare(const Header& mine, const GroupWait& wait) {
  Memory& memory = *memory_;
  const uint32_t ranks = group_->ranks(), me = group_->rank();
  memory.headers.assign(ranks, {});
  memory.headers[me] = mine;
  std::vector<GroupMessage> messages;
  for (uint32_t r = 0; r < ranks; ++r) {
    if (r == me) continue;
    messages.push_back({r, true, &memory.headers[me], sizeof(Header)});
    messages.push_back({r, false, &memory.headers[r], sizeof(Header)});
  }
  MGE_RETURN_IF_ERROR(group_->Exchange(channel_, messages, memory_, wait));
  absl::Status same = CompareHeaders();
  if (!same.ok()) group_->Fail(same);
  return same;
}

absl::Status ProcessSum::AllGather(Tensor& bytes, std::span<const int64_t> ends, const GroupWait& wait) {
  const uint32_t me = group_->rank();
  memory_->array = bytes;
  auto* const data = static_cast<char*>(bytes.mutable_data());
  auto begin = [&](uint32_t r) { return r == 0 ? 0 : ends[r - 1]; };
  auto size = [&](uint32_t r) { return static_cast<size_t>(ends[r] - begin(r)); };
  std::vector<GroupMessage> messages;
  for (uint32_t r = 0; r < group_->ranks(); ++r) {
    if (r == me) continue;
    if (size(me) > 0) messages.push_back({r, true, data + begin(me), size(me)});
    if (size(r) > 0) messages.push_back({r, false, data + begin(r), size(r)});
  }
  MGE_RETURN_IF_ERROR(group_->Exchange(channel_, messages, memory_, wait));
  memory_->array = Tensor();  // which is the caller's
  return absl::OkStatus();
}

absl::Status ProcessSum::AllReduce(Tensor& array, const ProcessStep* step, const GroupWait& wait) {
  const uint32_t ranks = group_->ranks(), me = group_->rank();
  const DType dtype = array.dtype();
  const int64_t elements = array.elements(), bytes = ElementBytes(dtype);
  auto begin = [&](uint32_t r) { return PartOfElements(elements, r, ranks).begin; };
  auto size = [&](uint32_t r) { return PartOfElements(elements, r, ranks).count; };
  // Headers go first and alone: parts of different sizes must not meet.
  if (step) MGE_RETURN_IF_ERROR(Compare({step->number, step->examples, elements, static_cast<int64_t>(dtype)}, wait));
  Memory& memory = *memory_;
  memory.array = array;
  MGE_RETURN_IF_ERROR(Reserve(memory.parts, dtype, size(me) * ranks));
  // One thread sums pieces that stay in its cache until they are copied.
  const int64_t piece = sum_.ThreadsFor(size(me)) > 1 && sum_.parallel_for ? std::max<int64_t>(size(me), 1) : kPieceElements;
  MGE_RETURN_IF_ERROR(Reserve(memory.sum, dtype, std::min(piece, size(me))));
  auto* const data = static_cast<char*>(array.mutable_data());
  auto* const parts = static_cast<char*>(memory.parts.mutable_data());
  auto at = [&](uint32_t r) { return data + begin(r) * bytes; };
  auto bytes_of = [&](uint32_t r) { return static_cast<size_t>(size(r) * bytes); };

  std::vector<GroupMessage> messages;
  std::vector<const void*> arrays(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    char* const part = parts + static_cast<int64_t>(r) * size(me) * bytes;
    arrays[r] = r == me ? at(me) : part;
    if (r == me) continue;
    messages.push_back({r, true, at(r), bytes_of(r)});
    messages.push_back({r, false, part, bytes_of(me)});
  }
  MGE_RETURN_IF_ERROR(group_->Exchange(channel_, messages, memory_, wait));
  for (int64_t done = 0; done < size(me); done += piece) {
    const int64_t count = std::min(piece, size(me) - done);
    std::vector<const void*> pieces;
    for (const void* array : arrays) pieces.push_back(static_cast<const char*>(array) + done * bytes);
    sum_.Add(dtype, pieces, memory.sum.mutable_data(), count);
    std::memcpy(at(me) + done * bytes, memory.sum.data(), static_cast<size_t>(count * bytes));
  }

  messages.clear();
  for (uint32_t r = 0; r < ranks; ++r) {
    if (r == me) continue;
    messages.push_back({r, true, at(me), bytes_of(me)});
    messages.push_back({r, false, at(r), bytes_of(r)});
  }
  return group_->Exchange(channel_, messages, memory_, wait);
}

}  // namespace mge

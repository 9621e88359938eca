// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/process_sum.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr int64_t kPieceElements = 16384;
// The part of each process in a block of a big array. Blocks are summed one after the other: what a process has received stays in
// its cache until it is summed, and takes little memory.
constexpr int64_t kBlockBytes = 1 << 20;

int64_t BlockElements(DType dtype) { return kBlockBytes / ElementBytes(dtype); }

// Lets a tensor hold so many elements. Keeps its memory if it is large enough.
absl::Status Reserve(Tensor& tensor, DType dtype, int64_t elements) {
  if (tensor.defined() && tensor.dtype() == dtype && tensor.elements() >= elements) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(tensor, Tensor::Create(dtype, {elements}));
  return absl::OkStatus();
}

}  // namespace

ProcessSum::ProcessSum(std::shared_ptr<ProcessGroup> group, HostSum sum)
    : group_(std::move(group)), sum_(std::move(sum)), channel_(group_->NewChannel()) {
  std::map<std::string_view, std::vector<uint32_t>> hosts;
  for (uint32_t r = 0; r < group_->ranks(); ++r) {
    all_.push_back(r);
    hosts[group_->host(r)].push_back(r);
  }
  local_ = hosts[group_->host(group_->rank())];
  shape_ = {group_->ranks(), static_cast<uint32_t>(local_.size())};
  if (!std::ranges::all_of(hosts, [&](const auto& host) { return host.second.size() == local_.size(); })) {
    shape_.ranks_per_host = 1;
    return;
  }
  const auto place = std::ranges::find(local_, group_->rank()) - local_.begin();
  for (const auto& [name, ranks] : hosts) peers_.push_back(ranks[static_cast<size_t>(place)]);
  std::ranges::sort(peers_);
}

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

absl::Status ProcessSum::AllReduce(Tensor& array, const ProcessStep* step, const GroupWait& wait,
                                   std::optional<SumPath> path) {
  const auto dtype = static_cast<int64_t>(array.dtype());
  // Headers go first and alone: parts of different sizes must not meet.
  if (step) MGE_RETURN_IF_ERROR(Compare({step->number, step->examples, array.elements(), dtype}, wait));
  memory_->array = array;  // which the messages use
  if (!path) path = FastestSumPath(shape_, static_cast<double>(array.bytes()));
  if (*path == SumPath::kWhole) return SumWhole(array, wait);
  if (*path == SumPath::kHosts) return SumOverHosts(array, wait);
  const int64_t block = BlockElements(array.dtype()) * static_cast<int64_t>(all_.size());
  for (int64_t begin = 0; begin < array.elements(); begin += block) {
    const Team all = EvenTeam(all_, {begin, std::min(block, array.elements() - begin)});
    MGE_RETURN_IF_ERROR(SumPart(array, all, wait));
    MGE_RETURN_IF_ERROR(GatherParts(array, all, wait));
  }
  return absl::OkStatus();
}

void ProcessSum::Add(DType dtype, std::span<const void* const> arrays, void* to, int64_t elements) {
  const int64_t bytes = ElementBytes(dtype), piece = PieceFor(elements);
  for (int64_t done = 0; done < elements; done += piece) {
    const int64_t count = std::min(piece, elements - done);
    std::vector<const void*> pieces;
    for (const void* array : arrays) pieces.push_back(static_cast<const char*>(array) + done * bytes);
    sum_.Add(dtype, pieces, memory_->sum.mutable_data(), count);
    std::memcpy(static_cast<char*>(to) + done * bytes, memory_->sum.data(), static_cast<size_t>(count * bytes));
  }
}

int64_t ProcessSum::PieceFor(int64_t elements) const {
  if (sum_.ThreadsFor(elements) > 1 && sum_.parallel_for) return elements;
  return std::min(kPieceElements, std::max<int64_t>(elements, 1));
}

absl::Status ProcessSum::SumWhole(Tensor& array, const GroupWait& wait) {
  const uint32_t ranks = group_->ranks(), me = group_->rank();
  const int64_t elements = array.elements();
  Memory& memory = *memory_;
  MGE_RETURN_IF_ERROR(Reserve(memory.parts, array.dtype(), elements * ranks));
  MGE_RETURN_IF_ERROR(Reserve(memory.sum, array.dtype(), PieceFor(elements)));
  const auto bytes = static_cast<size_t>(array.bytes());
  std::vector<GroupMessage> messages;
  std::vector<const void*> arrays(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    char* const theirs = static_cast<char*>(memory.parts.mutable_data()) + r * bytes;
    arrays[r] = r == me ? array.data() : theirs;
    if (r == me) continue;
    messages.push_back({r, true, array.mutable_data(), bytes});
    messages.push_back({r, false, theirs, bytes});
  }
  MGE_RETURN_IF_ERROR(group_->Exchange(channel_, messages, memory_, wait));
  Add(array.dtype(), arrays, array.mutable_data(), elements);
  return absl::OkStatus();
}

absl::Status ProcessSum::ReduceScatter(Tensor& array, std::span<const int64_t> ends, const ProcessStep* step,
                                       const GroupWait& wait) {
  const auto dtype = static_cast<int64_t>(array.dtype());
  if (step) MGE_RETURN_IF_ERROR(Compare({step->number, step->examples, array.elements(), dtype}, wait));
  memory_->array = array;
  auto begin = [&](size_t r) { return r == 0 ? 0 : ends[r - 1]; };
  int64_t longest = 0;
  for (size_t r = 0; r < ends.size(); ++r) longest = std::max(longest, ends[r] - begin(r));
  const int64_t block = BlockElements(array.dtype());
  for (int64_t done = 0; done < longest; done += block) {
    Team all = {all_, {}};
    for (size_t r = 0; r < ends.size(); ++r) {
      const int64_t from = std::min(begin(r) + done, ends[r]);
      all.parts.push_back({from, std::min(block, ends[r] - from)});
    }
    MGE_RETURN_IF_ERROR(SumPart(array, all, wait));
  }
  return absl::OkStatus();
}

ProcessSum::Team ProcessSum::EvenTeam(std::span<const uint32_t> members, ElementRange range) {
  Team out = {members, {}};
  const auto count = static_cast<uint32_t>(members.size());
  for (uint32_t i = 0; i < count; ++i) {
    const ElementRange part = PartOfElements(range.count, i, count);
    out.parts.push_back({range.begin + part.begin, part.count});
  }
  return out;
}

size_t ProcessSum::Team::IndexOf(uint32_t rank) const {
  return static_cast<size_t>(std::ranges::find(members, rank) - members.begin());
}

absl::Status ProcessSum::SumPart(Tensor& array, const Team& team, const GroupWait& wait) {
  const size_t me = team.IndexOf(group_->rank());
  const ElementRange mine = team.parts[me];
  const DType dtype = array.dtype();
  const int64_t bytes = ElementBytes(dtype);
  auto* const data = static_cast<char*>(array.mutable_data());
  Memory& memory = *memory_;
  MGE_RETURN_IF_ERROR(Reserve(memory.parts, dtype, mine.count * static_cast<int64_t>(team.members.size())));
  MGE_RETURN_IF_ERROR(Reserve(memory.sum, dtype, PieceFor(mine.count)));
  std::vector<GroupMessage> messages;
  std::vector<const void*> arrays(team.members.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    char* const theirs = static_cast<char*>(memory.parts.mutable_data()) + static_cast<int64_t>(i) * mine.count * bytes;
    arrays[i] = i == me ? data + mine.begin * bytes : theirs;
    if (i == me) continue;
    const ElementRange part = team.parts[i];
    messages.push_back({team.members[i], true, data + part.begin * bytes, static_cast<size_t>(part.count * bytes)});
    messages.push_back({team.members[i], false, theirs, static_cast<size_t>(mine.count * bytes)});
  }
  MGE_RETURN_IF_ERROR(group_->Exchange(channel_, messages, memory_, wait));
  Add(dtype, arrays, data + mine.begin * bytes, mine.count);
  return absl::OkStatus();
}

absl::Status ProcessSum::GatherParts(Tensor& array, const Team& team, const GroupWait& wait) {
  const size_t me = team.IndexOf(group_->rank());
  const int64_t bytes = ElementBytes(array.dtype());
  auto* const data = static_cast<char*>(array.mutable_data());
  auto message = [&](size_t peer, bool sends, const ElementRange& part) {
    return GroupMessage{team.members[peer], sends, data + part.begin * bytes, static_cast<size_t>(part.count * bytes)};
  };
  std::vector<GroupMessage> messages;
  for (size_t i = 0; i < team.members.size(); ++i) {
    if (i == me) continue;
    messages.push_back(message(i, true, team.parts[me]));
    messages.push_back(message(i, false, team.parts[i]));
  }
  return group_->Exchange(channel_, messages, memory_, wait);
}

absl::Status ProcessSum::SumOverHosts(Tensor& array, const GroupWait& wait) {
  const Team local = EvenTeam(local_, {0, array.elements()});
  const Team peers = EvenTeam(peers_, local.parts[local.IndexOf(group_->rank())]);
  MGE_RETURN_IF_ERROR(SumPart(array, local, wait));
  MGE_RETURN_IF_ERROR(SumPart(array, peers, wait));
  MGE_RETURN_IF_ERROR(GatherParts(array, peers, wait));
  return GatherParts(array, local, wait);
}

}  // namespace mge

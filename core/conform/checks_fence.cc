// SPDX-License-Identifier: Apache-2.0
// Checks of fences: values, order between queues, threads, propagation of failures, timeouts.
#include <atomic>
#include <thread>

#include "core/conform/device_memory.h"
#include "fmt/format.h"
#include "mge/faults.h"

namespace mge::conform {
namespace {

constexpr uint64_t kShortNs = 20'000'000;  // the wait for an event that must not happen, in nanoseconds

absl::Status CheckValues(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(s));
  if (fence.Ask(0, 0) != MGE_OK) return Broken("a fresh fence has not reached 0");
  if (mge_code code = fence.Ask(1, kShortNs); code != MGE_DEADLINE_EXCEEDED) {
    return Broken(fmt::format("waiting for 1 on a fence that nobody has signalled returns {}", CodeName(code)));
  }
  MGE_RETURN_IF_ERROR(queue.Signal(fence, 5));
  MGE_RETURN_IF_ERROR(fence.Await(5));
  if (fence.Ask(3, 0) != MGE_OK) return Broken("a fence at 5 has not reached 3");
  if (mge_code code = fence.Ask(6, kShortNs); code != MGE_DEADLINE_EXCEEDED) {
    return Broken(fmt::format("waiting for 6 on a fence that was signalled with 5 returns {}", CodeName(code)));
  }
  MGE_ASSIGN_OR_RETURN(Fence after, Fence::Create(s));
  MGE_RETURN_IF_ERROR(queue.Signal(fence, 2));  // must not decrease the fence
  MGE_RETURN_IF_ERROR(queue.Signal(after, 1));
  MGE_RETURN_IF_ERROR(after.Await(1));
  if (fence.Ask(5, 0) != MGE_OK) return Broken("a fence went back to a smaller value");
  MGE_RETURN_IF_ERROR(queue.Signal(fence, 7));
  MGE_RETURN_IF_ERROR(fence.Await(7));
  MGE_RETURN_IF_ERROR(queue.Signal(fence, UINT64_MAX - 1));
  return fence.Await(UINT64_MAX - 1);
}

absl::Status CheckTimeout(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(s));
  for (uint64_t timeout : {uint64_t{0}, uint64_t{1}, uint64_t{1'000'000}, kShortNs}) {
    s.At(fmt::format("host_wait with a limit of {} ns on a fence that nobody signals", timeout));
    std::string text;
    if (mge_code code = fence.Ask(1, timeout, &text); code != MGE_DEADLINE_EXCEEDED) {
      return Broken(fmt::format("a wait of {} ns that times out returns {}; MGE_DEADLINE_EXCEEDED is required", timeout,
                                CodeName(code)));
    }
    if (text.empty()) return Broken("a wait that times out has no error text");
  }
  return absl::OkStatus();
}

absl::Status CheckWait(BackendUnderTest& s) {
  constexpr size_t kBytes = 4096;
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, 2 * kBytes));
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s, MGE_QUEUE_COPY_OUT));
  MGE_ASSIGN_OR_RETURN(Fence done, Fence::Create(s));
  Bytes old = Pattern(kBytes, 1), fresh = Pattern(kBytes, 2), zeros(kBytes, 0), got(kBytes);
  unsigned char *from = slab.address(), *to = from + kBytes;
  MGE_RETURN_IF_ERROR(transfer.ToDevice(from, old.data(), kBytes));
  MGE_RETURN_IF_ERROR(transfer.ToDevice(to, zeros.data(), kBytes));
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Gated> gated, Gated::Enqueue(s, queue, [&](mge_error* e) {
                         mge_code code = s.plugin().queue->copy(queue, to, from, kBytes, e);
                         return code == MGE_OK ? queue.Signal(done, 1, e) : code;
                       }));
  mge_code early = done.Ask(1, kShortNs);
  MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), to, kBytes));
  bool ran = got != zeros;
  MGE_RETURN_IF_ERROR(transfer.ToDevice(from, fresh.data(), kBytes));
  MGE_RETURN_IF_ERROR(gated->Open());
  MGE_RETURN_IF_ERROR(done.Await(1));
  if (ran) return Broken("a copy ran before the fence that its queue waits for");
  if (early != MGE_DEADLINE_EXCEEDED)
    return Broken(fmt::format("a fence behind an unfinished wait returns {}", CodeName(early)));
  MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), to, kBytes));
  std::string d = Difference(got, fresh);
  return d.empty() ? absl::OkStatus() : Broken("a copy behind a wait read what the memory held before: " + d);
}

absl::Status CheckSignalOrder(BackendUnderTest& s) {
  constexpr size_t kBytes = 4 << 20;
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, 2 * kBytes));
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(s));
  Bytes got(kBytes);
  for (unsigned round = 1; round <= 6; ++round) {
    Bytes want = Pattern(kBytes, round);
    MGE_RETURN_IF_ERROR(transfer.ToDevice(slab.address(), want.data(), kBytes));
    MGE_RETURN_IF_ERROR(queue.Copy(slab.address() + kBytes, slab.address(), kBytes));
    MGE_RETURN_IF_ERROR(queue.Signal(fence, round));
    MGE_RETURN_IF_ERROR(fence.Await(round));
    MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), slab.address() + kBytes, kBytes));
    if (std::string d = Difference(got, want); !d.empty())
      return Broken("a fence was reached before the copy that it stands behind was done: " + d);
  }
  return absl::OkStatus();
}

absl::Status CheckThreads(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(s));
  constexpr uint64_t kValues = 200;
  std::atomic<uint64_t> signalled{0};
  std::atomic<int> early{0}, failed{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t value = 1 + t % 2; value <= kValues; value += 1 + t % 3) {
        if (fence.Ask(value, kPatienceNs) != MGE_OK) ++failed;
        if (signalled.load() < value) ++early;
      }
    });
  }
  absl::Status status;
  for (uint64_t value = 1; value <= kValues; ++value) {
    signalled = value;
    if (status.ok()) status = queue.Signal(fence, value);
  }
  for (std::thread& t : threads) t.join();
  MGE_RETURN_IF_ERROR(status);
  if (early) return Broken(fmt::format("{} waits ended before the fence was signalled", early.load()));
  return failed ? Broken(fmt::format("{} waits did not end after the fence was signalled", failed.load()))
                : absl::OkStatus();
}

absl::Status CheckPingPong(BackendUnderTest& s) {
  constexpr uint64_t kRounds = 50;
  constexpr size_t kBytes = 4096;
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, (kRounds + 2) * kBytes));
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  MGE_ASSIGN_OR_RETURN(Queue a, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Queue b, Queue::Create(s, MGE_QUEUE_COPY_IN));
  MGE_ASSIGN_OR_RETURN(Fence ping, Fence::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence pong, Fence::Create(s));
  Bytes want = Pattern(kBytes, 6), got(kBytes);
  MGE_RETURN_IF_ERROR(transfer.ToDevice(slab.address(), want.data(), kBytes));
  // The two queues alternate in a chain of copies. Each is used from its own thread, as by the host.
  auto play = [&](Queue& queue, const Fence& mine, const Fence& theirs, uint64_t begin) {
    return Call("passing work between queues", [&](mge_error* e) -> mge_code {
      for (uint64_t i = begin; i < kRounds; i += 2) {
        unsigned char* from = slab.address() + i * kBytes;
        mge_code code = i == 0 ? MGE_OK : queue.Wait(theirs, i, e);
        if (code == MGE_OK) code = s.plugin().queue->copy(queue, from + kBytes, from, kBytes, e);
        if (code == MGE_OK) code = queue.Signal(mine, i + 1, e);
        if (code != MGE_OK) return code;
      }
      return MGE_OK;
    });
  };
  absl::Status other;
  std::thread thread([&] { other = play(b, pong, ping, 1); });
  absl::Status mine = play(a, ping, pong, 0);
  thread.join();
  MGE_RETURN_IF_ERROR(mine);
  MGE_RETURN_IF_ERROR(other);
  MGE_RETURN_IF_ERROR(pong.Await(kRounds));
  MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), slab.address() + kRounds * kBytes, kBytes));
  std::string d = Difference(got, want);
  return d.empty() ? absl::OkStatus() : Broken("work that two queues pass to each other ran out of order: " + d);
}

absl::Status CheckFailure(BackendUnderTest& s) {
  if (!s.plugin().queue) return NotOffered("the backend has no queues: its steps run in the calling thread");
  const void* table = s.plugin().extension ? s.plugin().extension(MGE_FAULTS_EXTENSION, 1) : nullptr;
  if (!table) return NotOffered("the backend does not offer the extension " MGE_FAULTS_EXTENSION ", which makes work fail");
  const auto& faults = *static_cast<const mge_faults_api*>(table);
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, 4096));
  MGE_ASSIGN_OR_RETURN(Queue a, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Queue b, Queue::Create(s, MGE_QUEUE_COPY_OUT));
  MGE_ASSIGN_OR_RETURN(Fence first, Fence::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence later, Fence::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence second, Fence::Create(s));
  constexpr std::string_view kText = "the kit made this copy fail";
  MGE_RETURN_IF_ERROR(Call("asking for a failure", [&](mge_error* e) {
    return faults.fail_next(a, MGE_DATA_LOSS, {kText.data(), kText.size()}, e);
  }));
  mge_error ignored;  // a queue that runs in the calling thread may report the failure here; the fence must carry it too
  s.plugin().queue->copy(a, slab.address() + 2048, slab.address(), 1024, &ignored);
  MGE_RETURN_IF_ERROR(a.Signal(first, 1));
  MGE_RETURN_IF_ERROR(a.Signal(later, 1));  // before the host reads the failure, after which a queue may work again
  MGE_RETURN_IF_ERROR(a.Signal(later, 2));
  b.Wait(first, 1, &ignored);
  MGE_RETURN_IF_ERROR(b.Signal(second, 1));
  auto carries = [&](const Fence& fence, std::string_view which, uint64_t value = 1) {
    std::string text;
    mge_code code = fence.Ask(value, kPatienceNs, &text);
    if (code != MGE_DATA_LOSS)
      return Broken(fmt::format("{} returns {}; the work before it failed with MGE_DATA_LOSS", which, CodeName(code)));
    if (text.find(kText) == std::string::npos)
      return Broken(fmt::format("{} carries the text '{}'; the failure's was '{}'", which, text, kText));
    return absl::OkStatus();
  };
  MGE_RETURN_IF_ERROR(carries(first, "a fence behind work that failed"));
  MGE_RETURN_IF_ERROR(carries(second, "a fence of another queue, which waited for the first,"));
  MGE_RETURN_IF_ERROR(carries(later, "the second fence that is signalled behind work that failed"));
  MGE_RETURN_IF_ERROR(carries(later, "a fence that is signalled once more behind work that failed", 2));
  MGE_ASSIGN_OR_RETURN(Queue c, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence third, Fence::Create(s));
  c.Wait(first, 1, &ignored);  // the host has already read the failure, but dependent work must still not run
  MGE_RETURN_IF_ERROR(c.Signal(third, 1));
  return carries(third, "a fence of a queue that waits for a fence which has failed already");
}

constexpr Check kRows[] = {
    {"fence.values", "A fence never decreases, and reaches exactly the signalled values.", Needs::kDevice, CheckValues},
    {"fence.timeout", "A wait that times out returns MGE_DEADLINE_EXCEEDED with a text.", Needs::kDevice, CheckTimeout},
    {"fence.wait", "Work behind a wait runs only after the fence is reached.", Needs::kDevice, CheckWait},
    {"fence.signal_order", "A fence is reached only when the work before it is done.", Needs::kDevice, CheckSignalOrder},
    {"fence.threads", "Many threads can wait for one fence.", Needs::kDevice, CheckThreads},
    {"fence.queues", "Queues can pass work to each other.", Needs::kDevice, CheckPingPong},
    {"fence.failure", "A failure reaches every dependent fence, with its code and text.", Needs::kDevice, CheckFailure},
};

}  // namespace

std::span<const Check> FenceChecks() { return kRows; }

}  // namespace mge::conform

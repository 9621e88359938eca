// SPDX-License-Identifier: Apache-2.0
// Checks of fences: values, order between queues, threads, propagation of failures, timeouts.
#include <atomic>
#include <chrono>
#include <thread>

#include "core/conform/device_memory.h"
#include "fmt/format.h"
#include "mge/faults.h"

namespace mge::conform {
namespace {

using std::chrono::milliseconds;

absl::Status CheckValues(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(s));
  MGE_RETURN_IF_ERROR(queue.Signal(fence, 3));
  MGE_RETURN_IF_ERROR(queue.Signal(fence, 5));
  MGE_RETURN_IF_ERROR(fence.Await(5));
  if (fence.Ask(3, 0) != MGE_OK) return Broken("a fence at 5 has not reached 3");
  MGE_RETURN_IF_ERROR(queue.Signal(fence, UINT64_MAX - 1));
  MGE_RETURN_IF_ERROR(fence.Await(UINT64_MAX - 1));
  return fence.Ask(5, 0) == MGE_OK ? absl::OkStatus() : Broken("a fence forgot a smaller value that it had reached");
}

// Signals two values with long work between them, and waits for the first: each value keeps an event of its own.
absl::Status CheckSeveralValues(BackendUnderTest& s) {
  if (!s.plugin().queue) return Queue::Create(s).status();
  MGE_ASSIGN_OR_RETURN(LongWork work, LongWork::Create(s));
  for (int round = 0; round < 3; ++round) {  // another program may use the processor during one round
    MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(s));
    MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
    MGE_RETURN_IF_ERROR(work.Enqueue(queue, milliseconds(5)));
    MGE_RETURN_IF_ERROR(queue.Signal(fence, 1));
    MGE_RETURN_IF_ERROR(work.Enqueue(queue, milliseconds(300)));
    MGE_RETURN_IF_ERROR(queue.Signal(fence, 2));
    const bool busy = fence.Ask(2, 0) == MGE_DEADLINE_EXCEEDED;
    MGE_RETURN_IF_ERROR(fence.Await(1));
    const bool early = fence.Ask(2, 0) == MGE_DEADLINE_EXCEEDED;
    MGE_RETURN_IF_ERROR(fence.Await(2));
    if (early || !busy) return absl::OkStatus();
  }
  return Broken("a wait for a value of a fence lasts until a later value is reached; keep one event for each value");
}

// Waits for work that takes longer than the timeout. A queue that works in the calling thread has done it before.
absl::Status CheckTimeout(BackendUnderTest& s) {
  if (!s.plugin().queue) return Queue::Create(s).status();
  MGE_ASSIGN_OR_RETURN(LongWork work, LongWork::Create(s));
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(s));
  uint64_t value = 0;
  for (uint64_t timeout : {uint64_t{0}, uint64_t{1}, uint64_t{20'000'000}}) {
    s.At(fmt::format("host_wait with a limit of {} ns", timeout));
    MGE_RETURN_IF_ERROR(work.Enqueue(queue, milliseconds(400)));
    MGE_RETURN_IF_ERROR(queue.Signal(fence, ++value));
    const auto begin = std::chrono::steady_clock::now();
    std::string text;
    const mge_code code = fence.Ask(value, timeout, &text);
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (code != MGE_OK && code != MGE_DEADLINE_EXCEEDED) {
      return Broken(fmt::format("a wait of {} ns returns {}; MGE_DEADLINE_EXCEEDED is required if it times out", timeout,
                                CodeName(code)));
    }
    if (code == MGE_DEADLINE_EXCEEDED && text.empty()) return Broken("a wait that times out has no error text");
    if (code == MGE_OK && waited > milliseconds(300)) {
      return Broken(fmt::format("a wait of {} ns did not end before the work, after {} ms", timeout,
                                std::chrono::duration_cast<milliseconds>(waited).count()));
    }
    MGE_RETURN_IF_ERROR(fence.Await(value));
  }
  return absl::OkStatus();
}

// One queue copies a -> b behind long work, the other waits for it and copies b -> c.
absl::Status CheckWait(BackendUnderTest& s) {
  if (!s.plugin().queue) return Queue::Create(s).status();
  constexpr size_t kBytes = 4096;
  MGE_ASSIGN_OR_RETURN(LongWork work, LongWork::Create(s));
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, 3 * kBytes));
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  unsigned char *a = slab.address(), *b = a + kBytes, *c = b + kBytes;
  Bytes got(kBytes), zeros(2 * kBytes, 0);
  for (int ms : {5, 50}) {
    MGE_ASSIGN_OR_RETURN(Fence ready, Fence::Create(s));
    MGE_ASSIGN_OR_RETURN(Fence done, Fence::Create(s));
    MGE_ASSIGN_OR_RETURN(Queue first, Queue::Create(s));
    MGE_ASSIGN_OR_RETURN(Queue second, Queue::Create(s, MGE_QUEUE_COPY_OUT));
    const Bytes fresh = Pattern(kBytes, static_cast<unsigned>(ms));
    MGE_RETURN_IF_ERROR(transfer.ToDevice(a, fresh.data(), kBytes));
    MGE_RETURN_IF_ERROR(transfer.ToDevice(b, zeros.data(), zeros.size()));
    MGE_RETURN_IF_ERROR(work.Enqueue(first, milliseconds(ms)));
    MGE_RETURN_IF_ERROR(first.Copy(b, a, kBytes));
    MGE_RETURN_IF_ERROR(first.Signal(ready, 1));
    MGE_RETURN_IF_ERROR(second.Wait(ready, 1));
    MGE_RETURN_IF_ERROR(second.Copy(c, b, kBytes));
    MGE_RETURN_IF_ERROR(second.Signal(done, 1));
    if (done.Ask(1, 0) == MGE_OK && ready.Ask(1, 0) != MGE_OK) return Broken("a fence behind an unfinished wait is reached");
    MGE_RETURN_IF_ERROR(done.Await(1));
    MGE_RETURN_IF_ERROR(ready.Await(1));
    MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), c, kBytes));
    std::string d = Difference(got, fresh);
    if (!d.empty()) return Broken("a copy behind a wait read what the memory held before: " + d);
  }
  return absl::OkStatus();
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
  if (!s.plugin().queue) return Queue::Create(s).status();
  MGE_ASSIGN_OR_RETURN(LongWork work, LongWork::Create(s));
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(s));
  constexpr uint64_t kValues = 200;
  for (uint64_t value = 1; value <= kValues; ++value) {
    if (value % 20 == 1) MGE_RETURN_IF_ERROR(work.Enqueue(queue, milliseconds(1)));
    MGE_RETURN_IF_ERROR(queue.Signal(fence, value));
  }
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t value = 1 + t % 2; value <= kValues; value += 1 + t % 3) {
        if (fence.Ask(value, kPatienceNs) != MGE_OK) ++failed;
      }
    });
  }
  for (std::thread& t : threads) t.join();
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
  // The two queues alternate in a chain of copies.
  for (uint64_t i = 0; i < kRounds; ++i) {
    Queue& queue = i % 2 ? b : a;
    unsigned char* from = slab.address() + i * kBytes;
    if (i > 0) MGE_RETURN_IF_ERROR(queue.Wait(i % 2 ? ping : pong, i));
    MGE_RETURN_IF_ERROR(queue.Copy(from + kBytes, from, kBytes));
    MGE_RETURN_IF_ERROR(queue.Signal(i % 2 ? pong : ping, i + 1));
  }
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
  // Whether work behind a failed fence runs is up to the backend, but the queue must not wait forever.
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
  MGE_RETURN_IF_ERROR(carries(later, "the second fence that is signalled behind work that failed"));
  MGE_RETURN_IF_ERROR(carries(later, "a fence that is signalled once more behind work that failed", 2));
  if (second.Ask(1, kPatienceNs) != MGE_DEADLINE_EXCEEDED) return absl::OkStatus();
  return Broken("a queue that waits for a fence which has failed waits for ever");
}

constexpr Check kRows[] = {
    {"fence.values", "A fence keeps the values that it has reached.", Needs::kDevice, CheckValues},
    {"fence.several_values", "A fence keeps an event for each value that it has not reached yet.", Needs::kDevice,
     CheckSeveralValues},
    {"fence.timeout", "A wait that times out returns MGE_DEADLINE_EXCEEDED with a text.", Needs::kDevice, CheckTimeout},
    {"fence.wait", "Work behind a wait runs only after the fence is reached.", Needs::kDevice, CheckWait},
    {"fence.signal_order", "A fence is reached only when the work before it is done.", Needs::kDevice, CheckSignalOrder},
    {"fence.threads", "Many threads can wait for one fence.", Needs::kDevice, CheckThreads},
    {"fence.queues", "Queues can pass work to each other.", Needs::kDevice, CheckPingPong},
    {"fence.failure",
     "A failure reaches every later signal of its queue, with its code and text, and blocks no other queue.", Needs::kDevice,
     CheckFailure},
};

}  // namespace

std::span<const Check> FenceChecks() { return kRows; }

}  // namespace mge::conform

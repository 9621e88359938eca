// SPDX-License-Identifier: Apache-2.0
// Checks of fences: values, order between queues, threads, propagation of failures, timeouts.
#include <chrono>
#include <tuple>

#include "core/conform/device_memory.h"
#include "mge/faults.h"

namespace mge::conform {
namespace {

using std::chrono::milliseconds;

void CheckValues(BackendUnderTest& s) {
  Rig rig(s, 1);
  rig.queue.Signal(rig.fence, 3);
  rig.queue.Signal(rig.fence, 5);
  rig.fence.Await(5);
  if (rig.fence.Ask(3, 0).code != MGE_OK) Broken("a fence at 5 has not reached 3");
  rig.queue.Signal(rig.fence, UINT64_MAX - 1);
  rig.fence.Await(UINT64_MAX - 1);
  if (rig.fence.Ask(5, 0).code != MGE_OK) Broken("a fence forgot a smaller value that it had reached");
}

// Signals two values with long work between them, and waits for the first: each value keeps an event of its own.
void CheckSeveralValues(BackendUnderTest& s) {
  LongWork work(s);
  for (int round = 0; round < 3; ++round) {  // another program may use the processor during one round
    Rig rig(s, 1);
    auto pending = [&] { return rig.fence.Ask(2, 0).code == MGE_DEADLINE_EXCEEDED; };
    work.Enqueue(rig.queue, milliseconds(5));
    rig.queue.Signal(rig.fence, 1);
    work.Enqueue(rig.queue, milliseconds(300));
    rig.queue.Signal(rig.fence, 2);
    const bool busy = pending();
    rig.fence.Await(1);
    const bool early = pending();
    rig.fence.Await(2);
    if (early || !busy) return;
  }
  Broken("a wait for a value of a fence lasts until a later value is reached; keep one event for each value");
}

// Waits for work that takes longer than the timeout. A queue that works in the calling thread has done it before.
void CheckTimeout(BackendUnderTest& s) {
  LongWork work(s);
  Rig rig(s, 1);
  uint64_t value = 0;
  for (uint64_t timeout : {uint64_t{0}, uint64_t{1}, uint64_t{20'000'000}}) {
    s.At("host_wait with a limit of {} ns", timeout);
    work.Enqueue(rig.queue, milliseconds(400));
    rig.queue.Signal(rig.fence, ++value);
    const auto begin = std::chrono::steady_clock::now();
    const mge_error result = rig.fence.Ask(value, timeout);
    const auto waited = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
    if (result.code != MGE_OK && result.code != MGE_DEADLINE_EXCEEDED)
      Broken("a wait of {} ns returns {}; MGE_DEADLINE_EXCEEDED is required if it times out", timeout,
             CodeName(result.code));
    if (result.code != MGE_OK && result.text.empty()) Broken("a wait that times out has no error text");
    if (result.code == MGE_OK && waited > milliseconds(300))
      Broken("a wait of {} ns did not end before the work, after {} ms", timeout, waited.count());
    rig.fence.Await(value);
  }
}

void CheckThreads(BackendUnderTest& s) {
  LongWork work(s);
  Rig rig(s, 1);
  constexpr int kValues = 200;
  for (int value = 1; value <= kValues; ++value) {
    if (value % 20 == 1) work.Enqueue(rig.queue, milliseconds(1));
    rig.queue.Signal(rig.fence, static_cast<uint64_t>(value));
  }
  InThreads(4, [&](int i) {
    for (int value = 1 + i % 2; value <= kValues; value += 1 + i % 3) rig.fence.Await(static_cast<uint64_t>(value));
  });
}

// Two queues alternate in a chain of copies, the first of which is behind long work. Only if each copy waits for the one
// before it is the end of the chain correct.
void CheckWait(BackendUnderTest& s) {
  constexpr uint64_t kLinks = 50;
  constexpr size_t kBytes = 4096;
  LongWork work(s);
  for (int ms : {0, 5, 50}) {
    Rig rig(s, (kLinks + 1) * kBytes, MGE_QUEUE_COPY_IN);
    auto& [ping, pong, slab, transfer, a, b] = rig;
    const Bytes want = Pattern(kBytes, static_cast<unsigned>(ms));
    rig.Fill(want);
    work.Enqueue(a, milliseconds(ms));
    for (uint64_t i = 0; i < kLinks; ++i) {
      Queue& queue = i % 2 ? b : a;
      if (i > 0) queue.Wait(i % 2 ? ping : pong, i);
      queue.Copy(rig.at((i + 1) * kBytes), rig.at(i * kBytes), kBytes);
      queue.Signal(i % 2 ? pong : ping, i + 1);
    }
    pong.Await(kLinks);
    if (ping.Ask(1, 0).code != MGE_OK) Broken("a fence behind an unfinished wait is reached");
    transfer.Expect(rig.at(kLinks * kBytes), want,
                    "a copy behind a wait read its source before the copy in front of the fence was done");
  }
}

void CheckFailure(BackendUnderTest& s) {
  const mge_faults_api& faults = FaultsOf(s);
  Fence second(s);
  Rig rig(s, 4096);
  auto& [first, later, slab, transfer, a, b] = rig;
  constexpr std::string_view kText = "the kit made this copy fail";
  const mge_text text = {kText.data(), kText.size()};
  Call("asking for a failure", faults.fail_next, a, MGE_DATA_LOSS, text);
  mge_error ignored;  // a queue that runs in the calling thread may report the failure here; the fence must carry it too
  s.plugin().queue->copy(a, slab.address() + 2048, slab.address(), 1024, &ignored);
  a.Signal(first, 1);
  a.Signal(later, 1);  // before the host reads the failure, after which a queue may work again
  a.Signal(later, 2);
  // Whether work behind a failed fence runs is up to the backend, but the queue must not wait forever.
  (void)StatusOf([&] { b.Wait(first, 1); });
  b.Signal(second, 1);
  const std::tuple<const Fence&, uint64_t, std::string_view> behind[] = {
      {first, 1, "a fence behind work that failed"},
      {later, 1, "the second fence that is signalled behind work that failed"},
      {later, 2, "a fence that is signalled once more behind work that failed"}};
  for (const auto& [fence, value, which] : behind) {
    const mge_error result = fence.Ask(value, kPatienceNs);
    if (result.code != MGE_DATA_LOSS)
      Broken("{} returns {}; the work before it failed with MGE_DATA_LOSS", which, CodeName(result.code));
    if (result.text.find(kText) == std::string::npos)
      Broken("{} carries the text '{}'; the failure's was '{}'", which, result.text, kText);
  }
  if (second.Ask(1, kPatienceNs).code == MGE_DEADLINE_EXCEEDED)
    Broken("a queue that waits for a fence which has failed waits for ever");
}

constexpr Check kFenceChecks[] = {
    {"fence.values", "A fence keeps the values that it has reached.", CheckValues},
    {"fence.several_values", "A fence keeps an event for each value that it has not reached yet.", CheckSeveralValues},
    {"fence.timeout", "A wait that times out returns MGE_DEADLINE_EXCEEDED with a text.", CheckTimeout},
    {"fence.wait", "Work behind a wait runs after the fence is reached, and a fence is reached after the work before it.",
     CheckWait},
    {"fence.threads", "Many threads can wait for one fence.", CheckThreads},
    {"fence.failure",
     "A failure reaches every later signal of its queue, with its code and text, and blocks no other queue.", CheckFailure},
};

}  // namespace

std::span<const Check> FenceChecks() { return kFenceChecks; }

}  // namespace mge::conform

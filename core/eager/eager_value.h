// SPDX-License-Identifier: Apache-2.0
// The values of eager mode, and the calls of operators that compute them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/base/tensor.h"
#include "core/eager/eviction_policy.h"
#include "core/env/snapshot.h"
#include "core/graph/graph.h"
#include "core/plugin/device.h"
#include "core/plugin/devices.h"

namespace mge {

class EagerOperator;
struct OperatorRequest;
struct EagerCall;

// The devices of eager tensors. An interpreter has one object for all names of a device, and one for each list of devices.
struct EagerPlace {
  std::string spec;                   // as for a session, such as "gpu0,cpu0"
  Device* memory = nullptr;           // the device in whose memory the tensors lie; nullptr: plain host memory
  std::shared_ptr<Device> keep = {};  // keeps `memory`
  DeviceUse pinned = {};              // page-locks tensors in host memory (cpu_pinned(0)); no device: they are plain
  int64_t live_bytes = 0;             // bytes of all values in memory; guarded by EagerStore::mutex
};

// The state that the values of an interpreter share: their lock, the policy of eviction, counters.
struct EagerStore {
  std::mutex mutex;
  std::condition_variable changed;  // a value is no longer pending, or a command has been executed
  int waiters = 0;                  // threads that wait for `changed`
  EvictionPolicy policy;
  int64_t live_bytes = 0, peak_bytes = 0;  // of all values in memory, host operands excluded
  int64_t evictions = 0, drops = 0, recomputations = 0, swaps_out = 0, swaps_in = 0;

  void Notify() {  // the caller holds the mutex
    if (waiters > 0) changed.notify_all();
  }
};

enum class EagerState {
  kPending,  // the command that computes it has not been executed
  kReady,
  kDropped,  // evicted; recomputed by its producer when it is needed
  kSwapped,  // in host memory; copied back when it is needed
  kFailed,
};

// A value. Shared by handles, commands and the calls that read it.
class EagerValue : public PathValue, public std::enable_shared_from_this<EagerValue> {
 public:
  // `place` is nullptr for a host operand, which has no device.
  EagerValue(std::shared_ptr<EagerStore> store, std::shared_ptr<EagerPlace> place)
      : store_(std::move(store)), place_(std::move(place)) {}
  ~EagerValue();
  EagerValue(const EagerValue&) = delete;
  EagerValue& operator=(const EagerValue&) = delete;

  EagerStore& store() const { return *store_; }
  const std::shared_ptr<EagerPlace>& place() const { return place_; }
  EagerState state() const { return state_.load(std::memory_order_acquire); }

  // Returns whether kind, element type and rank are known. They are once the value is ready.
  bool typed() const { return known_.load(std::memory_order_acquire) != Known::kNothing; }
  // Returns the type. Requires typed(). Sizes may be unknown until the value is ready.
  const ValueType& type() const { return known_.load(std::memory_order_acquire) == Known::kAll ? type_ : early_type_; }
  // Sets the type before other threads see the value. Ignored if it says too little.
  void SetEarlyType(ValueType type);

  // Returns the elements of a host operand that is a tensor, which never change; nullptr for other values.
  /*nullable*/ const Tensor* host_operand() const {
    return place_ || data_.kind != ValueKind::kTensor ? nullptr : &data_.tensor;
  }

  // ---- The following require that the caller holds store().mutex.
  const absl::Status& error() const { return error_; }
  const absl::Status& cause() const { return cause_; }  // the error of the first operator that failed
  const HostValue& data() const { return data_; }       // valid in the states kReady and kSwapped
  // Makes the value ready, and counts its bytes. For a value that is pending, dropped or swapped out.
  void SetReady(HostValue data);
  // Makes a pending value one whose elements lie in host memory, from where they are copied when a kernel reads them.
  void SetOnHost(HostValue data);
  // Returns the elements if they are known in host memory: those of a host operand and of SetOnHost(); else nullptr.
  /*nullable*/ const HostValue* on_host() const { return on_host_.tensor.defined() ? &on_host_ : place_ ? nullptr : &data_; }
  // `cause` is OK unless an input had failed.
  void SetFailed(absl::Status error, absl::Status cause);
  // Releases the memory; the value is dropped. Requires a path.
  void Drop();
  // Replaces the memory by a copy on the host.
  void SwapOut(HostValue host);
  // Makes the value one that cannot be recomputed.
  void ForgetProducer();

  std::shared_ptr<EagerCall> producer = {};          // not null: `path` is its path
  std::vector<std::weak_ptr<EagerCall>> users = {};  // the recorded calls that read the value
  bool released = false;                             // no handle refers to the value any more

 private:
  void Uncount();
  void SetType(const HostValue& data);

  const std::shared_ptr<EagerStore> store_;
  const std::shared_ptr<EagerPlace> place_;
  std::atomic<EagerState> state_{EagerState::kPending};
  enum class Known { kNothing, kRank, kAll };
  std::atomic<Known> known_{Known::kNothing};
  ValueType early_type_, type_;  // each is set once
  HostValue data_, on_host_;
  absl::Status error_, cause_;
  bool counted_ = false;  // in live_bytes
};

// One call of an operator.
struct EagerCall {
  EagerCall();
  ~EagerCall();

  std::unique_ptr<OperatorRequest> request;  // not null: `op` is chosen when the types of the inputs are known
  std::shared_ptr<EagerOperator> op;
  std::shared_ptr<EagerPlace> place;
  std::shared_ptr<const Snapshot> settings;          // of the time of the call
  std::vector<std::shared_ptr<EagerValue>> inputs;   // nullptr: absent
  std::vector<std::shared_ptr<EagerValue>> outputs;  // empty once the call has been executed
  ComputingPath path;                                // set if the call is recorded; guarded by EagerStore::mutex
  std::shared_ptr<EagerCall> next;                   // for ~EagerValue()
};

// Returns the bytes of a value's tensors.
int64_t BytesOf(const HostValue& value);
// Returns a copy in plain host memory, which shares nothing.
absl::StatusOr<Tensor> HostCopyOf(const Tensor& from);
absl::StatusOr<HostValue> HostCopyOf(const HostValue& from);
// Returns the type of a value, with all sizes if it is a tensor.
ValueType TypeOfData(const HostValue& value);

}  // namespace mge

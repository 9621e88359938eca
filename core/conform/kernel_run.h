// SPDX-License-Identifier: Apache-2.0
// One kernel candidate, prepared and bound as the engine does it, with its operands in one block of device memory.
//
// Method: operands are separated by red zones. After a run the whole block is compared with its content before the run.
// This finds each write outside of the outputs and the workspace. Packed constants and arguments have red zones too.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/conform/cases.h"
#include "core/conform/device_memory.h"
#include "core/kernel/abi_graph.h"
#include "core/kernel/candidate.h"

namespace mge::conform {

inline constexpr uint64_t kRedZone = 192;  // bytes between operands
inline constexpr uint64_t kAlignment = 64;
inline constexpr unsigned char kCanary = 0xa5;

// A case in the form of the ABI, with its own copies of the constants.
class AbiProblem {
 public:
  AbiProblem(const Case& c, int32_t write_mode);
  const mge_problem* get() const { return &problem_; }
  mge_problem* get() { return &problem_; }
  void SpoilConstants();  // overwrites the constants, which a backend must not read after prepare()

 private:
  Graph graph_;
  std::unique_ptr<AbiGraph> abi_;
  std::vector<int32_t> modes_;
  mge_problem problem_ = {};
};

// A copy of a candidate that the backend offers.
struct Candidate : OwnedCandidate {
  bool Has(uint64_t attribute) const { return attributes & attribute; }
};

// The result of enumerating candidates.
struct Offers {
  std::vector<Candidate> offered;
  std::vector<std::string> refused;  // "kernel: reason"
  std::string malformed;             // the first violation of the contract; "" if there is none
  const Candidate* Find(const std::string& id) const;
  std::string Ids() const;  // "direct, by_library"
};

inline constexpr mge_constraints kNoConstraints = {sizeof(mge_constraints), 0, 0, 0, UINT64_MAX};
absl::StatusOr<Offers> Enumerate(BackendUnderTest& tested, const mge_problem& problem,
                                 const mge_constraints& constraints = kNoConstraints);
absl::StatusOr<Offers> Enumerate(BackendUnderTest& tested, const Case& c, int32_t write_mode = MGE_WRITE);

// Device memory and queues for runs. Each lane serves one run at a time; the lanes can be used concurrently.
inline constexpr int kLanes = 4;
struct Bench {
  static absl::StatusOr<std::unique_ptr<Bench>> Create(BackendUnderTest& tested);
  absl::Status Reserve(uint64_t bytes);  // makes each lane at least this large; may discard its content
  unsigned char* lane(int i) { return first_lane + static_cast<uint64_t>(i) * lane_bytes; }
  uint64_t alignment() const { return tested.description().buffer_alignment; }  // of lanes and operands
  absl::StatusOr<Bench*> Aside();  // a second bench, for reorders between the steps of a run on this one
  BackendUnderTest& tested;
  Slab slab = {};
  unsigned char* first_lane = nullptr;
  std::optional<LongWork> long_work = {};
  uint64_t lane_bytes = 0;
  std::array<Transfer, kLanes> transfers = {};  // declared after the memory that their work uses
  std::unique_ptr<Bench> aside = nullptr;
  std::map<std::string, size_t> forms = {};  // hashes of packed constants; key: name of the form and bytes of the constant
};

// An operand of a kernel. `constant` is defined if the value is given at prepare time.
struct Operand {
  DType dtype;
  Shape shape;
  Tensor constant;
};

// The checks that get the faults of a run.
inline constexpr const char* kBounds = "kernel.bounds";
inline constexpr const char* kInputs = "kernel.inputs_kept";
inline constexpr const char* kWorkspace = "kernel.workspace";

// The result of one run.
struct RunResult {
  mge_error step;               // the result of the step, or of the fence behind its enqueued work
  std::vector<Tensor> outputs;  // in the plain layout
  std::vector<std::pair<const char*, std::string>> faults = {};  // the writes outside of the outputs, with the check

  // Returns Broken() if the step failed, or if it wrote anything but its outputs and its workspace.
  absl::Status Sound(std::string_view name) const;
};

// Compares the outputs with the expected ones. Returns "output 0: ...", or "" if all are right.
std::string WhatIsWrong(const RunResult& r, const std::vector<Tensor>& want, const Candidate& candidate);

// A prepared and bound candidate. Not thread-safe, except for the functions marked [any thread].
class KernelRun {
 public:
  struct Options {
    const mge_in_place* in_place = nullptr;  // the output and the input that share memory; optional
    bool raw = false;                        // operands are byte arrays that are already in the candidate's layouts
    const mge_layout* any = nullptr;         // the layout used for ANY; NULL: plain
    bool only_prepared = false;              // ends after prepare(); such a kernel can only be destroyed
    bool shifted = false;                    // plain operands and constants are aligned only to the size of their elements
    int32_t write_mode = MGE_WRITE;          // of the outputs of a case
  };
  // Prepares, packs the constants and binds. `prepared` is called directly after prepare() has returned; it may overwrite
  // the problem. Returns Broken() if a call fails or its result breaks the contract. `bench` must outlive the KernelRun.
  static absl::StatusOr<std::unique_ptr<KernelRun>> Create(Bench& bench, const mge_problem& problem,
                                                           const Candidate& candidate, std::vector<Operand> inputs,
                                                           std::vector<Operand> outputs, const Options& options,
                                                           const std::function<void()>& prepared = {});
  // Does the same for a case, which must outlive the KernelRun. Overwrites its constants after prepare() has returned.
  static absl::StatusOr<std::unique_ptr<KernelRun>> Create(Bench& bench, const Case& c, const Candidate& candidate,
                                                           const Options& options);
  ~KernelRun();
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  Bench& bench() const { return bench_; }
  const Case& subject() const { return *case_; }  // requires a KernelRun of a case
  const Candidate& candidate() const { return candidate_; }
  // Compares the outputs with the reference results of one set of the case's data; see WhatIsWrong().
  std::string Wrong(const RunResult& r, int set) const { return WhatIsWrong(r, case_->expected[set], candidate_); }
  const mge_prepared& prepared() const { return prepared_; }
  const std::string& packing_fault() const { return packing_fault_; }  // a fault of prepack(); "" if there is none
  const std::string& args_fault() const { return args_fault_; }        // a write behind the arguments; "" if there is none

  // Copies the inputs (all operands that are not constants, in order) to the lane, and the outputs' previous values `before`
  // for the write mode ADD. All other bytes are set to `fill`.
  absl::Status Stage(int lane, const std::vector<Tensor>& inputs, unsigned char fill,
                     const std::vector<Tensor>& before = {});
  // Enqueues a copy of the staged lane `from` to `lane`, on the queue of `lane`. The backend must have queues.
  absl::Status EnqueueCopy(int from, int lane);
  // Calls the step. [any thread], one lane per thread.
  mge_error Launch(int lane, uint32_t width, int32_t cancel = 0);
  absl::Status Drain(int lane);  // waits for the enqueued work of Launch(); returns Broken() if it failed
  // Calls Launch() and Drain(). Returns Broken() if one of them failed. `what` names the step. [any thread]
  absl::Status Step(int lane, uint32_t width, std::string_view what);
  absl::StatusOr<RunResult> Collect(int lane);  // reads the outputs and checks all other bytes
  absl::StatusOr<Bytes> Outputs(int lane);      // the bytes of the outputs in memory. [any thread], one lane per thread
  absl::Status ResetOutputs(int lane);          // restores the outputs as staged. [any thread], one lane per thread
  // Returns whether the lane's memory is unchanged since Stage().
  absl::StatusOr<bool> Untouched(int lane);
  // Calls Stage() and Launch(), waits, and calls Collect().
  absl::StatusOr<RunResult> Run(int lane, const std::vector<Tensor>& inputs, uint32_t width, unsigned char fill,
                                const std::vector<Tensor>& before = {}, int32_t cancel = 0);

 private:
  struct Region {
    uint64_t offset = 0, bytes = 0;
  };
  struct Lane {
    Bytes image;
    std::vector<std::max_align_t> args = {};  // a copy for one launch, if the kernel need not have it longer
    void* state = nullptr;
    void* bases[1] = {};
    int32_t cancel = 0;
    mge_run run = {};
    mge_error error;
  };
  explicit KernelRun(Bench& bench) : bench_(bench) {}
  Region AddRegion(uint64_t bytes, uint64_t shift = 0);  // begins `shift` bytes behind a multiple of the alignment
  // Adds a region for an operand in a layout. With Options::shifted, plain operands are shifted.
  absl::StatusOr<Region> AddOperand(const Operand& operand, const mge_layout& layout, const Options& options);
  absl::Status Place(const Options& options);  // adds the regions of all operands and of the workspace
  absl::Status Bind();
  // packing.cc: packs the constant input on the host, and on a queue if the backend can.
  absl::StatusOr<Bytes> Pack(uint32_t input, uint64_t bytes);
  absl::Status PackOnQueue(uint32_t input, const Bytes& source, const Bytes& form);

  Bench& bench_;
  const Case* case_ = nullptr;
  Candidate candidate_;
  std::vector<mge_layout> settled_in_, settled_out_;  // the candidate's layouts with ANY replaced
  std::vector<mge_layout> laid_in_, laid_out_;        // the layouts used by Stage() and Collect(); plain if Options::raw
  std::vector<Operand> inputs_, outputs_;
  mge_prepared prepared_ = {};
  std::vector<Region> input_regions_, output_regions_;
  Region workspace_;
  std::vector<std::pair<Region, Bytes>> constants_;  // packed or plain bytes
  uint64_t total_ = 0;
  std::vector<std::max_align_t> args_;
  mge_step_fn fn_ = nullptr;
  Lane lanes_[kLanes];
  std::string packing_fault_, args_fault_;
};

Bytes BytesOf(const Tensor& t);
// Convert a plain tensor to the bytes of a layout, and back. Opaque layouts are converted by the backend's own reorder.
absl::StatusOr<Bytes> ToLayout(Bench& bench, const Tensor& plain, const mge_layout& layout);
absl::StatusOr<Tensor> FromLayout(Bench& bench, const Bytes& laid, DType dtype, const Shape& shape,
                                  const mge_layout& layout);
// Returns Broken() unless the backend describes an opaque layout that a candidate names, and refuses an unknown one.
absl::Status Described(BackendUnderTest& tested, const mge_layout& layout, DType dtype, const Shape& shape);
// Runs the backend's own reorder with its first candidate. `checked`: checks its order on the queue, too.
absl::StatusOr<Bytes> Reorder(Bench& bench, const Bytes& from_bytes, DType dtype, const Shape& shape, const mge_layout& from,
                              const mge_layout& to, bool checked = false);

// Returns the first case for which the backend offers candidates, and these in `*offers`. Returns NotOffered() if it has no
// kernel for any operator.
absl::StatusOr<Case> FirstSupportedCase(BackendUnderTest& tested, Offers* offers);

// Uses the backend like a session: starts it, opens a device, uses memory of every class, a queue and a kernel, and frees
// all, closes and stops, on failure too. `used` (optional) is set to the used bytes of the device's memory after the start.
// `until`: the last part of the work.
enum class Until { kStart, kOpen, kMemory, kQueue, kKernel };
absl::Status LiveOnce(BackendUnderTest& tested, int64_t* used = nullptr, Until until = Until::kKernel);

// Return the operands of a problem and of a case.
std::vector<Operand> InputsOf(const mge_problem& problem);
std::vector<Operand> OutputsOf(const Case& c);

}  // namespace mge::conform

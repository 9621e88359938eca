// SPDX-License-Identifier: Apache-2.0
// One kernel candidate, prepared and bound as the engine does it, with its operands in one block of device memory.
//
// Method: operands are separated by red zones. After a run the whole block is compared with its content before the run.
// This finds each write outside of the outputs and the workspace. Packed constants and arguments have red zones too.
// The functions throw Broken(), or BrokenAs() for a fault that belongs to a certain check.
#pragma once

#include <cstddef>
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

// Returns the number of uses of each value, graph outputs included.
std::vector<int32_t> UsesOf(const Graph& graph);

// A case in the form of the ABI, with its own copies of the constants.
class AbiProblem {
 public:
  explicit AbiProblem(const Case& c, int32_t write_mode = MGE_WRITE);
  const mge_problem* get() const { return &problem_; }
  void SpoilConstants();  // overwrites the constants, which a backend must not read after prepare()

 private:
  Graph graph_;
  std::unique_ptr<AbiGraph> abi_;
  std::vector<int32_t> modes_;
  mge_problem problem_ = {};
};

using Candidate = OwnedCandidate;

// The result of enumerating candidates.
struct Offers {
  std::vector<Candidate> offered;
  std::vector<std::string> refused;  // "kernel: reason"
  std::string malformed;             // the first violation of the contract; "" if there is none
  const Candidate* Find(const std::string& id) const;
  std::string Ids() const;  // "direct, by_library"
};

inline constexpr mge_constraints kNoConstraints = {sizeof(mge_constraints), 0, 0, 0, UINT64_MAX};
Offers Enumerate(BackendUnderTest& tested, const mge_problem& problem, const mge_constraints& constraints = kNoConstraints);
Offers Enumerate(BackendUnderTest& tested, const Case& c, int32_t write_mode = MGE_WRITE);
// Does the same, but returns no offers if the backend returns an error.
Offers TryEnumerate(BackendUnderTest& tested, const Case& c, int32_t write_mode = MGE_WRITE);

// Device memory and queues for runs. Each lane serves one run at a time; the lanes can be used concurrently.
inline constexpr int kLanes = 4;
struct Bench {
  explicit Bench(BackendUnderTest& tested, int lane_count = kLanes);
  void Reserve(uint64_t bytes);  // makes each lane at least this large; may discard its content
  unsigned char* lane(int i) { return first_lane + static_cast<uint64_t>(i) * lane_bytes; }
  uint64_t alignment() const { return tested.description().buffer_alignment; }  // of lanes and operands
  BackendUnderTest& tested;
  Slab slab = {};
  unsigned char* first_lane = nullptr;
  std::optional<LongWork> long_work = {};
  uint64_t lane_bytes = 0;
  const int lane_count;
  mge_layout any = PlainLayout();           // of operands with the layout ANY
  std::vector<Transfer> transfers = {};     // one per lane; declared after the memory that their work uses
  std::unique_ptr<Bench> aside = nullptr;   // a second bench, for reorders between the steps of a run on this one
  std::map<std::string, Bytes> forms = {};  // packed constants; key: name of the form and bytes of the constant
};

// A part of a lane.
struct Region {
  uint64_t offset = 0, bytes = 0;
};

// An operand of a kernel. `constant` is defined if the value is given at prepare time.
struct Operand {
  DType dtype;
  Shape shape;
  Tensor constant = {};
  mge_layout layout = {};  // the candidate's, with ANY replaced
  mge_layout laid = {};    // the one of the bytes in memory: plain for a reorder, whose operands are arrays of bytes
  Region region = {};
  Bytes content = {};  // of a constant: its packed or plain bytes
};

// The checks that get the faults of a run.
inline constexpr Check kPrepare = {"kernel.prepare",
                                   "Every offered candidate can be prepared and bound, and its arguments fit their size."};
inline constexpr Check kBounds = {"kernel.bounds", "No byte outside of the operands is written."};
inline constexpr Check kInputs = {"kernel.inputs_kept", "Inputs and constants are not changed."};
inline constexpr Check kWorkspace = {"kernel.workspace",
                                     "The workspace is not larger than its bound, and no byte behind it is written."};
inline constexpr Check kPrepack = {
    "kernel.prepack",
    "Packing keeps to its size, reads the source only in the call, and gives equal bytes for equal forms."};

struct RunOptions {
  const mge_in_place* in_place = nullptr;  // the output and the input that share memory; optional
  bool shifted = false;                    // plain operands and constants are aligned only to the size of their elements
  int32_t write_mode = MGE_WRITE;          // of the outputs
};

// A prepared and bound candidate. Not thread-safe, except for the functions marked [any thread].
class KernelRun {
 public:
  // Prepares, packs the constants and binds. Overwrites the constants after prepare() has returned. The bench and the case
  // must outlive the KernelRun.
  KernelRun(Bench& bench, const Case& c, const Candidate& candidate, const RunOptions& options = {});
  // Does the same for a reorder. Its operands are arrays of `in_bytes` and `out_bytes`, which are in the candidate's
  // layouts.
  KernelRun(Bench& bench, const mge_problem& reorder, const Candidate& candidate, int64_t in_bytes, int64_t out_bytes);
  ~KernelRun();
  KernelRun(const KernelRun&) = delete;
  KernelRun& operator=(const KernelRun&) = delete;

  Bench& bench() const { return bench_; }
  const Case& subject() const { return *case_; }  // requires a KernelRun of a case
  const Candidate& candidate() const { return candidate_; }
  const mge_prepared& prepared() const { return prepared_; }

  // Copies the inputs (all operands that are not constants, in order) to the lane, and the outputs' previous values `before`
  // for the write mode ADD. All other bytes are set to `fill`.
  void Stage(int lane, const std::vector<Tensor>& inputs, unsigned char fill, const std::vector<Tensor>& before = {});
  // Enqueues a copy of the staged lane `from` to `lane`, on the queue of `lane`. The backend must have queues.
  void EnqueueCopy(int from, int lane);
  // Calls the step. [any thread], one lane per thread.
  mge_error Launch(int lane, uint32_t width, int32_t cancel = 0);
  void Drain(int lane);  // waits for the enqueued work of Launch(); throws Broken() if it failed
  // Calls Launch() and waits for the enqueued work. Returns the first failure. [any thread]
  mge_error Finish(int lane, uint32_t width, int32_t cancel = 0);
  // Calls Finish(). Throws Broken() if it returns a failure. `what` names the step. [any thread]
  void Step(int lane, uint32_t width, std::string_view what) { Answer(Finish(lane, width), what); }
  // Reads the outputs, in the plain layout. Throws BrokenAs() if any byte changed outside of the outputs and the workspace.
  std::vector<Tensor> Collect(int lane);
  Bytes Outputs(int lane);      // the bytes of the outputs in memory. [any thread], one lane per thread
  void ResetOutputs(int lane);  // restores the outputs as staged. [any thread], one lane per thread
  // Calls Stage(), Step() and Collect().
  std::vector<Tensor> Run(int lane, const std::vector<Tensor>& inputs, uint32_t width, unsigned char fill,
                          const std::vector<Tensor>& before = {});

  // Calls Run() on a set of the case's data, and Expect().
  std::vector<Tensor> RunSet(int set, uint32_t width, unsigned char fill, int lane = 0);

  // Compares outputs with expected ones. Returns "output 0: ...", or "" if all are right.
  std::string Wrong(const std::vector<Tensor>& outputs, const std::vector<Tensor>& want) const;
  // Throws Broken(BEGIN and that text) unless the outputs are the results of a set of the case's data.
  void Expect(const std::vector<Tensor>& outputs, int set, std::string_view begin = "") const;

 private:
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
  void Prepare(const mge_problem& problem, const Candidate& candidate);
  Region AddRegion(uint64_t bytes, uint64_t shift = 0);  // begins `shift` bytes behind a multiple of the alignment
  // Sets the layouts and the region of an operand, which has `packed` bytes unless that is 0. With RunOptions::shifted, plain
  // operands are shifted.
  void PlaceOperand(Operand& operand, const mge_layout& layout, uint64_t packed, const RunOptions& options);
  void Place(const RunOptions& options);  // places all operands and the workspace
  void Bind();
  // layouts.cc: packs the constant input on the host, and on a queue if the backend can.
  Bytes Pack(uint32_t input, uint64_t bytes);
  void PackOnQueue(uint32_t input, const Bytes& source, const Bytes& form);

  Bench& bench_;
  const Case* case_ = nullptr;  // NULL: a reorder
  Candidate candidate_;
  std::vector<Operand> inputs_, outputs_;
  mge_prepared prepared_ = {};
  Region workspace_;
  uint64_t total_ = 0;
  std::vector<std::max_align_t> args_;
  mge_step_fn fn_ = nullptr;
  Lane lanes_[kLanes];
};

// Convert a plain tensor to the bytes of a layout, and back. Opaque layouts are converted by the backend's own reorder.
Bytes ToLayout(Bench& bench, const Tensor& plain, const mge_layout& layout);
Tensor FromLayout(Bench& bench, const Bytes& laid, DType dtype, const Shape& shape, const mge_layout& layout);
// Throws Broken() unless the backend describes an opaque layout that a candidate names, and refuses an unknown one.
void Described(BackendUnderTest& tested, const mge_layout& layout, DType dtype, const Shape& shape);
// Runs the backend's own reorder with its first candidate. `checked`: checks its order on the queue, too.
Bytes Reorder(Bench& bench, const Bytes& from_bytes, DType dtype, const Shape& shape, const mge_layout& from,
              const mge_layout& to, bool checked = false);

// The first case for which the backend offers a candidate, and that candidate; nullopt if it has no kernel.
struct SupportedCase {
  Case c;
  Candidate candidate;
};
std::optional<SupportedCase> FirstSupportedCase(BackendUnderTest& tested);

// Uses the backend like a session: starts it, opens a device, uses memory of every class, a queue and a kernel, and frees
// all, closes and stops, on failure too. `used` (optional) is set to the used bytes of the device's memory after the start.
// `until`: the last part of the work.
enum class Until { kStart, kOpen, kMemory, kQueue, kKernel };
void LiveOnce(BackendUnderTest& tested, int64_t* used = nullptr, Until until = Until::kKernel);

// Returns the inputs of a problem.
std::vector<Operand> InputsOf(const mge_problem& problem);

}  // namespace mge::conform

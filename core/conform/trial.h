// SPDX-License-Identifier: Apache-2.0
// One candidate, prepared and bound as the engine would do it, with its operands in one block of device memory between
// guards, so that every byte that it must not touch is seen again afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/conform/cases.h"
#include "core/conform/device_memory.h"
#include "core/plan/abi_graph.h"

namespace mge::conform {

// A case in the form that a backend gets, with constants of its own that can be spoilt.
class AbiProblem {
 public:
  AbiProblem(const Case& c, int32_t write_mode);
  const mge_problem* get() const { return &problem_; }
  mge_problem* get() { return &problem_; }
  void SpoilConstants();  // what the contract lets die after prepare()

 private:
  Graph graph_;
  std::unique_ptr<AbiGraph> abi_;
  std::vector<int32_t> modes_;
  mge_problem problem_ = {};
};

struct Candidate {
  mge_candidate raw;  // its id and lists are replaced by those below
  std::string id;
  std::vector<mge_layout> inputs, outputs;
  std::vector<mge_in_place> in_place;
  bool Has(uint64_t attribute) const { return raw.attributes & attribute; }
};

struct Offers {
  std::vector<Candidate> offered;
  std::vector<std::string> refused;  // "kernel: reason"
  std::string malformed;             // the first breach of the contract
  const Candidate* Find(const std::string& id) const;
};

inline constexpr mge_constraints kNoConstraints = {sizeof(mge_constraints), 0, 0, 0, UINT64_MAX};
absl::StatusOr<Offers> Enumerate(Subject& subject, const mge_problem& problem,
                                 const mge_constraints& constraints = kNoConstraints);

// Device memory and queues for trials; a lane for each run at a time.
inline constexpr int kLanes = 4;
struct Bench {
  static absl::StatusOr<std::unique_ptr<Bench>> Create(Subject& subject);
  absl::Status Reserve(uint64_t bytes);  // for each lane
  unsigned char* lane(int i) { return slab.address() + static_cast<uint64_t>(i) * lane_bytes; }
  absl::StatusOr<Bench*> Aside();  // another one, for what is done between the steps of a trial on this one
  Subject& subject;
  Slab slab = {};
  uint64_t lane_bytes = 0;
  std::array<Transfer, kLanes> transfers = {};  // their work, which uses the slab, ends before it
  std::unique_ptr<Bench> aside = nullptr;
  std::map<std::string, size_t> forms = {};  // hashes of packed constants, by the name of the form and the constant's bytes
};

// What a kernel reads or writes: `constant` is given at prepare time.
struct Operand {
  DType dtype;
  Shape shape;
  Tensor constant;
};

struct RunResult {
  mge_code code = MGE_OK;  // of the step, or of the fence behind what it enqueued
  std::string text;
  absl::Status Answered(std::string_view step = "the step") const { return Answer(code, {code, text, {}}, step); }
  std::vector<Tensor> outputs;  // plain
  std::string changed_input;    // "input 1: byte ..."
  std::string outside;          // bytes between the operands that were overwritten
  std::string beyond_workspace;
};

// "output 0: ...", or "" if all are right.
std::string WhatIsWrong(const RunResult& r, const std::vector<Tensor>& want, const Candidate& candidate);

class Trial {
 public:
  struct Options {
    const mge_in_place* in_place = nullptr;
    bool raw = false;                 // operands are lists of bytes, in the candidate's layouts already
    const mge_layout* any = nullptr;  // what ANY is settled to; NULL: plain
    bool shifted = false;  // plain operands, constants too, lie as without queues: on multiples of their elements' size only
  };
  // `prepared` is called as soon as prepare() has returned: from then on the problem may be spoilt.
  static absl::StatusOr<std::unique_ptr<Trial>> Create(Bench& bench, const mge_problem& problem, const Candidate& candidate,
                                                       std::vector<Operand> inputs, std::vector<Operand> outputs,
                                                       const Options& options, const std::function<void()>& prepared = {});
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  const mge_prepared& prepared() const { return prepared_; }
  const std::string& packing_fault() const { return packing_fault_; }  // bytes written around a packed form
  const std::string& args_fault() const { return args_fault_; }        // bytes written behind the arguments

  // Lays out inputs (those that are no constants, in order) and, for ADD, what the outputs hold before.
  absl::Status Stage(int lane, const std::vector<Tensor>& inputs, unsigned char fill,
                     const std::vector<Tensor>& before = {});
  // Enqueues a copy of what Stage() laid out for another lane, on the lane's queue; only where there are queues.
  mge_code EnqueueCopy(int from, int lane, mge_error* error);
  // Calls the step. [any thread], one lane each.
  mge_code Launch(int lane, uint32_t width, std::string* text, int32_t cancel = 0);
  absl::Status Drain(int lane);  // until what Launch() enqueued is done; Broken() if it failed
  absl::StatusOr<RunResult> Collect(int lane);
  absl::StatusOr<Bytes> Outputs(int lane);  // as they lie. [any thread], one lane each
  absl::Status ResetOutputs(int lane);      // to what Stage() left there. [any thread], one lane each
  // The lane's memory is still as Stage() left it.
  absl::StatusOr<bool> Untouched(int lane);
  // All of it.
  absl::StatusOr<RunResult> Run(int lane, const std::vector<Tensor>& inputs, uint32_t width, unsigned char fill,
                                const std::vector<Tensor>& before = {}, int32_t cancel = 0);

 private:
  struct Region {
    uint64_t offset = 0, bytes = 0;
  };
  struct Lane {
    Bytes image;
    void* state = nullptr;
    void* bases[1] = {};
    int32_t cancel = 0;
    mge_run run = {};
    mge_error error;
  };
  explicit Trial(Bench& bench) : bench_(bench) {}
  Region AddRegion(uint64_t bytes, uint64_t shift = 0);  // from a multiple of the alignment
  absl::Status Pack(const Options& options);

  Bench& bench_;
  Candidate candidate_;
  std::vector<mge_layout> settled_in_, settled_out_;  // ANY resolved
  std::vector<mge_layout> laid_in_, laid_out_;        // from which operands are brought into memory: plain if raw
  std::vector<Operand> inputs_, outputs_;
  mge_prepared prepared_ = {};
  std::vector<Region> input_regions_, output_regions_;
  Region workspace_;
  std::vector<std::pair<Region, Bytes>> constants_;  // packed or not
  uint64_t total_ = 0;
  std::vector<std::max_align_t> args_;
  mge_step_fn fn_ = nullptr;
  Lane lanes_[kLanes];
  std::string packing_fault_, args_fault_;
};

// How a plain tensor lies in a layout, and back. Opaque layouts go through the backend's own reorder.
absl::StatusOr<Bytes> ToLayout(Bench& bench, const Tensor& plain, const mge_layout& layout);
absl::StatusOr<Tensor> FromLayout(Bench& bench, const Bytes& laid, DType dtype, const Shape& shape,
                                  const mge_layout& layout);
// Whether the backend describes an opaque layout that a candidate names, and refuses others.
absl::Status Described(Subject& subject, const mge_layout& layout, DType dtype, const Shape& shape);
// The backend's own reorder, by the first candidate that it offers; `judged`: its order on the queue, too.
absl::StatusOr<Bytes> Reorder(Bench& bench, const Bytes& from_bytes, DType dtype, const Shape& shape, const mge_layout& from,
                              const mge_layout& to, bool judged = false);

// A case that the backend offers candidates for, with these; NotOffered() if it has no kernel for any operator.
absl::StatusOr<Case> FirstSupportedCase(Subject& subject, Offers* offers);

std::vector<Operand> InputsOf(const mge_problem& problem);
std::vector<Operand> OutputsOf(const Case& c);

}  // namespace mge::conform

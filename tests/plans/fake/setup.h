// SPDX-License-Identifier: Apache-2.0
// The set-up of a plan test: fake devices with their kernels, claims and links, and the settings. README.md of tests/plans
// describes its text form. The test and the fake backends both read the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mge/plugin.h"

namespace plans {

struct DeviceLine {
  std::string name;        // "acc0"
  uint64_t memory = 0;     // bytes; 0: unknown
  uint64_t largest = 0;    // largest allocation in bytes; 0: no limit
  uint32_t alignment = 0;  // of operands, in bytes; 0: the default
  uint32_t compute_queues = 1;
  bool cannot_open = false;  // true: opening the device fails
};

struct LinkLine {
  std::string from, to;  // devices
  double gb_s = 0;
  double latency_us = 0;
  std::string name;
};

// The packed form of a constant input.
struct PackedForm {
  uint32_t input = 0;
  uint64_t bytes = 0;
  std::string name;  // empty: the form has no name
};

// A kernel that a device offers, or refuses to offer if `refusal` is not empty.
struct KernelLine {
  std::string on;  // class or device: "acc", "acc0"
  std::string id;
  std::string ops;       // "Conv+Relu"; several are a claimed group
  std::string writes;    // only for the node that writes this value; empty: every node
  std::string from, to;  // only for reorders between these layouts; empty: all
  std::string refusal;
  double cost_us = -1;
  int32_t rank = 0;
  uint64_t attributes = MGE_KERNEL_DETERMINISTIC;
  uint64_t workspace_bound = 0;          // bytes promised by the candidate
  uint64_t workspace = 0;                // bytes that the prepared kernel uses
  std::vector<std::string> inputs = {};  // layouts by operand; shorter lists: the rest is plain
  std::vector<std::string> outputs = {};
  std::string all;  // layout of every operand that is not a constant; empty: as above
  std::vector<mge_in_place> in_place = {};
  std::vector<PackedForm> packed = {};
  bool adds = false;    // true: it can add to its output
  bool unable = false;  // true: preparing it returns MGE_UNIMPLEMENTED
  bool broken = false;  // true: preparing it returns MGE_INTERNAL
};

// A group of nodes that a device offers to compute together.
struct ClaimLine {
  std::string on, name;
  std::vector<std::string> values;  // each node by the first value that it writes, or "#3" by its number
  std::vector<std::string> extra;   // values that the kernel also writes
  double benefit_us = 0;
};

struct Setup {
  std::vector<DeviceLine> devices;
  std::vector<LinkLine> links;
  std::vector<KernelLine> kernels;
  std::vector<ClaimLine> claims;
  std::vector<std::string> uses;                              // device specification; empty: all devices, in order
  std::vector<std::pair<std::string, std::string>> settings;  // key, value
  std::vector<std::vector<std::pair<std::string, std::vector<int64_t>>>> plans;  // shapes of inputs, one list for each plan
  std::vector<std::string> shown;                                                // sections to print; empty: all
};

// Reads the text into `out`. Returns "" or a sentence that names the faulty line.
std::string ReadSetup(std::string_view text, Setup& out);

// Returns whether a line with that `on` is for the device: "acc" and "acc0" are for "acc0".
bool IsOn(std::string_view on, std::string_view device);

// Returns the bit of an attribute of kernels ("capture_safe"), or 0 if the name is unknown.
uint64_t AttributeOf(std::string_view name);

// Returns the layout of a tensor with that rank and that many plain bytes. The text is "plain", "any", "nhwc", "perm(1,0)",
// "perm(0,1,2,3 8x1)" (blocked), or "sealed(3)" (opaque, 64 bytes more than plain). A permutation of another rank is plain.
mge_layout LayoutOf(std::string_view text, int32_t rank, uint64_t plain_bytes);

// The operands of a step that a fake backend has bound. Step::args points to it.
struct BoundOperands {
  static constexpr uint32_t kMax = 16;
  uint32_t inputs, outputs;
  mge_slot workspace;
  mge_slot slots[kMax];  // inputs, then outputs
};

}  // namespace plans

// SPDX-License-Identifier: Apache-2.0
// The number of threads of our own convolutions (cpu.conv_threads).
#pragma once

#include <algorithm>
#include <cstdint>

#include "settings.h"
#include "support/gemm.h"
#include "support/work.h"

namespace mge::cpu {

// Returns the limit; 0: none. A kernel reads it when it is made.
inline uint64_t ConvThreads() { return static_cast<uint64_t>(ToInt(SettingOf(kConvThreadsSetting))); }

// Estimates a run like RunUs(), on at most so many threads as the limit allows.
inline double ConvRunUs(const Problem& p, double serial_us) {
  const auto most = static_cast<double>(ConvThreads()), threads = static_cast<double>(p.threads());
  const double us = RunUs(p, serial_us);
  if (most == 0 || most >= threads) return us;
  return std::min(serial_us, us * threads / most);
}

// Runs body(chunk) for every chunk, on at most `most` threads if that is not 0. The chunks stay the same.
template <typename F>
void ForConvChunks(const mge_run* run, uint64_t most, uint64_t chunks, F&& body) {
  if (most == 0 || chunks <= most) return ParallelFor(run, chunks, body);
  ParallelFor(run, most, [&](uint64_t thread) {
    for (uint64_t c = chunks * thread / most; c < chunks * (thread + 1) / most; ++c) body(c);
  });
}
template <typename F>
void ForConvChunks(const mge_run* run, uint64_t most, const Chunks& c, F&& body) {
  if (c.items == 0) return;
  ForConvChunks(run, most, c.count, [&](uint64_t chunk) { body(c.begin(chunk), c.end(chunk)); });
}
template <typename F>
void ForConvChunks(const mge_run* run, uint64_t most, const GemmSplit& s, F&& body) {
  ForConvChunks(run, most, s.chunks(), [&](uint64_t chunk) { RunGemmChunk(s, chunk, body); });
}

}  // namespace mge::cpu

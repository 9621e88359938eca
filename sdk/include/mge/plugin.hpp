// SPDX-License-Identifier: Apache-2.0
// C++ over plugin.h for backend authors: headers only, standard library only, nothing crosses the boundary but C. Exceptions
// end in the header that calls you; with -fno-exceptions -fno-rtti it works as well.
//
// A backend is one struct that names its parts (backend.hpp). Each part is a class, described where its header begins, and
// each but devices and kernels is there ready-made:
//
//   part       header         ready-made, in one line
//   Device     device.hpp
//   Kernels    row.hpp        a struct with Supports and Launch; kernel.hpp: for whatever does not fit that
//   Memory     memory.hpp     mge::HostMemory
//   Pool       pool.hpp       mge::pool::Naive, Round, Unpooled, Growing
//   Reserve    pool.hpp       mge::reserve::Percent<5>, Bytes<n>, All, None
//   Strategy   strategy.hpp   mge::strategy::Heuristic, Profile, Reproducible
//   Claims     claim.hpp      none; a matcher of patterns
//   Queue      queue.hpp      none: steps run in the calling thread
//   settings   setting.hpp    none
//
// sdk/README.md leads through them.
#pragma once

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "mge/plugin.hpp is C++20: compile with -std=c++20; mge/plugin.h is C99 and stands alone"
#endif

#include "mge/plugin/backend.hpp"
#include "mge/plugin/row.hpp"

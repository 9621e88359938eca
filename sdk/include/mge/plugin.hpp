// SPDX-License-Identifier: Apache-2.0
// C++ over plugin.h for backend authors: headers only, standard library only. Only C types cross the boundary. The headers
// convert exceptions to errors. They also compile with -fno-exceptions -fno-rtti.
//
// A backend is one struct that names its parts (backend.hpp). Each part is a class, described at the top of its header. All
// parts except devices and kernels have a ready-made class:
//
//   part       header         ready-made
//   Device     device.hpp
//   Kernels    row.hpp        a struct with Supports and Launch; kernel.hpp: for kernels that need more control
//   Memory     memory.hpp     mge::HostMemory
//   Pool       pool.hpp       mge::pool::Naive, Round, Unpooled, Growing
//   Reserve    pool.hpp       mge::reserve::Percent<5>, Bytes<n>, All, None
//   Strategy   strategy.hpp   mge::strategy::Heuristic, Profile, Reproducible
//   Claims     claim.hpp      none; a pattern matcher
//   Queue      queue.hpp      none: steps run in the calling thread
//   Communicator collective.hpp none
//   settings   setting.hpp    none
//   blobs      blob.hpp       the host keeps compiled kernels between processes
//
// sdk/README.md explains them step by step.
#pragma once

#if !defined(__cplusplus) || __cplusplus < 202002L
#error "mge/plugin.hpp is C++20: compile with -std=c++20; mge/plugin.h is C99 and stands alone"
#endif

#include "mge/plugin/backend.hpp"
#include "mge/plugin/row.hpp"

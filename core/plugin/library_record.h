// SPDX-License-Identifier: Apache-2.0
// The libraries that this process has opened, and who may open and start each of them.
//
// Why process-wide: a library holds one host table, so a backend can be started only once per process. Several runtimes of one
// process share the started backend.
//
// Algorithm: a thread claims a library, opens it, starts its backend, and publishes the backend. Other threads that want the
// library wait for the end of the claim, and then share the backend or claim the library themselves. No code of a backend runs
// while the record is locked, so a slow start does not delay the loading of other backends.
#pragma once

#include <sys/types.h>

#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/plugin/discovery.h"
#include "core/plugin/host_services.h"

namespace mge {

class Backend;

// One library of the process. It is never unmapped, because threads, handlers and static objects of a driver may outlive
// stop().
struct Library {
  FileIdentity identity;
  std::string build_id;  // empty: unknown
  boost::dll::shared_library handle = {};
  std::weak_ptr<Backend> backend = {};
  std::string thrown = {};        // the text of the exception that its static objects threw, else ""
  const Backend* user = nullptr;  // set before the library is opened or started, reset after stop() has returned
  pid_t user_in = 0;              // the process that set `user`; threads of a parent process do not exist in a forked child
  std::unique_ptr<HostServices> retired = {};

  // Keeps the services, because static objects of the library may call the host when the process ends.
  void Retire(std::unique_ptr<HostServices> services);
};

// The exclusive right to open a library and to start its backend. It ends with Publish(), or with this object: then another
// thread may claim the library. A library that was not opened is forgotten.
class LibraryClaim {
 public:
  LibraryClaim() = default;
  explicit LibraryClaim(Library* library) : library_(library) {}
  LibraryClaim(LibraryClaim&& other) noexcept : library_(std::exchange(other.library_, nullptr)) {}
  LibraryClaim& operator=(LibraryClaim&&) = delete;
  ~LibraryClaim();

  explicit operator bool() const { return library_ != nullptr; }
  Library& library() const { return *library_; }

  // Records the handle of the library. The dynamic linker identifies libraries by path, so it may have returned an older file
  // of the same path: kSameBuild if that is the same build, which has now the claimed identity, otherwise kOtherBuild. In these
  // cases the claimed library stays closed.
  enum class Opened { kNew, kSameBuild, kOtherBuild };
  Opened SetHandle(boost::dll::shared_library handle, std::string thrown);

  // Shares the started backend with all who want the library, until its last owner releases it.
  void Publish(const std::shared_ptr<Backend>& backend);

 private:
  Library* library_ = nullptr;
};

// The result of ClaimLibrary(): a claim, or the started backend. Neither if the library is busy, or lost.
struct ClaimedLibrary {
  LibraryClaim claim = {};
  std::shared_ptr<Backend> backend = nullptr;
  bool lost = false;  // the process was forked while a thread of the parent opened, started or stopped the library
};

// Claims the library of a file for `user`, or returns its started backend. If another thread has claimed it, waits for that
// thread if `wait` is true. In a forked child, claims a library whose backend does not survive the fork.
ClaimedLibrary ClaimLibrary(const FoundPlugin& found, const Backend* user, bool wait);

// Ends the use of the libraries whose backend is `user`, after its stop(). `services` may be null.
void ReleaseLibrary(const Backend* user, std::unique_ptr<HostServices> services);

// Returns the mutex of the process-wide record. It is locked during fork(), so a forked child finds it free. It is held for
// a short time only, and never while code of a backend runs.
std::mutex& RecordMutex();

}  // namespace mge

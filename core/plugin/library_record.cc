// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/library_record.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <new>

#include "core/plugin/loader.h"

namespace mge {
namespace {

// The libraries of the process.
struct Process {
  std::mutex mutex;
  std::condition_variable unused;  // notified when `user` of a library is reset
  std::list<Library> libraries;

  // Returns the library of a file, which is added if it is new.
  Library& Find(const FoundPlugin& found) {
    auto at =
        std::find_if(libraries.begin(), libraries.end(), [&](const Library& l) { return l.identity == found.identity; });
    return at != libraries.end() ? *at : libraries.emplace_back(Library{found.identity, found.file.build_id});
  }
};

// Returns the record of this process. It is not destroyed at exit, because other threads may still use backends. It needs no
// heap memory, because a destructor calls this function.
Process& TheProcess() {
  alignas(Process) static std::byte memory[sizeof(Process)];
  static Process* process = [] {
    auto* made = new (memory) Process;
    pthread_atfork([] { TheProcess().mutex.lock(); }, [] { TheProcess().mutex.unlock(); },
                   [] {
                     new (&TheProcess().unused) std::condition_variable;  // the waiting threads exist only in the parent
                     TheProcess().mutex.unlock();
                   });
    return made;
  }();
  return *process;
}
// Creates the record before there are threads. A process forked during its creation would wait for it forever.
[[maybe_unused]] const Process& made_at_load = TheProcess();

}  // namespace

std::mutex& RecordMutex() { return TheProcess().mutex; }

void Library::Retire(std::unique_ptr<HostServices> services) {
  services->Retire();
  retired = std::move(services);
}

ClaimedLibrary ClaimLibrary(const FoundPlugin& found, const Backend* user, bool wait) {
  Process& process = TheProcess();
  std::shared_ptr<Backend> of_parent;  // before the lock, so that it is released without it: ~Backend() acquires it
  std::unique_lock lock(process.mutex);
  for (;;) {
    Library& library = process.Find(found);
    std::shared_ptr<Backend> backend = library.backend.lock();
    if (backend && backend->Orphaned()) {  // a runtime of the parent has it; this process starts the backend anew
      of_parent = std::move(backend);
      library.user = nullptr;
    }
    if (backend) return {.backend = std::move(backend)};
    if (!library.user) {
      library.user = user;
      library.user_in = getpid();
      return {.claim = LibraryClaim(&library)};
    }
    if (!wait) return {};
    if (library.user_in != getpid()) return {.lost = true};
    process.unused.wait(lock);
  }
}

LibraryClaim::Opened LibraryClaim::SetHandle(boost::dll::shared_library handle, std::string thrown) {
  Process& process = TheProcess();
  std::lock_guard lock(process.mutex);
  auto older = std::find_if(process.libraries.begin(), process.libraries.end(),
                            [&](const Library& l) { return l.handle.is_loaded() && l.handle.native() == handle.native(); });
  if (older == process.libraries.end()) {
    library_->handle = std::move(handle);  // its code may have run, so it must never be unmapped
    library_->thrown = std::move(thrown);
    return Opened::kNew;
  }
  if (older->build_id.empty() || older->build_id != library_->build_id) return Opened::kOtherBuild;
  older->identity = library_->identity;
  return Opened::kSameBuild;
}

void LibraryClaim::Publish(const std::shared_ptr<Backend>& backend) {
  Process& process = TheProcess();
  std::lock_guard lock(process.mutex);
  std::exchange(library_, nullptr)->backend = backend;
  process.unused.notify_all();  // waiting threads can share the backend
}

LibraryClaim::~LibraryClaim() {
  if (!library_) return;
  Process& process = TheProcess();
  std::lock_guard lock(process.mutex);
  library_->user = nullptr;
  if (!library_->handle.is_loaded()) process.libraries.remove_if([&](const Library& l) { return &l == library_; });
  process.unused.notify_all();
}

void ReleaseLibrary(const Backend* user, std::unique_ptr<HostServices> services) {
  Process& process = TheProcess();
  std::lock_guard lock(process.mutex);
  for (Library& library : process.libraries) {
    if (library.user != user) continue;
    library.user = nullptr;
    if (services) library.Retire(std::move(services));
  }
  process.unused.notify_all();
}

}  // namespace mge

// SPDX-License-Identifier: Apache-2.0
// Streams, copies, events, graphs, and kernels of loaded images.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "plugins/gpu/software/driver/functions.h"
#include "plugins/gpu/software/driver/state.h"

namespace mge::software::driver {
namespace {

DriverStream* StreamOf(void* stream) { return static_cast<DriverStream*>(stream); }

template <typename F>
int OnStream(void* stream, F&& f) {
  if (!stream) return kInvalidHandle;
  return Driver::Get().CodeOf(f(StreamOf(stream)->stream));
}

// Returns the outcome of the event's last record. A failure of work loses the device, as on a real one.
int Outcome(DriverEvent& e, uint64_t value, uint64_t timeout_ns) {
  if (value == 0) return kOk;
  const Result r = e.event->HostWait(value, timeout_ns);
  // A fault in data is the backend's matter.
  if (r.ok() || r.code() == MGE_OUT_OF_RANGE || r.code() == MGE_INVALID_ARGUMENT) return kOk;
  if (r.code() == MGE_DEADLINE_EXCEEDED) return kNotReady;
  return Driver::Get().MarkLost(*e.context, r.text());
}

// Returns whether two tasks differ only in addresses and arguments.
bool Alike(const Task& a, const Task& b) {
  return a.kind == b.kind && a.bytes == b.bytes && a.launch.kernel == b.launch.kernel;
}

int CopyPeer(void* to, Context* target, const void* from, Context* source, size_t bytes, void* stream) {
  if (!target || !source) return kInvalidContext;
  return OnStream(stream, [&](Stream& s) { return s.CopyPeer(target->device, to, source->device, from, bytes); });
}

}  // namespace

int Enqueue(void* stream, std::shared_ptr<HostWork> work, const HostWorkCall& call) {
  return OnStream(stream, [&](Stream& s) { return s.Call(std::move(work), call); });
}

int stream_create(void** stream, unsigned /*flags*/) {
  Context* c = Driver::Current();
  if (!c) return kInvalidContext;
  if (const int code = Driver::Get().CodeOf(c->device.Health())) return code;
  *stream = new DriverStream(*c);
  ++Driver::Get().live;
  return kOk;
}

int stream_destroy(void* stream) {
  if (!stream) return kInvalidHandle;
  delete StreamOf(stream);
  --Driver::Get().live;
  return kOk;
}

int stream_synchronize(void* stream) {
  if (!stream) return kInvalidHandle;
  DriverStream& s = *StreamOf(stream);
  if (s.capturing) return kCaptureRefused;
  DriverEvent end{s.context, s.context->device.MakeEvent(), {0}, nullptr};
  if (const int code = event_record(&end, stream)) return code;
  return Outcome(end, end.value, UINT64_MAX);
}

int stream_wait(void* stream, void* event, unsigned flags) {
  if (!event || flags) return kInvalidHandle;
  auto& e = *static_cast<DriverEvent*>(event);
  if (e.value == 0) return kOk;
  return OnStream(stream, [&](Stream& s) { return s.Wait(e.event, e.value); });
}

int cuda_copy(void* to, const void* from, size_t bytes, void* stream) {
  return OnStream(stream, [&](Stream& s) { return s.Copy(to, from, bytes); });
}

int hip_copy(void* to, const void* from, size_t bytes, int /*kind*/, void* stream) {
  return cuda_copy(to, from, bytes, stream);
}

int cuda_copy_peer(void* to, void* to_context, const void* from, void* from_context, size_t bytes, void* stream) {
  return CopyPeer(to, static_cast<Context*>(to_context), from, static_cast<Context*>(from_context), bytes, stream);
}

int hip_copy_peer(void* to, int to_device, const void* from, int from_device, size_t bytes, void* stream) {
  return CopyPeer(to, Driver::Get().Find(to_device), from, Driver::Get().Find(from_device), bytes, stream);
}

int fill(void* to, unsigned char byte, size_t bytes, void* stream) {
  return OnStream(stream, [&](Stream& s) { return s.Fill(to, byte, bytes); });
}

int event_create(void** event, unsigned flags) {
  Context* c = Driver::Current();
  if (!c) return kInvalidContext;
  constexpr unsigned kWithoutTiming = 2;
  auto stamp = flags & kWithoutTiming ? nullptr : std::make_shared<Stamp>(0);
  *event = new DriverEvent{c, c->device.MakeEvent(), {0}, std::move(stamp)};
  ++Driver::Get().live;
  return kOk;
}

int event_destroy(void* event) {
  if (!event) return kInvalidHandle;
  delete static_cast<DriverEvent*>(event);
  --Driver::Get().live;
  return kOk;
}

int event_record(void* event, void* stream) {
  if (!event) return kInvalidHandle;
  auto& e = *static_cast<DriverEvent*>(event);
  if (e.stamp) {
    if (const int code = OnStream(stream, [&](Stream& s) { return s.Mark(e.stamp); })) return code;
  }
  const uint64_t value = e.value + 1;
  const int code = OnStream(stream, [&](Stream& s) { return s.Signal(e.event, value); });
  if (code == kOk) e.value = value;
  return code;
}

int event_query(void* event) {
  if (!event) return kInvalidHandle;
  auto& e = *static_cast<DriverEvent*>(event);
  return Outcome(e, e.value, 0);
}

int event_synchronize(void* event) {
  if (!event) return kInvalidHandle;
  auto& e = *static_cast<DriverEvent*>(event);
  return Outcome(e, e.value, UINT64_MAX);
}

int event_elapsed(float* ms, void* from, void* to) {
  if (!from || !to) return kInvalidHandle;
  auto &begin = *static_cast<DriverEvent*>(from), &end = *static_cast<DriverEvent*>(to);
  if (!begin.stamp || !end.stamp || begin.value == 0 || end.value == 0) return kInvalidHandle;
  for (DriverEvent* e : {&begin, &end}) {
    if (const int code = Outcome(*e, e->value, 0)) return code;
  }
  const Clock::duration elapsed(end.stamp->load() - begin.stamp->load());
  *ms = std::chrono::duration<float, std::milli>(elapsed).count();
  return kOk;
}

int capture_begin(void* stream, int mode) {
  if (mode < 0 || mode > 2) return kInvalidValue;
  const int code = OnStream(stream, [&](Stream& s) { return s.BeginCapture(); });
  if (code == kOk) StreamOf(stream)->capturing = true;
  return code;
}

int capture_end(void* stream, void** graph) {
  *graph = nullptr;
  std::shared_ptr<const Record> record;
  const int code = OnStream(stream, [&](Stream& s) { return s.EndCapture(&record); });
  if (stream) StreamOf(stream)->capturing = false;
  if (code != kOk) return code;
  *graph = new Graph{std::move(record)};
  ++Driver::Get().live;
  return kOk;
}

int graph_instantiate(void** executable, void* graph, unsigned long long flags) {
  if (!graph || flags) return kInvalidValue;
  *executable = new Graph{static_cast<Graph*>(graph)->record};
  ++Driver::Get().live;
  return kOk;
}

int graph_update(void* executable, void* graph, void** error_node, int* result) {
  if (!executable || !graph) return kInvalidHandle;
  *error_node = nullptr;
  const std::vector<Task>&now = static_cast<Graph*>(graph)->record->tasks,
        &before = static_cast<Graph*>(executable)->record->tasks;
  *result = !std::equal(now.begin(), now.end(), before.begin(), before.end(), Alike);
  if (*result) return kUpdateFailed;
  static_cast<Graph*>(executable)->record = static_cast<Graph*>(graph)->record;
  return kOk;
}

int graph_launch(void* executable, void* stream) {
  if (!executable) return kInvalidHandle;
  return OnStream(stream, [&](Stream& s) { return s.Replay(static_cast<Graph*>(executable)->record); });
}

int graph_destroy(void* graph) {
  if (!graph) return kInvalidHandle;
  delete static_cast<Graph*>(graph);
  --Driver::Get().live;
  return kOk;
}

int executable_destroy(void* executable) { return graph_destroy(executable); }

int module_load(void** module, const void* image) {
  if (!Driver::Current()) return kInvalidContext;
  constexpr uint32_t kFatBinary = 0xba55ed50;
  constexpr std::string_view kBundle = "__CLANG_OFFLOAD_BUNDLE__";
  constexpr std::string_view kBinary = "\177ELF", kAssembly = "//";  // results of a compiler at run time
  auto begins = [&](std::string_view text) { return std::memcmp(image, text.data(), text.size()) == 0; };
  const bool known =
      std::memcmp(image, &kFatBinary, sizeof(kFatBinary)) == 0 || begins(kBundle) || begins(kBinary) || begins(kAssembly);
  if (!known) return kInvalidImage;
  *module = new Module;
  ++Driver::Get().live;
  return kOk;
}

int module_unload(void* module) {
  if (!module) return kInvalidHandle;
  delete static_cast<Module*>(module);
  --Driver::Get().live;
  return kOk;
}

int module_function(void** function, void* module, const char* name) {
  if (!module) return kInvalidHandle;
  const uint32_t kernel = gpu::FindKernel(name);
  if (kernel == gpu::kNoKernel) return kNotFound;
  // Functions belong to no module here, because each name exists once. They live as long as the library.
  static auto* const functions = new std::map<uint32_t, Function>();
  std::lock_guard lock(Driver::Get().mutex);
  *function = &functions->try_emplace(kernel, Function{kernel}).first->second;
  return kOk;
}

int launch(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
           unsigned block_z, unsigned shared_bytes, void* stream, void** arguments, void** extra) {
  if (!function) return kInvalidHandle;
  if (!arguments || extra) return kInvalidValue;
  gpu::Launch launch;
  launch.kernel = static_cast<Function*>(function)->kernel;
  const uint32_t grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  std::copy_n(grid, 3, launch.grid);
  std::copy_n(block, 3, launch.block);
  launch.shared_bytes = shared_bytes;
  launch.args = arguments[0];
  launch.args_bytes = gpu::KernelArgsBytes(launch.kernel);
  return OnStream(stream, [&](Stream& s) { return s.Launch(launch); });
}

}  // namespace mge::software::driver

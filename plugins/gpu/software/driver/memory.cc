// SPDX-License-Identifier: Apache-2.0
// Memory of devices and page-locked memory, and ranges of addresses.
#include <cstdlib>

#include "plugins/gpu/software/address.h"
#include "plugins/gpu/software/driver/functions.h"
#include "plugins/gpu/software/driver/state.h"

namespace mge::software::driver {
namespace {

constexpr size_t kPage = 4096;

const char* Key(const void* address) { return static_cast<const char*>(address); }

// Returns the reservation that contains the bytes, or null. The caller holds the lock.
std::pair<const char* const, Reservation>* FindReservation(Driver& d, const void* address, uint64_t bytes) {
  auto it = d.reservations.upper_bound(Key(address));
  if (it == d.reservations.begin()) return nullptr;
  --it;
  const uint64_t offset = static_cast<uint64_t>(Key(address) - it->first);
  return offset <= it->second.bytes && bytes <= it->second.bytes - offset ? &*it : nullptr;
}

// Removes physical memory that is neither mapped nor referenced. The caller holds the lock.
void Drop(Driver& d, uint64_t id) {
  auto it = d.physical.find(id);
  if (it == d.physical.end() || it->second.mapped || !it->second.released) return;
  d.physical.erase(it);
  --d.live;
}

}  // namespace

int memory_info(size_t* free_bytes, size_t* total_bytes) {
  Context* c = Driver::Current();
  if (!c) return kInvalidContext;
  const Memory& memory = c->device.memory();
  *total_bytes = memory.capacity();
  *free_bytes = memory.capacity() - memory.used();
  return Driver::Get().CodeOf(c->device.Health());
}

int allocate(void** address, size_t bytes) {
  Context* c = Driver::Current();
  if (!c) return kInvalidContext;
  if (bytes == 0) return kInvalidValue;
  const int code = Driver::Get().CodeOf(c->device.Allocate(bytes, address));
  if (code == kOk) ++Driver::Get().live;
  return code;
}

int release(void* address) {
  Context* c = Driver::Current();
  if (!c) return kInvalidContext;
  if (!address) return kOk;
  if (!c->device.memory().Find(address, 0)) return kInvalidValue;
  c->device.memory().Free(address);
  --Driver::Get().live;
  return Driver::Get().CodeOf(c->device.Health());
}

int host_allocate(void** address, size_t bytes, unsigned /*flags*/) {
  Context* c = Driver::Current();
  if (!c) return kInvalidContext;
  if (const int code = Driver::Get().CodeOf(c->device.CountAllocation())) return code;
  const size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  *address = rounded < bytes || bytes == 0 ? nullptr : std::aligned_alloc(kPage, rounded);
  if (!*address) return bytes == 0 ? kInvalidValue : kOutOfMemory;
  ++Driver::Get().live;
  return kOk;
}

int host_release(void* address) {
  if (!address) return kInvalidValue;
  std::free(address);
  --Driver::Get().live;
  return kOk;
}

int range_granularity(size_t* bytes, const void* properties, int /*option*/) {
  if (!properties) return kInvalidValue;
  *bytes = Memory::kGranularity;
  return kOk;
}

int range_reserve(void** address, size_t bytes, size_t /*alignment*/, void* wish, unsigned long long flags) {
  Context* c = Driver::Current();
  if (!c) return kInvalidContext;
  if (wish || flags) return kNotSupported;
  Driver& d = Driver::Get();
  const int code = d.CodeOf(c->device.memory().Reserve(bytes, address));
  if (code != kOk) return code;
  std::lock_guard lock(d.mutex);
  d.reservations[Key(*address)] = {c, bytes};
  ++d.live;
  return kOk;
}

int range_release(void* address, size_t bytes) {
  Driver& d = Driver::Get();
  std::lock_guard lock(d.mutex);
  auto it = d.reservations.find(Key(address));
  if (it == d.reservations.end() || it->second.bytes != bytes) return kInvalidValue;
  it->second.context->device.memory().Free(address);
  d.reservations.erase(it);
  --d.live;
  return kOk;
}

int physical_create(uint64_t* memory, size_t bytes, const void* properties, unsigned long long flags) {
  if (!properties || flags || bytes == 0 || bytes % Memory::kGranularity) return kInvalidValue;
  Driver& d = Driver::Get();
  Context* c = d.Find(static_cast<const int*>(properties)[3]);  // location.id
  if (!c) return kInvalidDevice;
  if (const int code = d.CodeOf(c->device.CountAllocation())) return code;
  if (bytes > c->device.memory().capacity() - c->device.memory().used()) return kOutOfMemory;
  std::lock_guard lock(d.mutex);
  *memory = d.next_physical++;
  d.physical[*memory] = {c, bytes};
  ++d.live;
  return kOk;
}

int physical_release(uint64_t memory) {
  Driver& d = Driver::Get();
  std::lock_guard lock(d.mutex);
  auto it = d.physical.find(memory);
  if (it == d.physical.end() || it->second.released) return kInvalidValue;
  it->second.released = true;
  Drop(d, memory);
  return kOk;
}

int range_map(void* address, size_t bytes, size_t offset, uint64_t memory, unsigned long long flags) {
  Driver& d = Driver::Get();
  std::lock_guard lock(d.mutex);
  auto it = d.physical.find(memory);
  if (it == d.physical.end() || it->second.mapped || it->second.bytes != bytes || offset || flags) return kInvalidValue;
  if (!FindReservation(d, address, bytes)) return kInvalidValue;
  it->second.mapped = true;
  d.mappings[Key(address)] = {bytes, memory};
  return kOk;
}

int range_allow(void* address, size_t bytes, const void* access, size_t count) {
  Driver& d = Driver::Get();
  std::lock_guard lock(d.mutex);
  auto mapped = d.mappings.find(Key(address));
  auto* reservation = FindReservation(d, address, bytes);
  if (mapped == d.mappings.end() || mapped->second.bytes != bytes || !reservation || !access || count == 0) {
    return kInvalidValue;
  }
  SoftwareDevice& device = reservation->second.context->device;
  const uint64_t offset = static_cast<uint64_t>(Key(address) - reservation->first);
  const Result r = device.memory().Commit(reservation->first, offset, bytes);
  if (!r.ok()) return r.code() == MGE_RESOURCE_EXHAUSTED ? kOutOfMemory : kInvalidValue;
  mapped->second.committed = true;
  return kOk;
}

int range_unmap(void* address, size_t bytes) {
  Driver& d = Driver::Get();
  std::lock_guard lock(d.mutex);
  auto mapped = d.mappings.find(Key(address));
  auto* reservation = FindReservation(d, address, bytes);
  if (mapped == d.mappings.end() || mapped->second.bytes != bytes || !reservation) return kInvalidValue;
  if (mapped->second.committed) {
    const uint64_t offset = static_cast<uint64_t>(Key(address) - reservation->first);
    reservation->second.context->device.memory().Decommit(reservation->first, offset, bytes);
  }
  const uint64_t id = mapped->second.physical;
  d.mappings.erase(mapped);
  d.physical[id].mapped = false;
  Drop(d, id);
  return kOk;
}

}  // namespace mge::software::driver

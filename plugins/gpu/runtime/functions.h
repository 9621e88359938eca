// SPDX-License-Identifier: Apache-2.0
// The functions of a GPU's driver that backends call: libcuda and libamdhip64 differ in names, not in parameters. Handles
// and device addresses are pointers here, codes and enumerations are int.
#pragma once

#include <stddef.h>
#include <stdint.h>

// F(member, CUDA symbol, HIP symbol, parameters, arguments)
#define GPU_DRIVER_FUNCTIONS(F)                                                                                            \
  F(init, cuInit, hipInit, (unsigned flags), (flags))                                                                      \
  F(driver_version, cuDriverGetVersion, hipDriverGetVersion, (int* version), (version))                                    \
  F(device_count, cuDeviceGetCount, hipGetDeviceCount, (int* count), (count))                                              \
  F(device_get, cuDeviceGet, hipDeviceGet, (int* device, int ordinal), (device, ordinal))                                  \
  F(device_name, cuDeviceGetName, hipDeviceGetName, (char* name, int bytes, int device), (name, bytes, device))            \
  F(device_uuid, cuDeviceGetUuid_v2, hipDeviceGetUuid, (void* uuid, int device), (uuid, device))                           \
  F(device_pci, cuDeviceGetPCIBusId, hipDeviceGetPCIBusId, (char* id, int bytes, int device), (id, bytes, device))         \
  F(device_memory, cuDeviceTotalMem_v2, hipDeviceTotalMem, (size_t * bytes, int device), (bytes, device))                  \
  F(device_attribute, cuDeviceGetAttribute, hipDeviceGetAttribute, (int* value, int attribute, int device),                \
    (value, attribute, device))                                                                                            \
  F(context_retain, cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain, (void** context, int device), (context, device))  \
  F(context_release, cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease, (int device), (device))                     \
  F(context_push, cuCtxPushCurrent_v2, hipCtxPushCurrent, (void* context), (context))                                      \
  F(context_pop, cuCtxPopCurrent_v2, hipCtxPopCurrent, (void** context), (context))                                        \
  F(memory_info, cuMemGetInfo_v2, hipMemGetInfo, (size_t * free_bytes, size_t * total_bytes), (free_bytes, total_bytes))   \
  F(allocate, cuMemAlloc_v2, hipMalloc, (void** address, size_t bytes), (address, bytes))                                  \
  F(release, cuMemFree_v2, hipFree, (void* address), (address))                                                            \
  F(host_allocate, cuMemHostAlloc, hipHostMalloc, (void** address, size_t bytes, unsigned flags), (address, bytes, flags)) \
  F(host_release, cuMemFreeHost, hipHostFree, (void* address), (address))                                                  \
  F(fill, cuMemsetD8Async, hipMemsetD8Async, (void* to, unsigned char byte, size_t bytes, void* stream),                   \
    (to, byte, bytes, stream))                                                                                             \
  F(stream_create, cuStreamCreate, hipStreamCreateWithFlags, (void** stream, unsigned flags), (stream, flags))             \
  F(stream_destroy, cuStreamDestroy_v2, hipStreamDestroy, (void* stream), (stream))                                        \
  F(stream_synchronize, cuStreamSynchronize, hipStreamSynchronize, (void* stream), (stream))                               \
  F(stream_wait, cuStreamWaitEvent, hipStreamWaitEvent, (void* stream, void* event, unsigned flags),                       \
    (stream, event, flags))                                                                                                \
  F(capture_begin, cuStreamBeginCapture_v2, hipStreamBeginCapture, (void* stream, int mode), (stream, mode))               \
  F(capture_end, cuStreamEndCapture, hipStreamEndCapture, (void* stream, void** graph), (stream, graph))                   \
  F(event_create, cuEventCreate, hipEventCreateWithFlags, (void** event, unsigned flags), (event, flags))                  \
  F(event_destroy, cuEventDestroy_v2, hipEventDestroy, (void* event), (event))                                             \
  F(event_record, cuEventRecord, hipEventRecord, (void* event, void* stream), (event, stream))                             \
  F(event_query, cuEventQuery, hipEventQuery, (void* event), (event))                                                      \
  F(event_synchronize, cuEventSynchronize, hipEventSynchronize, (void* event), (event))                                    \
  F(event_elapsed, cuEventElapsedTime, hipEventElapsedTime, (float* ms, void* from, void* to), (ms, from, to))             \
  F(graph_instantiate, cuGraphInstantiateWithFlags, hipGraphInstantiateWithFlags,                                          \
    (void** executable, void* graph, unsigned long long flags), (executable, graph, flags))                                \
  F(graph_update, cuGraphExecUpdate, hipGraphExecUpdate, (void* executable, void* graph, void** error_node, int* result),  \
    (executable, graph, error_node, result))                                                                               \
  F(graph_launch, cuGraphLaunch, hipGraphLaunch, (void* executable, void* stream), (executable, stream))                   \
  F(graph_destroy, cuGraphDestroy, hipGraphDestroy, (void* graph), (graph))                                                \
  F(executable_destroy, cuGraphExecDestroy, hipGraphExecDestroy, (void* executable), (executable))                         \
  F(module_load, cuModuleLoadData, hipModuleLoadData, (void** module, const void* image), (module, image))                 \
  F(module_unload, cuModuleUnload, hipModuleUnload, (void* module), (module))                                              \
  F(module_function, cuModuleGetFunction, hipModuleGetFunction, (void** function, void* module, const char* name),         \
    (function, module, name))                                                                                              \
  F(launch, cuLaunchKernel, hipModuleLaunchKernel,                                                                         \
    (void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,                \
     unsigned block_z, unsigned shared_bytes, void* stream, void** arguments, void** extra),                               \
    (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, arguments, extra))                 \
  F(can_access_peer, cuDeviceCanAccessPeer, hipDeviceCanAccessPeer, (int* can, int device, int peer), (can, device, peer)) \
  F(enable_peer, cuCtxEnablePeerAccess, hipCtxEnablePeerAccess, (void* context, unsigned flags), (context, flags))         \
  F(peer_attribute, cuDeviceGetP2PAttribute, hipDeviceGetP2PAttribute, (int* value, int attribute, int device, int peer),  \
    (value, attribute, device, peer))                                                                                      \
  F(range_granularity, cuMemGetAllocationGranularity, hipMemGetAllocationGranularity,                                      \
    (size_t * bytes, const void* properties, int option), (bytes, properties, option))                                     \
  F(range_reserve, cuMemAddressReserve, hipMemAddressReserve,                                                              \
    (void** address, size_t bytes, size_t alignment, void* wish, unsigned long long flags),                                \
    (address, bytes, alignment, wish, flags))                                                                              \
  F(range_release, cuMemAddressFree, hipMemAddressFree, (void* address, size_t bytes), (address, bytes))                   \
  F(physical_create, cuMemCreate, hipMemCreate,                                                                            \
    (uint64_t * memory, size_t bytes, const void* properties, unsigned long long flags),                                   \
    (memory, bytes, properties, flags))                                                                                    \
  F(physical_release, cuMemRelease, hipMemRelease, (uint64_t memory), (memory))                                            \
  F(range_map, cuMemMap, hipMemMap,                                                                                        \
    (void* address, size_t bytes, size_t offset, uint64_t memory, unsigned long long flags),                               \
    (address, bytes, offset, memory, flags))                                                                               \
  F(range_allow, cuMemSetAccess, hipMemSetAccess, (void* address, size_t bytes, const void* access, size_t count),         \
    (address, bytes, access, count))                                                                                       \
  F(range_unmap, cuMemUnmap, hipMemUnmap, (void* address, size_t bytes), (address, bytes))

// The functions that the two do not have in common.
#define GPU_CUDA_FUNCTIONS(F)                                                                                        \
  F(cuda_copy, cuMemcpyAsync, , (void* to, const void* from, size_t bytes, void* stream), (to, from, bytes, stream)) \
  F(cuda_copy_peer, cuMemcpyPeerAsync, ,                                                                             \
    (void* to, void* to_context, const void* from, void* from_context, size_t bytes, void* stream),                  \
    (to, to_context, from, from_context, bytes, stream))                                                             \
  F(cuda_error_name, cuGetErrorName, , (int code, const char** name), (code, name))
#define GPU_HIP_FUNCTIONS(F)                                                                        \
  F(hip_copy, , hipMemcpyAsync, (void* to, const void* from, size_t bytes, int kind, void* stream), \
    (to, from, bytes, kind, stream))                                                                \
  F(hip_copy_peer, , hipMemcpyPeerAsync,                                                            \
    (void* to, int to_device, const void* from, int from_device, size_t bytes, void* stream),       \
    (to, to_device, from, from_device, bytes, stream))
// A function that later versions may drop.
#define GPU_HIP_OLD_FUNCTIONS(F) \
  F(hip_properties, , hipGetDeviceProperties, (void* properties, int device), (properties, device))

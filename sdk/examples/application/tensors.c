/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in memory of the host and of a device: tensors DEVICE FOLDER
 * Creates, wraps, copies, writes and reads them. FOLDER receives a file. */
#include "example.h"
#include "mge/context.h"

static void released(void* count) { ++*(int*)count; }

/* Reads a whole file. The caller frees the memory. */
static void* read_file(const char* path, uint64_t* size) {
  FILE* file = fopen(path, "rb");
  void* data = malloc(1 << 16);
  if (!file || !data) exit(1);
  *size = fread(data, 1, 1 << 16, file);
  fclose(file);
  return data;
}

int main(int argc, char** argv) {
  need_arguments(argc, 2, "tensors DEVICE FOLDER");
  const char* device = argv[1];
  const int64_t dims[] = {2, 3};
  mge_runtime* runtime = NULL;
  check(mge_runtime_create(NULL, &runtime));

  /* A tensor of its own memory, and one of the caller's. */
  mge_tensor *own = NULL, *wrapped = NULL;
  float numbers[6] = {1, 2, 3, 4, 5, 6};
  check(mge_tensor_create(MGE_DTYPE_F32, dims, 2, &own)); /* zeros */
  check(mge_tensor_wrap(MGE_DTYPE_F32, dims, 2, numbers, sizeof(numbers), &wrapped));
  check(mge_tensor_copy(wrapped, own));
  printf("%s[%lld,%lld], %llu elements, %llu bytes, last %g\n", mge_dtype_name(mge_tensor_dtype(own)),
         (long long)mge_tensor_dims(own)[0], (long long)mge_tensor_dims(own)[1],
         (unsigned long long)mge_tensor_elements(own), (unsigned long long)mge_tensor_bytes(own),
         ((float*)mge_tensor_data(own))[5]);

  /* Nothing may write a read-only tensor: neither a run nor a copy. */
  mge_tensor_set_read_only(own);
  mge_status* refused = mge_tensor_copy(wrapped, own);
  printf("read only: %d, copy refused: %s\n", (int)mge_tensor_read_only(own), refused ? "yes" : "no");
  mge_status_release(refused);

  /* The memory of a device. A run binds it without a copy. */
  mge_tensor *on_device = NULL, *pinned = NULL, *back = NULL;
  check(mge_tensor_create_on(runtime, device, MGE_DTYPE_F32, dims, 2, &on_device));
  check(mge_tensor_copy(own, on_device));
  printf("on %s, context %s, address %s\n", mge_tensor_device(on_device), mge_tensor_context(on_device).device_type,
         mge_tensor_address(on_device) ? "known" : "unknown");
  void* mapped = NULL;
  mge_status* no_access = mge_tensor_map(on_device, &mapped); /* fails where the host has no access */
  printf("the host %s it\n", no_access ? "cannot access" : "can access");
  mge_status_release(no_access);
  check(mge_tensor_create(MGE_DTYPE_F32, dims, 2, &back));
  check(mge_tensor_copy(on_device, back));
  check(mge_tensor_map(back, &mapped));
  printf("back on the host: %g\n", ((float*)mapped)[5]);

  /* Host memory that the device's driver page-locks, so that runs do not stage it. Only devices with queues have it. */
  char place[80];
  snprintf(place, sizeof(place), "cpu_pinned(%s)", device);
  mge_status* none = mge_tensor_create_on(runtime, place, MGE_DTYPE_F32, dims, 2, &pinned);
  printf("page-locked: %s\n", !none && mge_tensor_page_locked(pinned) ? "yes" : "no");
  mge_status_release(none);

  /* Memory of the device that another library has allocated: here that of a tensor. */
  mge_tensor* view = NULL;
  int count = 0;
  check(mge_tensor_wrap_on(runtime, device, MGE_DTYPE_F32, dims, 2, mge_tensor_address(on_device), sizeof(numbers), released,
                           &count, &view));
  mge_tensor_release(view);
  printf("released %d time\n", count);

  /* Files of NumPy. */
  char path[4096];
  mge_tensor *file = NULL, *bytes = NULL;
  snprintf(path, sizeof(path), "%s/tensor.npy", argv[2]);
  check(mge_tensor_write_npy(own, path));
  check(mge_tensor_read(path, &file));
  uint64_t size = 0;
  void* data = read_file(path, &size);
  check(mge_tensor_read_npy_bytes(data, size, &bytes));
  free(data);
  printf("read back: %g and %g\n", ((float*)mge_tensor_data(file))[0], ((float*)mge_tensor_data(bytes))[5]);

  mge_tensor* all[] = {own, wrapped, on_device, pinned, back, file, bytes};
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) mge_tensor_release(all[i]);
  mge_runtime_release(runtime);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * An application that runs a model on memory of the driver, which has handles instead of addresses: handles DEVICE
 * DEVICE is one of the example's backend, such as example_driver0. With OpenCL, a handle would be a cl_mem. */
#include <stdio.h>

#include "mge/mge.h"
#include "toy_driver.h"

static int failed(mge_status* status) {
  if (!status) return 0;
  fprintf(stderr, "%s\n", mge_status_text(status));
  mge_status_release(status);
  return 1;
}

/* Called when no tensor and no run uses the memory any more. */
static void destroy(void* memory) { toy_memory_destroy(memory); }

int main(int argc, char** argv) {
  const int64_t dims[] = {4};
  const float numbers[4] = {1, 2, 3, 4};
  mge_runtime* runtime = NULL;
  mge_tensor *host = NULL, *tensor = NULL;
  toy_memory* memory = NULL;
  int result = 1;
  if (argc < 2) {
    fprintf(stderr, "usage: handles DEVICE\n");
    return 2;
  }
  if (failed(mge_runtime_create(NULL, &runtime))) return 1;

  /* A first tensor starts the backend, and with it the driver. */
  if (failed(mge_tensor_create_on(runtime, argv[1], MGE_DTYPE_F32, dims, 1, &tensor))) goto done;
  mge_tensor_release(tensor);
  tensor = NULL;

  if (toy_memory_create(0, sizeof(numbers), &memory) != TOY_OK) goto done;
  if (failed(mge_tensor_wrap_handle(runtime, argv[1], MGE_DTYPE_F32, dims, 1, memory, 0, sizeof(numbers), destroy, memory,
                                    &tensor))) {
    goto done;
  }
  if (failed(mge_tensor_create(MGE_DTYPE_F32, dims, 1, &host))) goto done;
  for (int i = 0; i < 4; ++i) ((float*)mge_tensor_data(host))[i] = numbers[i];
  if (failed(mge_tensor_copy(host, tensor)) || failed(mge_tensor_copy(tensor, host))) goto done;
  printf("through the driver's memory on %s: %g\n", mge_tensor_device(tensor), ((float*)mge_tensor_data(host))[3]);
  result = 0;

done:
  mge_tensor_release(host);
  mge_tensor_release(tensor);
  mge_runtime_release(runtime);
  return result;
}

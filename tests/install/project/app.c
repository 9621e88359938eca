/* SPDX-License-Identifier: Apache-2.0
 *
 * An application in C99 that is built outside of MGE's tree: app DIGITS RELU DEVICE
 * It recognises the digits of the folder DIGITS on cpu0, and runs the model RELU on DEVICE. */
#include <stdio.h>
#include <string.h>

#include "mge/mge.h"

static int Failed(mge_status* status) {
  if (status == NULL) return 0;
  fprintf(stderr, "%s\n", mge_status_text(status));
  mge_status_release(status);
  return 1;
}

/* Returns the number of correctly recognised digits, or -1 after an error. */
static int ReadDigits(mge_runtime* runtime, const char* folder) {
  char path[4096];
  mge_session* session = NULL;
  mge_tensor *images = NULL, *labels = NULL, *result = NULL;
  mge_session_options options;
  int right = -1;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.device = "cpu0";

  snprintf(path, sizeof(path), "%s/digits.onnx", folder);
  if (Failed(mge_session_load(runtime, path, &options, &session))) goto done;
  snprintf(path, sizeof(path), "%s/digits_images.npy", folder);
  if (Failed(mge_tensor_read(path, &images))) goto done;
  snprintf(path, sizeof(path), "%s/digits_labels.npy", folder);
  if (Failed(mge_tensor_read(path, &labels))) goto done;
  if (Failed(mge_session_run(session, &images, 1, &result, 1, NULL, NULL))) goto done;

  right = 0;
  for (int64_t i = 0; i < mge_tensor_dims(images)[0]; ++i) {
    const float* row = (const float*)mge_tensor_data(result) + 10 * i;
    int best = 0;
    for (int k = 1; k < 10; ++k) best = row[k] > row[best] ? k : best;
    right += best == ((const int64_t*)mge_tensor_data(labels))[i];
  }

done:
  mge_tensor_release(images);
  mge_tensor_release(labels);
  mge_tensor_release(result);
  mge_session_release(session);
  return right;
}

/* Returns 1 if Relu of {-2 -1 0 1 2 3} is correct on the device, else 0. */
static int Relu(mge_runtime* runtime, const char* model, const char* device) {
  float data[6] = {-2, -1, 0, 1, 2, 3};
  const int64_t dims[2] = {2, 3};
  mge_session* session = NULL;
  mge_tensor *x = NULL, *y = NULL;
  mge_session_options options;
  int good = 0;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.device = device;

  if (Failed(mge_session_load(runtime, model, &options, &session))) goto done;
  if (Failed(mge_tensor_wrap(MGE_DTYPE_F32, dims, 2, data, sizeof(data), &x))) goto done;
  if (Failed(mge_session_run(session, &x, 1, &y, 1, NULL, NULL))) goto done;
  good = mge_tensor_elements(y) == 6;
  for (int i = 0; good && i < 6; ++i) {
    good = ((const float*)mge_tensor_data(y))[i] == (data[i] > 0 ? data[i] : 0);
  }

done:
  mge_tensor_release(x);
  mge_tensor_release(y);
  mge_session_release(session);
  return good;
}

int main(int argc, char** argv) {
  mge_runtime* runtime = NULL;
  int right, good;
  if (argc != 4) return 2;
  if (Failed(mge_runtime_create(NULL, &runtime))) return 1;
  right = ReadDigits(runtime, argv[1]);
  good = Relu(runtime, argv[2], argv[3]);
  mge_runtime_release(runtime);
  printf("MGE %s: %d of 48 digits are right; Relu on %s is %s\n", mge_version(), right, argv[3], good ? "right" : "wrong");
  return right >= 46 && good ? 0 : 1;
}

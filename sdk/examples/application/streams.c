/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders runs with the work of the application on the same device: streams MODEL INPUT.npy
 * With CUDA or HIP, native_stream is a cudaStream_t or hipStream_t. Here the device is a virtual one, and its stream a function
 * of this program, which does the work at once. */
#include "example.h"
#include "mge/virtual_stream.h"

static int32_t append(void* state, void (*work)(void* argument), void* argument) {
  (void)state;
  work(argument); /* all earlier work is done */
  return 0;
}

int main(int argc, char** argv) {
  need_arguments(argc, 2, "streams MODEL INPUT.npy");
  mge_runtime* runtime = NULL;
  mge_session* session = NULL;
  mge_tensor *host = NULL, *input = NULL, *output = NULL;
  check(mge_runtime_create(NULL, &runtime));
  mge_session_options session_options;
  mge_session_options_init(&session_options);
  session_options.device = "virtual0";
  check(mge_session_load(runtime, argv[1], &session_options, &session));
  check(mge_tensor_read(argv[2], &host));
  check(mge_tensor_create_on(runtime, "virtual0", mge_tensor_dtype(host), mge_tensor_dims(host), mge_tensor_rank(host),
                             &input));

  mge_virtual_stream stream;
  mge_virtual_stream_init(&stream);
  stream.append = append;
  check(
      mge_tensor_copy(host, input)); /* stands for work that the application puts on its stream, and that writes the input */

  /* The run follows that work, and later work on the stream follows the run. No call waits for the device. */
  mge_run_fence* fence = NULL;
  mge_run_options options;
  mge_run_options_init(&options);
  options.native_stream = &stream;
  check(mge_session_run(session, &input, 1, &output, 1, &options, &fence));
  int32_t reached = 0;
  check(mge_run_fence_wait(fence, -1, &reached));
  printf("the run followed the stream: %s\n", reached ? "yes" : "no");
  mge_run_fence_release(fence);

  /* A fence for the work itself: afterwards the host may read what the work has written. */
  check(mge_run_fence_of_stream(runtime, "virtual0", &stream, &fence));
  check(mge_run_fence_wait(fence, -1, &reached));
  printf("its work has ended: %s\n", reached ? "yes" : "no");
  mge_run_fence_release(fence);

  mge_tensor_release(host);
  mge_tensor_release(input);
  mge_tensor_release(output);
  mge_session_release(session);
  mge_runtime_release(runtime);
  return 0;
}

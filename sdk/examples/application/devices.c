/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the devices and chooses one: devices [DEVICE]
 * Shows settings of a runtime, the device of a thread, and the contexts of mge/context.h. */
#include "example.h"
#include "mge/context.h"

static void print_log(void* state, int32_t level, const char* message, size_t size) {
  (void)state;
  fprintf(stderr, "[%d] %.*s\n", (int)level, (int)size, message);
}

int main(int argc, char** argv) {
  const char* device = argc > 1 ? argv[1] : "cpu0";
  mge_runtime* runtime = NULL;
  mge_string* text = NULL;

  /* Settings of the program precede those of the environment and of files. */
  const char* settings[] = {"threads=2"};
  mge_runtime_options options;
  mge_runtime_options_init(&options);
  options.settings = settings;
  options.setting_count = 1;
  options.log = print_log;
  check(mge_runtime_create(&options, &runtime));
  check(mge_runtime_set(runtime, "run.timeout_seconds", "60")); /* for sessions that are created later */
  check(mge_runtime_get(runtime, "threads", &text));
  print_text("threads", text);
  check(mge_runtime_set_execution_strategy(runtime, "heuristic"));

  mge_device_facts facts;
  mge_device_facts_init(&facts);
  for (size_t i = 0; i < mge_runtime_device_count(runtime); ++i) {
    check(mge_runtime_device(runtime, i, &facts));
    printf("device %s of %s%s\n", facts.name, facts.backend, facts.usable ? "" : ", not usable");
  }
  check(mge_runtime_report(runtime, "mge.devices/1", &text)); /* the same and more, as JSON */
  print_text("report", text);

  /* The device of sessions and tensors that name none: of the runtime, then of this thread until the pop. */
  check(mge_runtime_set_default_device(runtime, device));
  check(mge_device_push("cpu(0)"));
  check(mge_device_current(runtime, &text));
  print_text("device of the thread", text);
  check(mge_device_pop());
  check(mge_device_empty_cache(runtime, device)); /* gives unused memory back to the driver */

  /* The same as contexts: a type and a number. */
  mge_context context;
  check(mge_context_create("cpu", 0, &context));
  check(mge_context_push(&context));
  check(mge_context_current(runtime, &context));
  printf("context %s\n", mge_context_format(&context).text);
  check(mge_context_pop());
  check(mge_context_parse(device, &context));
  check(mge_empty_cache(runtime, &context));
  printf("context %s\n", mge_context_format(&context).text);

  const int32_t gpus = mge_num_gpus(runtime);
  for (int32_t gpu = 0; gpu < gpus; ++gpu) {
    uint64_t free_bytes = 0, total_bytes = 0;
    check(mge_gpu_memory_info(runtime, gpu, &free_bytes, &total_bytes));
    printf("gpu%d: %llu of %llu bytes are free\n", (int)gpu, (unsigned long long)free_bytes,
           (unsigned long long)total_bytes);
  }
  mge_runtime_release(runtime);
  return 0;
}

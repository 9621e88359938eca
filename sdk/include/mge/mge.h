/* SPDX-License-Identifier: Apache-2.0
 *
 * MGE for applications, in plain C99: load an ONNX model, choose a device, run it.
 *
 *   mge_runtime* runtime = NULL;  mge_session* session = NULL;  mge_status* status;
 *   if ((status = mge_runtime_create(NULL, &runtime))) goto failed;
 *   if ((status = mge_session_load(runtime, "model.onnx", NULL, &session))) goto failed;
 *   ...
 *   failed: fprintf(stderr, "%s\n", mge_status_text(status));  mge_status_release(status);
 *
 * Errors      Functions that can fail return NULL on success, else a status that the caller releases.
 * Ownership   What a function named create, load, run or copy gives through an out parameter is the caller's, who releases it with the
 *             function of that type. Everything else that is returned belongs to the object it was asked of and lives as long.
 *             Releasing NULL does nothing. Tensors hold their memory; sessions hold their runtime.
 * Threads     Every function may be called from any thread. One session may run on any number of threads at once.
 * Structs     of options begin with struct_size (set it to sizeof); zero in any other member means the default.
 * Shapes      are dimensions outermost first; tensors are dense and row-major.
 */
#ifndef MGE_MGE_H_
#define MGE_MGE_H_

#include <stddef.h>
#include <stdint.h>

#include "mge/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(MGE_BUILD)
#define MGE_API __attribute__((visibility("default")))
#else
#define MGE_API
#endif

typedef struct mge_status mge_status;
typedef struct mge_runtime mge_runtime;
typedef struct mge_session mge_session;
typedef struct mge_tensor mge_tensor;
typedef struct mge_run_control mge_run_control;
typedef struct mge_profile mge_profile;
typedef struct mge_string mge_string; /* a text that the caller releases */

/* ---------------------------------------------------------------- version */

#define MGE_VERSION_MAJOR 0
#define MGE_VERSION_MINOR 1
#define MGE_VERSION_PATCH 0
/* The version as one number, for #if: 0.1.0 is 100, 2.3.4 is 20304. */
#define MGE_VERSION (MGE_VERSION_MAJOR * 10000 + MGE_VERSION_MINOR * 100 + MGE_VERSION_PATCH)

MGE_API const char* mge_version(void);        /* "0.1.0": the library that runs, not the header */
MGE_API int32_t mge_version_number(void);     /* the same as MGE_VERSION of that library */

/* ---------------------------------------------------------------- status */

MGE_API int32_t mge_status_kind(const mge_status* status);      /* the exit code of the mge command: 2 usage, 3 invalid, ... */
MGE_API int32_t mge_status_id(const mge_status* status);        /* 502 for E0502; 0 if it has none */
MGE_API const char* mge_status_text(const mge_status* status);  /* all parts, over several lines */
MGE_API const char* mge_status_title(const mge_status* status);
MGE_API const char* mge_status_what(const mge_status* status);  /* "" where a part is empty */
MGE_API const char* mge_status_where(const mge_status* status);
MGE_API const char* mge_status_fix(const mge_status* status);
MGE_API void mge_status_release(mge_status* status);

MGE_API const char* mge_string_data(const mge_string* text); /* ended by a zero */
MGE_API size_t mge_string_size(const mge_string* text);
MGE_API void mge_string_release(mge_string* text);

/* ---------------------------------------------------------------- runtime */

typedef struct mge_runtime_options {
  size_t struct_size;
  /* Settings, highest first: those of the call, of a command line, then the environment, then files. Lists of "NAME=VALUE". */
  const char* const* settings;
  size_t setting_count;
  const char* const* command_line;
  size_t command_line_count;
  const char* const* config_files; /* TOML; instead of MGE_CONFIG */
  size_t config_file_count;
  const char* const* plugin_directories; /* absolute; searched first */
  size_t plugin_directory_count;
  int32_t no_built_in_plugins;     /* 1: do not search beside the library */
  int32_t no_environment;          /* 1: read no variables */
  /* Receives messages (level: 0 debug .. 3 error); NULL writes to stderr. */
  void (*log)(void* state, int32_t level, const char* message, size_t size);
  void* log_state;
} mge_runtime_options;

MGE_API mge_status* mge_runtime_create(const mge_runtime_options* options /* nullable */, mge_runtime** out);
MGE_API void mge_runtime_release(mge_runtime* runtime);

/* Sets a dynamic setting for sessions created later, by key or variable. A backend sees a setting of its own at once, in every
 * runtime of the process that shares it. */
MGE_API mge_status* mge_runtime_set(mge_runtime* runtime, const char* name, const char* value);
MGE_API mge_status* mge_runtime_set_default_device(mge_runtime* runtime, const char* device);
/* "heuristic", "profile", "reproducible" */
MGE_API mge_status* mge_runtime_set_execution_strategy(mge_runtime* runtime, const char* strategy);

/* Facts as JSON: "mge.devices/1", "mge.plugins/1", "mge.env/1", "mge.operators/1". */
MGE_API mge_status* mge_runtime_report(mge_runtime* runtime, const char* schema, mge_string** out);

/* Facts of a model's file as JSON, also of a model that cannot be loaded: "mge.model/1" (inputs, outputs, operators with the
 * number of their nodes, which operators are not supported and which backends have them), "mge.nodes/1" (the nodes of the main
 * graph). Only the file's format must be right. */
MGE_API mge_status* mge_model_report(mge_runtime* runtime, const char* path, const char* schema, mge_string** out);

/* ---------------------------------------------------------------- backends as files
 * Nothing here opens a backend. `options` (nullable) say where backends are searched and what is let in, as for a runtime. */

/* "mge.plugins/1" as of a runtime, with the verdict "accepted" on what a runtime would open. `file` (nullable): this one. */
MGE_API mge_status* mge_plugins_judge(const mge_runtime_options* options, const char* file, mge_string** out);
/* Copies a file that is accepted into the first directory that can be written, whole or not at all, and answers its path. */
MGE_API mge_status* mge_plugins_install(const mge_runtime_options* options, const char* file, mge_string** out);
/* Removes the first file of the backend of that name, and answers its path. */
MGE_API mge_status* mge_plugins_remove(const mge_runtime_options* options, const char* name, mge_string** out);
/* Keeps this build of a backend from being opened by this user's runtimes; `reason` is a sentence for the verdict. */
MGE_API mge_status* mge_plugins_quarantine(const mge_runtime_options* options, const char* file, const char* reason);
/* Lets every quarantined build of the backend of that name go. */
MGE_API mge_status* mge_plugins_readmit(const mge_runtime_options* options, const char* name);

/* ---------------------------------------------------------------- contexts: which device new work goes to */

MGE_API mge_status* mge_context_push(mge_runtime* runtime, const char* context); /* "gpu(1)"; for this thread */
MGE_API mge_status* mge_context_pop(mge_runtime* runtime);
MGE_API mge_status* mge_context_current(mge_runtime* runtime, mge_string** out);  /* "cpu(0)" */
MGE_API int32_t mge_num_gpus(mge_runtime* runtime);
MGE_API mge_status* mge_gpu_memory_info(mge_runtime* runtime, int32_t gpu, uint64_t* free_bytes, uint64_t* total_bytes);
MGE_API mge_status* mge_empty_cache(mge_runtime* runtime, const char* context);

/* ---------------------------------------------------------------- tensors */

/* A tensor in memory of its own, set to zero (strings: empty). */
MGE_API mge_status* mge_tensor_create(mge_dtype dtype, const int64_t* dims, size_t rank, mge_tensor** out);
/* A tensor over the caller's memory, which must outlive it; 64-byte alignment is fastest. */
MGE_API mge_status* mge_tensor_wrap(mge_dtype dtype, const int64_t* dims, size_t rank, void* data, uint64_t bytes,
                                    mge_tensor** out);
/* From a .npy file, one array of a .npz file ("file.npz:name"), or an ONNX TensorProto (.pb). */
MGE_API mge_status* mge_tensor_read(const char* path, mge_tensor** out);
/* The same from .npy bytes in memory. */
MGE_API mge_status* mge_tensor_read_npy_bytes(const void* data, uint64_t size, mge_tensor** out);
MGE_API mge_status* mge_tensor_write_npy(const mge_tensor* tensor, const char* path);
MGE_API void mge_tensor_release(mge_tensor* tensor);

MGE_API mge_dtype mge_tensor_dtype(const mge_tensor* tensor);
MGE_API size_t mge_tensor_rank(const mge_tensor* tensor);
MGE_API const int64_t* mge_tensor_dims(const mge_tensor* tensor);
MGE_API uint64_t mge_tensor_elements(const mge_tensor* tensor);
MGE_API uint64_t mge_tensor_bytes(const mge_tensor* tensor);
MGE_API void* mge_tensor_data(mge_tensor* tensor); /* NULL for strings */
MGE_API mge_text mge_tensor_string(const mge_tensor* tensor, uint64_t index);
MGE_API mge_status* mge_tensor_set_string(mge_tensor* tensor, uint64_t index, const char* text, size_t size);
MGE_API const char* mge_dtype_name(mge_dtype dtype); /* "float32" */

/* Some models give sequences and optionals of tensors. Such a value has a count of parts, and no data of its own. */
enum { MGE_VALUE_TENSOR = 0, MGE_VALUE_SEQUENCE = 1, MGE_VALUE_OPTIONAL = 2 };
MGE_API int32_t mge_tensor_kind(const mge_tensor* value);
MGE_API size_t mge_tensor_part_count(const mge_tensor* value); /* 0 for tensors and empty optionals */
MGE_API mge_status* mge_tensor_part(const mge_tensor* value, size_t index, mge_tensor** out);

/* ---------------------------------------------------------------- sessions */

typedef struct mge_session_options {
  size_t struct_size;
  const char* device;        /* "gpu0,cpu0"; NULL: scope of the thread, else the default device */
  int32_t threads;           /* 0: as set elsewhere */
  int32_t reserved;
  const char* const* skip;   /* passes, rewrites and fusions to leave out */
  size_t skip_count;
  /* Dynamic settings for this session alone, as "NAME=VALUE"; they win over those of the runtime. */
  const char* const* settings;
  size_t setting_count;
  /* Names of the values that are the session's outputs, intermediate ones included, in place of the model's outputs. What none
   * of them needs is not computed. NULL: the model's outputs. */
  const char* const* outputs;
  size_t output_count;
} mge_session_options;

MGE_API mge_status* mge_session_load(mge_runtime* runtime, const char* path, const mge_session_options* options /* nullable */,
                                     mge_session** out);
/* From memory, which must outlive the session. External data is refused. */
MGE_API mge_status* mge_session_load_bytes(mge_runtime* runtime, const void* data, uint64_t size,
                                           const mge_session_options* options /* nullable */, mge_session** out);
MGE_API void mge_session_release(mge_session* session);

MGE_API size_t mge_session_input_count(const mge_session* session);
MGE_API size_t mge_session_output_count(const mge_session* session);
MGE_API const char* mge_session_input_name(const mge_session* session, size_t index);
MGE_API const char* mge_session_output_name(const mge_session* session, size_t index);
/* Kind (MGE_VALUE_...), dtype, rank (-1: unknown) and dimensions (-1: unknown): inputs as declared, outputs as declared and
 * inferred. `axis` of a name counts from 0; the name of a dimension is "" where it has none. */
MGE_API int32_t mge_session_input_kind(const mge_session* session, size_t index);
MGE_API mge_dtype mge_session_input_dtype(const mge_session* session, size_t index);
MGE_API int32_t mge_session_input_rank(const mge_session* session, size_t index);
MGE_API const int64_t* mge_session_input_dims(const mge_session* session, size_t index);
MGE_API const char* mge_session_input_dim_name(const mge_session* session, size_t index, size_t axis);
MGE_API int32_t mge_session_output_kind(const mge_session* session, size_t index);
MGE_API mge_dtype mge_session_output_dtype(const mge_session* session, size_t index);
MGE_API int32_t mge_session_output_rank(const mge_session* session, size_t index);
MGE_API const int64_t* mge_session_output_dims(const mge_session* session, size_t index);
MGE_API const char* mge_session_output_dim_name(const mge_session* session, size_t index, size_t axis);

/* Key and value pairs that the model's author added (ONNX metadata_props); NULL beyond the count. */
MGE_API size_t mge_session_metadata_count(const mge_session* session);
MGE_API const char* mge_session_metadata_key(const mge_session* session, size_t index);
MGE_API const char* mge_session_metadata_value(const mge_session* session, size_t index);

MGE_API int32_t mge_session_threads(const mge_session* session); /* how many threads its runs use */

typedef struct mge_example_options {
  size_t struct_size;
  uint64_t seed;
  /* "NAME=1x3x224x224": shapes of inputs that are made up. Other unknown sizes are chosen so that the model's shapes fit. */
  const char* const* shapes;
  size_t shape_count;
  /* 0: floats in [-1, 1). Higher values are for models that reject these or give NaN: 1: floats in (0, 1]; 2: all floats 1. */
  int32_t variant;
  int32_t reserved;
} mge_example_options;

/* Makes up the inputs that are NULL in `inputs`, to try or to time a model. The same options give the same values. `out` receives
 * JSON "mge.inputs/1": for each input the shape, which sizes were chosen and why, and how its values were made. Fails with E0307
 * if the model's shapes fit no sizes that were tried. */
MGE_API mge_status* mge_session_example_inputs(mge_session* session, const mge_example_options* options /* nullable */,
                                               mge_tensor** inputs, size_t input_count, mge_string** out);

/* Reads a file (.npy, .npz, .pb) as the kind of value that this input or output declares. */
MGE_API mge_status* mge_session_read_input(mge_session* session, size_t index, const char* path, mge_tensor** out);
MGE_API mge_status* mge_session_read_output(mge_session* session, size_t index, const char* path, mge_tensor** out);

/* Runs the model. `inputs` in the order of the model; `outputs[i]` is NULL (made here, then the caller's) or a tensor of the right
 * type whose memory, which no input and no other output may share, takes the result; one of strings is replaced. Of an output
 * whose size only the run tells, wrapped memory has to fit, and a tensor with memory of its own is replaced if it does not.
 * `control` may be NULL. */
MGE_API mge_status* mge_session_run(mge_session* session, mge_tensor* const* inputs, size_t input_count, mge_tensor** outputs,
                                    size_t output_count, mge_run_control* control);

/* Runs by name: every input of the model once, in any order, and any of its outputs. Does not compute what the named outputs do
 * not need. Each set of outputs gets a plan of its own. */
MGE_API mge_status* mge_session_run_named(mge_session* session, const char* const* input_names, mge_tensor* const* inputs,
                                          size_t input_count, const char* const* output_names, mge_tensor** outputs,
                                          size_t output_count, mge_run_control* control);

/* Runs without waiting: on a worker of the engine, or in this thread where engine.type is naive. `done` is called once, from
 * there, with the status (the callee releases it) and, if that is NULL, the outputs, which the callee owns. Inputs may be released
 * at once; `control` (nullable) and the memory of wrapped tensors live until then. */
typedef void (*mge_done_fn)(void* state, mge_status* status, mge_tensor** outputs, size_t output_count);
MGE_API mge_status* mge_session_run_async(mge_session* session, mge_tensor* const* inputs, size_t input_count,
                                          mge_run_control* control, mge_done_fn done, void* state);

/* The plan for inputs of these types (the tensors' data is not read), as JSON "mge.plan/1" or text; `why` adds the
 * alternatives and reasons. */
MGE_API mge_status* mge_session_plan(mge_session* session, mge_tensor* const* inputs, size_t input_count, const char* format,
                                     int32_t why, mge_string** out);
/* Facts as JSON: "mge.inspect/1" (the model), "mge.memory/1" (planned and measured memory of the plans used so far). */
MGE_API mge_status* mge_session_report(mge_session* session, const char* schema, mge_string** out);

typedef struct mge_memory_facts {
  size_t struct_size;
  /* Of the plan that ran last and of those that its bodies (If, Loop, Scan) ran with. */
  uint64_t planned_peak_bytes;   /* arenas and packed constants */
  uint64_t measured_peak_bytes;  /* what was taken from the device for it */
  uint64_t constant_bytes;       /* used as they lie in the model's file */
  uint32_t steps;
  uint32_t reference_steps;      /* steps that only the reference evaluator does */
} mge_memory_facts;
MGE_API mge_status* mge_session_memory(mge_session* session, mge_memory_facts* out);

/* ---------------------------------------------------------------- steering runs */

/* One control may steer several runs, at the same time, too: each begins with the time limit and the seed that are set then. */

MGE_API mge_status* mge_run_control_create(mge_run_control** out);
MGE_API void mge_run_control_release(mge_run_control* control);
/* From the start of each run, the making of a plan included; none if it is not above 0, or above 1e9. */
MGE_API void mge_run_control_set_timeout(mge_run_control* control, double seconds);
MGE_API void mge_run_control_set_seed(mge_run_control* control, uint64_t seed);
MGE_API void mge_run_control_cancel(mge_run_control* control); /* ends the runs in progress and every later one */
MGE_API void mge_run_control_reset(mge_run_control* control); /* later ones run again */
/* How long a run in progress is past its time limit, in seconds; 0 if none is. `place` (may be NULL): the step that it is in,
 * empty between steps and while a plan is made. For a watchdog, from any thread: a run ends soon after its limit but where a
 * kernel of the calling thread does not look at its stop flag. */
MGE_API mge_status* mge_run_control_overdue(const mge_run_control* control, double* seconds, mge_string** place);

/* ---------------------------------------------------------------- profiles: where the time of runs goes */

/* Collects the times of the steps of every run that begins with a control on which it is set, bodies included. Other runs pay
 * nothing. A run with a profile waits for each step of a device's queue before it enqueues the next, so a time is the step's own. */
MGE_API mge_status* mge_profile_create(mge_profile** out);
MGE_API void mge_profile_release(mge_profile* profile); /* controls on which it is set keep it alive */
MGE_API void mge_profile_reset(mge_profile* profile);   /* forgets all runs */
MGE_API void mge_run_control_set_profile(mge_run_control* control, mge_profile* profile /* nullable: no longer */);
/* Shows the plan like mge_session_plan, with the times that a profile has of its steps beside the planner's estimates. Marks a step
 * that takes more than 1 % of the run and 20 us if its estimate is wrong by more than 4 times. */
MGE_API mge_status* mge_session_plan_measured(mge_session* session, mge_tensor* const* inputs, size_t input_count,
                                              const mge_profile* profile, const char* format, int32_t why, mge_string** out);
/* Returns the profile as JSON. `format` "mge.profile/1": the time of each step and of each type of operator; the steps, planning
 * and what lies between steps add up to the wall time. "trace": every step of every run, for Chrome's and Perfetto's viewers. */
MGE_API mge_status* mge_profile_report(const mge_profile* profile, const char* format, mge_string** out);

#ifdef __cplusplus
}
#endif

#endif /* MGE_MGE_H_ */

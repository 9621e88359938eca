/* SPDX-License-Identifier: Apache-2.0
 *
 * MGE for applications, in plain C99: load an ONNX model, choose a device, run it. mge/eager.h adds eager mode,
 * mge/generate.h language models, and mge/context.h the contexts of MXNet. The rest is one file, which bindings of other languages read as a whole.
 *
 *   mge_runtime* runtime = NULL;  mge_session* session = NULL;  mge_status* status;
 *   if ((status = mge_runtime_create(NULL, &runtime))) goto failed;
 *   if ((status = mge_session_load(runtime, "model.onnx", NULL, &session))) goto failed;
 *   ...
 *   failed: fprintf(stderr, "%s\n", mge_status_text(status));  mge_status_release(status);
 *
 * Errors      Functions that can fail return NULL on success, otherwise a status that the caller releases.
 * Ownership   The caller owns every object whose handle a function stores in an mge_...** (one, or an array of them), and every
 *             status, and releases it with the function of its type. Every other pointer that a function returns belongs to
 *             the object that was asked, and is valid until that is released or changed; names of types are constants.
 *             Releasing NULL does nothing. Tensors own or keep their memory; sessions keep their runtime alive.
 *             Functions that return a status refuse a tensor that was released, if its memory still shows that.
 * Threads     Every function may be called from any thread. Several threads may use one handle at once, except that nothing
 *             else may use a tensor while it is written, or any handle while it is released; sdk/README.md has a table.
 * Fork        A forked child may go on with sessions on the CPU. For other devices it creates a runtime of its own.
 * Structs     with options begin with struct_size. mge_..._init() sets it and the defaults; call it first. A struct without its
 *             size, or with a member that is set and that the library does not know, fails with E0207.
 * Callbacks   should return soon. `done` may call every function but the release of its runtime's last handle; `log` and
 *             mge_release_fn call none. If one ends its thread (pthread_exit), the thread sleeps until the process ends.
 * Shapes      list dimensions outermost first. Tensors are dense and row-major.
 */
#ifndef MGE_MGE_H_
#define MGE_MGE_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "mge/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(MGE_BUILD)
#define MGE_API __attribute__((visibility("default")))
#else
#define MGE_API
#endif

/* A function that can fail. Compilers warn if its status is not used. */
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define MGE_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define MGE_NODISCARD __attribute__((warn_unused_result))
#else
#define MGE_NODISCARD
#endif

typedef struct mge_status mge_status;
typedef struct mge_runtime mge_runtime;
typedef struct mge_session mge_session;
typedef struct mge_tensor mge_tensor;
typedef struct mge_run_control mge_run_control;
typedef struct mge_run_fence mge_run_fence; /* the end of a run that may still be in progress */
typedef struct mge_inbox mge_inbox;         /* what threads of the library have for the program */
typedef struct mge_profile mge_profile;
typedef struct mge_string mge_string; /* a text that the caller releases */

/* Sets a struct to zero, and its size. */
#define MGE_CLEAR_(s) (memset((s), 0, sizeof(*(s))), (void)((s)->struct_size = sizeof(*(s))))

/* ---------------------------------------------------------------- version */

#define MGE_VERSION_MAJOR 0
#define MGE_VERSION_MINOR 1
#define MGE_VERSION_PATCH 0
/* The version as one number, for #if: 0.1.0 is 100, 2.3.4 is 20304. */
#define MGE_VERSION (MGE_VERSION_MAJOR * 10000 + MGE_VERSION_MINOR * 100 + MGE_VERSION_PATCH)

MGE_API const char* mge_version(void);    /* "0.1.0": version of the loaded library, not of the header */
MGE_API int32_t mge_version_number(void); /* MGE_VERSION of the loaded library */

/* ---------------------------------------------------------------- status */

MGE_API mge_code mge_status_code(const mge_status* status); /* MGE_OK for NULL */
MGE_API int32_t mge_status_id(const mge_status* status);    /* 502 for E0502; 0 if it has none */
/* The exit code with which a program should end for this status, as the mge command does: 2 usage, 3 invalid, ... */
MGE_API int32_t mge_status_exit_code(const mge_status* status);
MGE_API const char* mge_status_text(const mge_status* status); /* all parts, over several lines */
MGE_API const char* mge_status_title(const mge_status* status);
MGE_API const char* mge_status_what(const mge_status* status); /* "" if a part is empty */
MGE_API const char* mge_status_where(const mge_status* status);
MGE_API const char* mge_status_fix(const mge_status* status);
MGE_API void mge_status_release(mge_status* status);

MGE_API const char* mge_string_data(const mge_string* text); /* zero-terminated */
MGE_API size_t mge_string_size(const mge_string* text);
MGE_API void mge_string_release(mge_string* text);

/* Receives memory or a state that the library does not use any more. Called once. */
typedef void (*mge_release_fn)(void* state);

/* ---------------------------------------------------------------- runtime */

/* Options of a runtime. The strings are used only during the call. */
typedef struct mge_runtime_options {
  size_t struct_size;
  /* Settings as "NAME=VALUE", highest precedence first: those of the call, those of a command line. Environment and files
   * follow. */
  const char* const* settings;
  size_t setting_count;
  const char* const* command_line;
  size_t command_line_count;
  const char* const* config_files; /* TOML; replaces MGE_CONFIG */
  size_t config_file_count;
  const char* const* plugin_directories; /* absolute; searched first */
  size_t plugin_directory_count;
  int32_t no_built_in_plugins; /* 1: do not search beside the library */
  int32_t no_environment;      /* 1: read no variables */
  /* Receives messages (level: 0 debug .. 3 error), until the runtime and its sessions are released. NULL: messages go to
   * stderr. */
  void (*log)(void* state, int32_t level, const char* message, size_t size);
  void* log_state;
  /* Nullable. Called once with log_state when no message can come any more: also if mge_runtime_create fails, unless because of
   * struct_size. */
  mge_release_fn log_release;
  /* Keeps messages for mge_inbox_take_message, in place of `log`. The runtime shares it; it may be released earlier. */
  mge_inbox* log_inbox;
} mge_runtime_options;
static inline void mge_runtime_options_init(mge_runtime_options* options) { MGE_CLEAR_(options); }

MGE_API MGE_NODISCARD mge_status* mge_runtime_create(const mge_runtime_options* options /* nullable */, mge_runtime** out);
MGE_API void mge_runtime_release(mge_runtime* runtime);

/* Sets a dynamic setting by key or variable, for sessions created later. A backend's own setting takes effect at once, in
 * every runtime of the process that shares the backend. */
MGE_API MGE_NODISCARD mge_status* mge_runtime_set(mge_runtime* runtime, const char* name, const char* value);
/* Returns the value of a setting of the core, or of a backend that has started, by key, variable or alias. Booleans are "1" and
 * "0", sizes are in bytes, and no limit is "unlimited". */
MGE_API MGE_NODISCARD mge_status* mge_runtime_get(mge_runtime* runtime, const char* name, mge_string** out);
/* Sets the device, such as "gpu0", for sessions and threads that name none. */
MGE_API MGE_NODISCARD mge_status* mge_runtime_set_default_device(mge_runtime* runtime, const char* device);
/* Sets the strategy: "heuristic", "profile" or "reproducible". */
MGE_API MGE_NODISCARD mge_status* mge_runtime_set_execution_strategy(mge_runtime* runtime, const char* strategy);

/* A device, as `mge devices` lists it. Texts are cut if they do not fit. */
typedef struct mge_device_facts {
  size_t struct_size;
  char name[64];         /* "cuda0": its own name, for options of sessions and tensors */
  char gpu_name[64];     /* "gpu0"; "" if it is no GPU */
  char device_class[64]; /* "cuda" */
  char backend[64];      /* the plugin that drives it */
  char description[128]; /* "NVIDIA H100" */
  uint64_t total_bytes;  /* of its memory; 0: unknown */
  uint64_t free_bytes;   /* at this moment; 0: unknown */
  uint64_t limit_bytes;  /* memory.limit; UINT64_MAX: none */
  uint32_t compute_queues;
  int32_t usable; /* 0: found, but it cannot be used; a session on it fails with the reason */
} mge_device_facts;
static inline void mge_device_facts_init(mge_device_facts* facts) { MGE_CLEAR_(facts); }
/* Returns the number of devices. Starts all backends, and waits for them up to plugin.start_timeout_seconds. */
MGE_API size_t mge_runtime_device_count(mge_runtime* runtime);
MGE_API MGE_NODISCARD mge_status* mge_runtime_device(mge_runtime* runtime, size_t index, mge_device_facts* out);

/* Returns facts as JSON: "mge.devices/1", "mge.plugins/1", "mge.env/1", "mge.operators/1", "mge.launch/1" (the place of this process
 * in a data-parallel training: rank, ranks, local_rank, launcher, host), "mge.collective/1" (joins the processes of a launcher of MPI, and
 * measures sums over them; all must call it). The first and third start all
 * backends at the same time, and wait for them up to plugin.start_timeout_seconds. "not_started" then names the slower ones. */
MGE_API MGE_NODISCARD mge_status* mge_runtime_report(mge_runtime* runtime, const char* schema, mge_string** out);

/* Creates the id of a group of ranks: sessions, in one or several processes, whose models exchange tensors by operators such
 * as mge.AllReduce. `device` is the device of a rank, such as "cuda0". The session of each rank gets the settings
 * collective.id (this id), collective.ranks and collective.rank. */
MGE_API MGE_NODISCARD mge_status* mge_collective_id(mge_runtime* runtime, const char* device, mge_string** out);

/* Returns facts about a model file as JSON, also for a model that cannot be loaded. "mge.model/1": inputs, outputs,
 * operators with their number of nodes, unsupported operators and the backends that support them. "mge.nodes/1": the
 * nodes of the main graph. Fails only if the file cannot be read as ONNX. */
MGE_API MGE_NODISCARD mge_status* mge_model_report(mge_runtime* runtime, const char* path, const char* schema,
                                                   mge_string** out);

/* ---------------------------------------------------------------- backends as files
 * These functions do not open a backend. `options` (nullable) name the directories and the checks, as for a runtime. */

/* Returns "mge.plugins/1" as for a runtime, with the verdict "accepted" for files that a runtime would open. `file`
 * (nullable): checks only this file. */
MGE_API MGE_NODISCARD mge_status* mge_plugins_verify(const mge_runtime_options* options, const char* file, mge_string** out);
/* Copies an accepted file into the first writable directory, completely or not at all, and returns its path. */
MGE_API MGE_NODISCARD mge_status* mge_plugins_install(const mge_runtime_options* options, const char* file,
                                                      mge_string** out);
/* Removes the first file of the backend with that name, and returns its path. */
MGE_API MGE_NODISCARD mge_status* mge_plugins_remove(const mge_runtime_options* options, const char* name, mge_string** out);
/* Prevents this user's runtimes from opening this build of a backend. `reason` is a sentence for the verdict. */
MGE_API MGE_NODISCARD mge_status* mge_plugins_quarantine(const mge_runtime_options* options, const char* file,
                                                         const char* reason);
/* Ends the quarantine of every build of the backend with that name. */
MGE_API MGE_NODISCARD mge_status* mge_plugins_end_quarantine(const mge_runtime_options* options, const char* name);

/* ---------------------------------------------------------------- which device new work goes to
 * One text names a device everywhere: "gpu0", "cuda1", "gpu(1)", "cpu_pinned(0)"; see mge_runtime_device. The header
 * mge/context.h has the functions of mxnet.context. */

/* Sets this thread's device until the matching pop, for sessions and tensors that name none. Calls nest. Whether the device
 * exists is checked when it is used. */
MGE_API MGE_NODISCARD mge_status* mge_device_push(const char* device);
MGE_API MGE_NODISCARD mge_status* mge_device_pop(void);
/* Returns the thread's device as a context, such as "gpu(1)": that of the innermost push, else the default device if it is set,
 * else "cpu(0)". */
MGE_API MGE_NODISCARD mge_status* mge_device_current(mge_runtime* runtime, mge_string** out);
/* Returns memory of a device that nothing uses to the driver: what pools keep, and what sessions keep for their next runs.
 * Tensors and constants of sessions stay. */
MGE_API MGE_NODISCARD mge_status* mge_device_empty_cache(mge_runtime* runtime, const char* device);

/* ---------------------------------------------------------------- tensors */

/* Creates a tensor with its own memory, set to zero (strings: empty). */
MGE_API MGE_NODISCARD mge_status* mge_tensor_create(mge_dtype dtype, const int64_t* dims, size_t rank, mge_tensor** out);
/* Creates a tensor that uses the caller's memory, which must outlive it. 64-byte alignment is fastest. */
MGE_API MGE_NODISCARD mge_status* mge_tensor_wrap(mge_dtype dtype, const int64_t* dims, size_t rank, void* data,
                                                  uint64_t bytes, mge_tensor** out);
/* Reads a .npy file, one array of a .npz file ("file.npz:name"), or an ONNX TensorProto (.pb). */
MGE_API MGE_NODISCARD mge_status* mge_tensor_read(const char* path, mge_tensor** out);
/* Reads .npy bytes from memory. */
MGE_API MGE_NODISCARD mge_status* mge_tensor_read_npy_bytes(const void* data, uint64_t size, mge_tensor** out);
MGE_API MGE_NODISCARD mge_status* mge_tensor_write_npy(const mge_tensor* tensor, const char* path);
MGE_API void mge_tensor_release(mge_tensor* tensor);

MGE_API mge_dtype mge_tensor_dtype(const mge_tensor* tensor);
MGE_API size_t mge_tensor_rank(const mge_tensor* tensor);
MGE_API const int64_t* mge_tensor_dims(const mge_tensor* tensor);
MGE_API uint64_t mge_tensor_elements(const mge_tensor* tensor);
MGE_API uint64_t mge_tensor_bytes(const mge_tensor* tensor);
/* The elements in host memory. NULL for strings, and for memory of a device that the host cannot access. */
MGE_API void* mge_tensor_data(mge_tensor* tensor);
/* 1: nothing may write the elements. A run refuses such an output, and a copy such a destination. */
MGE_API int32_t mge_tensor_read_only(const mge_tensor* tensor);
MGE_API void mge_tensor_set_read_only(mge_tensor* tensor); /* for good */
MGE_API mge_text mge_tensor_string(const mge_tensor* tensor, uint64_t index);
MGE_API MGE_NODISCARD mge_status* mge_tensor_set_string(mge_tensor* tensor, uint64_t index, const char* text, size_t size);
/* Creates a tensor of strings from their bytes, which follow one another. ends[i] is the offset behind string i. */
MGE_API MGE_NODISCARD mge_status* mge_tensor_create_strings(const int64_t* dims, size_t rank, const char* bytes,
                                                            const uint64_t* ends, mge_tensor** out);
/* Copies all strings to `bytes`, without zeros between them, and sets `ends` as above. If `bytes` is NULL, sets only `ends`,
 * whose last element is the number of bytes. Fails with E0207 if `capacity` does not suffice. */
MGE_API MGE_NODISCARD mge_status* mge_tensor_read_strings(const mge_tensor* tensor, uint64_t* ends, char* bytes,
                                                          uint64_t capacity);
MGE_API const char* mge_dtype_name(mge_dtype dtype); /* "float32" */

/* ---- tensors on devices
 * A session binds tensors that lie on its devices without a copy, as inputs and as outputs. State that stays between runs is
 * such a tensor: an output of one run and an input of the next one. Tensors keep their runtime alive. */

/* Creates a tensor at a place: the memory of a device, such as "gpu0"; "cpu_pinned(N)", host memory that the driver of gpuN
 * page-locks, so that a run does not stage it, or "cpu_pinned(NAME)" for any other device with queues; "cpu", plain host memory.
 * NULL: the thread's device (mge_device_push). Without a GPU, "cpu_pinned(N)" is plain host memory. The elements are zero if the
 * host can access them, else undefined. Memory of "cpu0" is charged to its budget, that of "cpu" is not. Strings are refused on
 * devices. */
MGE_API MGE_NODISCARD mge_status* mge_tensor_create_on(mge_runtime* runtime, const char* place /* nullable */,
                                                       mge_dtype dtype, const int64_t* dims, size_t rank, mge_tensor** out);
/* Creates a tensor that uses the caller's memory at a place. `address` is valid on the device and aligned to its
 * buffer_alignment (64 if it names none); on a device that works in host memory it is aligned to the elements. Page-locked
 * memory must have one address for host and device. `release` (nullable) is called once when no tensor and no run uses the
 * memory, or when this function fails. */
MGE_API MGE_NODISCARD mge_status* mge_tensor_wrap_on(mge_runtime* runtime, const char* place, mge_dtype dtype,
                                                     const int64_t* dims, size_t rank, void* address, uint64_t bytes,
                                                     mge_release_fn release, void* state, mge_tensor** out);
/* Creates a tensor like mge_tensor_wrap_on, of memory on a device that has a handle of the driver instead of an address,
 * such as cl_mem. The elements begin at `offset`, a multiple of the device's buffer_alignment. MGE does not see that two
 * tensors of one handle overlap: a run must not read one and write the other. Fails with E0502 if the backend cannot use
 * handles. */
MGE_API MGE_NODISCARD mge_status* mge_tensor_wrap_handle(mge_runtime* runtime, const char* device, mge_dtype dtype,
                                                         const int64_t* dims, size_t rank, void* handle, uint64_t offset,
                                                         uint64_t bytes, mge_release_fn release, void* state,
                                                         mge_tensor** out);
/* Copies the elements into a tensor of the same type and shape. Both may lie anywhere. Returns when the copy is done. Runs
 * that write `source` or use `destination` must have ended. */
MGE_API MGE_NODISCARD mge_status* mge_tensor_copy(const mge_tensor* source, mge_tensor* destination);
MGE_API const char* mge_tensor_device(const mge_tensor* tensor);  /* "virtual0"; "" for plain host memory */
MGE_API int32_t mge_tensor_page_locked(const mge_tensor* tensor); /* 1: in host memory that its device page-locks */
/* The address of the elements on the tensor's device, for other users of the device. For plain host memory as
 * mge_tensor_data. */
MGE_API void* mge_tensor_address(mge_tensor* tensor);
/* Returns the elements' address for the host. Fails with E0207 and the reason if the host cannot access them. */
MGE_API MGE_NODISCARD mge_status* mge_tensor_map(mge_tensor* tensor, void** out);

/* Shares a tensor through DLPack 1 (https://dmlc.github.io/dlpack): struct DLManagedTensorVersioned of dlpack.h, which this
 * header does not need. The memory lives until both sides have released it; that of
 * mge_tensor_wrap is the caller's. A device whose class DLPack does not know has the
 * type kDLExtDev and the device's number. The runs that write the tensor must have ended, so that no stream has to wait. */
struct DLManagedTensorVersioned;
MGE_API MGE_NODISCARD mge_status* mge_tensor_to_dlpack(const mge_tensor* tensor, struct DLManagedTensorVersioned** out);
/* Takes ownership of `managed`, except on failure. It must be dense and row-major, and ready (mge_run_fence_of_stream). `device`
 * names the device that holds the memory; NULL: host memory, and then `runtime` may be NULL. Keeps the read-only flag.
 * In host memory, a tensor with other strides is copied, and `managed` is released at once. */
MGE_API MGE_NODISCARD mge_status* mge_tensor_from_dlpack(mge_runtime* runtime, const char* device,
                                                         struct DLManagedTensorVersioned* managed, mge_tensor** out);
/* The same with the struct of DLPack before version 1, which cannot say that a tensor must not be written: such tensors fail
 * with E0207. */
struct DLManagedTensor;
MGE_API MGE_NODISCARD mge_status* mge_tensor_to_old_dlpack(const mge_tensor* tensor, struct DLManagedTensor** out);
MGE_API MGE_NODISCARD mge_status* mge_tensor_from_old_dlpack(mge_runtime* runtime, const char* device,
                                                             struct DLManagedTensor* managed, mge_tensor** out);

/* Some models use sequences and optionals of tensors, maps, or sequences of maps. These values have parts, and no data of
 * their own. A map has two parts, vectors of one length: the keys (int64 or strings) and their values. */
enum { MGE_VALUE_TENSOR = 0, MGE_VALUE_SEQUENCE = 1, MGE_VALUE_OPTIONAL = 2, MGE_VALUE_MAP = 3 };
MGE_API int32_t mge_tensor_kind(const mge_tensor* value);
MGE_API size_t mge_tensor_part_count(const mge_tensor* value); /* 0 for tensors and empty optionals */
MGE_API MGE_NODISCARD mge_status* mge_tensor_part(const mge_tensor* value, size_t index, mge_tensor** out);
/* Creates a value of the kind from parts, whose memory it shares. A sequence: tensors of one element type, or maps. An
 * optional: no part, a tensor, or a sequence of tensors. A map: its keys and its values. */
MGE_API MGE_NODISCARD mge_status* mge_value_create(int32_t kind, mge_tensor* const* parts, size_t count, mge_tensor** out);
/* Returns a sequence of n maps that have the same m keys as two tensors: keys[m] and values[n,m], a row for each map. Fails
 * with E0207 if keys differ, or the sequence is empty. */
MGE_API MGE_NODISCARD mge_status* mge_value_table(const mge_tensor* value, mge_tensor** keys, mge_tensor** values);

/* ---------------------------------------------------------------- sessions */

/* Parameters that a training updates otherwise than the others: those whose names fit the pattern. */
typedef struct mge_parameter_group {
  const char* pattern; /* * stands for any text, ? for any letter */
  double rate;         /* factor of the learning rate */
  double weight_decay; /* negative: that of the options */
} mge_parameter_group;

/* Options that make a session train its model; see mge_session_options. mge_training_options_init sets the defaults, and every
 * number means itself. NULL stands for the default. */
typedef struct mge_training_options {
  size_t struct_size;
  /* "cross_entropy" (default): softmax cross-entropy of scores [N,C,...] and class numbers [N,...]; labels that are no numbers
   * of classes, such as -1, do not count. The classes may be another dimension than the second: the labels lack it. If several
   * fit, it is the first of them. "token_cross_entropy": the classes are the last dimension. "binary_cross_entropy": of scores
   * and probabilities. "kl_divergence": the relative entropy of probabilities [N,C,...] from scores, or from their
   * logarithms, along the dimension of the model's Softmax or LogSoftmax, else the last one; the mean over all others. "mse",
   * "mae": mean squared or absolute error. "huber": half the squared error up to huber_delta, and linear beyond. "output": the
   * model computes its loss, so that there are no labels. */
  const char* loss;
  const char* loss_output;   /* the output that is compared with the labels, or is the loss; default: the first one */
  const char* labels_name;   /* the input of the labels, a name that the model does not use; default: "labels" */
  const char* optimizer;     /* default: "sgd"; `mge train --help` lists all, and which of the next numbers each one reads */
  double momentum;           /* default: 0. A number that the optimizer does not read must be its default */
  double beta1, beta2;       /* defaults: 0.9 and 0.999 */
  double epsilon;            /* default: 1e-8 */
  double weight_decay;       /* default: 0. Factor of the parameters, added to the gradient or the step */
  double clip_norm;          /* limit of the Euclidean norm of all gradients together; 0, the default: none */
  const char* const* frozen; /* names of initializers that keep their values; * stands for any text, ? for any letter */
  size_t frozen_count;
  /* 1: each device in the session's list, such as "gpu0,gpu1", is a replica that trains on a part of every batch. The replicas
   * sum their gradients, and make the same update: that of one device with the whole batch, to rounding. Inputs are divided
   * along their first dimension, and outputs joined. A loss that the model computes must be a mean over the examples.
   * BatchNormalization uses the statistics of each replica's part; the first replica's are saved. After a run that failed or
   * was stopped, the next one continues with the first replica's states.
   * If a launcher such as mpirun started several processes (collective.launcher), the devices of all of them are replicas: each
   * process gives the whole batch, computes its part (mge_session_part), and has the outputs of that part. If one process fails,
   * the next run of each other one fails with E0102, and the processes must be started again. */
  int32_t data_parallel;
  int32_t reserved;
  /* A step whose loss is NaN or infinite: "stop" (default) changes nothing, and a run that returns the loss in host memory fails
   * with E0312, which names the step and the first value. "skip" changes nothing, warns once, and also leaves the parameters as
   * they are if a gradient is not finite, which needs the memory of all gradients. "continue" updates all the same. */
  const char* on_nan;
  double clip_value;      /* limit of each element of the gradients; 0, the default: none */
  double label_smoothing; /* in [0, 1): the part of each label that is spread over all classes. Default: 0 */
  /* Runs whose gradients are summed before the last of them updates the parameters by their mean. 0, the default: 1 */
  int64_t accumulate;
  /* Lines "name: value" that must be equal in all processes of a training, such as "seed: 7", beside the model and these options.
   * If a line differs, the creation of the session fails with E0102, which names it. NULL, the default: none */
  const char* facts;
  /* For a cross-entropy, the weight of each class, whose mean is weighted. For "binary_cross_entropy", factors of the part of the
   * label 1, one for all or one for each element of the last dimension. NULL: 1. */
  const double* class_weights;
  size_t class_weight_count;
  double huber_delta; /* 0, the default: 1 */
  /* A parameter belongs to the first group whose pattern it fits. A pattern that no parameter fits is an error. */
  const mge_parameter_group* groups;
  size_t group_count;
  /* In [0, 1). Above 0: the states "NAME.average" follow the parameters, average = average_decay * average + (1 - average_decay)
   * * parameter after each update. Evaluations and saved models use them in place of the parameters. Default: 0 */
  double average_decay;
  /* 1: the state "NAME.gradient" of each parameter has the gradient of the last update, not clipped */
  int32_t keep_gradients;
  int32_t reserved2;
} mge_training_options;
static inline void mge_training_options_init(mge_training_options* options) {
  MGE_CLEAR_(options);
  options->beta1 = 0.9;
  options->beta2 = 0.999;
  options->epsilon = 1e-8;
}

/* A learning rate that depends on how far a training is; `mge train --help` lists the kinds. mge_schedule_init sets the
 * defaults. */
typedef struct mge_schedule {
  size_t struct_size;
  const char* name;     /* default: "constant" */
  double rate;          /* the learning rate that the schedule changes. Default: 0.01 */
  double warmup;        /* in [0, 1): the part of the training in which the rate rises from 0 along a line. Default: 0 */
  double step_factor;   /* of "step". Default: 0.1 */
  int64_t step_count;   /* of "step". Default: 2 */
  const double* points; /* of "table": pairs of a part of the training and a factor of the rate; the parts rise */
  size_t point_count;   /* pairs */
} mge_schedule;
static inline void mge_schedule_init(mge_schedule* schedule) {
  MGE_CLEAR_(schedule);
  schedule->rate = 0.01;
  schedule->step_factor = 0.1;
  schedule->step_count = 2;
}
/* Sets *rate to the learning rate at a part of the training, from 0 to 1. Fails with E0307 for an unknown name or a bad number. */
MGE_API MGE_NODISCARD mge_status* mge_schedule_rate(const mge_schedule* schedule, double part, double* rate);

/* Options of a session. The strings are used only during the call. */
typedef struct mge_session_options {
  size_t struct_size;
  /* "gpu0,cpu0"; NULL: context of the thread, otherwise the default device. "gpu0:1": stream 1, on which enqueued runs
   * follow one another, also those of other sessions; so do runs with a callback or an inbox. "cpu_pinned(0)": the CPU;
   * outputs that runs create are page-locked. */
  const char* device;
  int32_t threads; /* 0: the runtime's setting */
  /* 1: outputs that a run creates lie in the memory of the session's first device that has its own. */
  int32_t outputs_on_device;
  const char* const* skip; /* names of passes, rewrites and fusions to skip */
  size_t skip_count;
  /* Dynamic settings for this session only, as "NAME=VALUE". They override the runtime's settings. */
  const char* const* settings;
  size_t setting_count;
  /* Names of the values that replace the model's outputs, intermediate values included. Nodes that none of them needs are
   * not computed. NULL: the model's outputs. */
  const char* const* outputs;
  size_t output_count;
  /* Not NULL: each run is a training step. It computes the loss of a batch and its gradients, and updates the parameters, which
   * stay in the session: every floating initializer with dimensions that the loss depends on. The inputs are those
   * of the model, then the labels (unless the model computes its loss), then "learning_rate", a float32 scalar. The outputs are
   * the loss, then those of the model. Inputs in host memory of another floating or integer type are converted. Runs of the
   * session follow one another. */
  const mge_training_options* training;
  /* Folder of the model's external data. NULL: the folder of the model's file; a model from memory or from a pipe has none. */
  const char* data_folder;
  /* Ends the load if it is cancelled or its time limit is reached. Used only during the call. NULL: nothing does. */
  mge_run_control* control;
  /* Receives how far a stage is, on any thread, one call at a time: "read", "optimize" (passes), and then in the load or in runs
   * that need a new plan "kernels" (kernels) and "weights" (bytes). It must not use the session, and is not called after the
   * session and its runs have ended. NULL: nobody wants to know. */
  void (*progress)(void* state, const char* stage, uint64_t done, uint64_t total);
  void* progress_state;
  /* Nullable. Called once with progress_state when no call of `progress` can come any more, also if the load fails. */
  mge_release_fn progress_release;
  /* Keeps the progress for mge_inbox_take_progress, in place of `progress`. The session shares it; it may be released earlier. */
  mge_inbox* progress_inbox;
} mge_session_options;
static inline void mge_session_options_init(mge_session_options* options) { MGE_CLEAR_(options); }

/* Loads a model from a file, or from a pipe such as /dev/stdin. Large weights are read from the file when a plan needs them: mostly
 * by the first run, and later by runs with inputs of new shapes. The file may be replaced meanwhile (renamed over); the session
 * keeps the old one. If its contents change, a run that has to read it again fails with E0701. No run reads other contents than
 * those that were loaded. Files of external data must lie below the folder of the model (links are followed), or below "blobs" of
 * the same entry of a model hub's cache. */
MGE_API MGE_NODISCARD mge_status* mge_session_load(mge_runtime* runtime, const char* path,
                                                   const mge_session_options* options /* nullable */, mge_session** out);

/* A file of a model's external data that is in memory. */
typedef struct mge_model_file {
  const char* name; /* as the model writes it, such as "weights.bin" */
  const void* data;
  uint64_t size;
} mge_model_file;

/* Where a model comes from: one of `path`, `data` and `read`. */
typedef struct mge_model_source {
  size_t struct_size;
  const char* path; /* as for mge_session_load */
  const void* data; /* the model in memory */
  uint64_t size;
  /* Writes the next bytes of the model to `buffer`, and returns their number; 0 at the end, less than 0 if it cannot. Called on
   * the loading thread until it returns 0 or less. */
  int64_t (*read)(void* state, void* buffer, uint64_t capacity);
  /* Files of external data, which are not opened. Others are read from `data_folder` of the options. */
  const mge_model_file* files;
  size_t file_count;
  size_t file_size; /* sizeof(mge_model_file) */
  /* Called once with `state` when no session uses `data` and the data of `files` any more, also if the load fails. NULL: they
   * outlive the session. */
  mge_release_fn release;
  void* state; /* of `read` and `release` */
} mge_model_source;
static inline void mge_model_source_init(mge_model_source* source) {
  MGE_CLEAR_(source);
  source->file_size = sizeof(mge_model_file);
}
/* Loads a model from memory, in pieces, or from a file. */
MGE_API MGE_NODISCARD mge_status* mge_session_load_from(mge_runtime* runtime, const mge_model_source* source,
                                                        const mge_session_options* options /* nullable */,
                                                        mge_session** out);
MGE_API void mge_session_release(mge_session* session);

MGE_API size_t mge_session_input_count(const mge_session* session);
MGE_API size_t mge_session_output_count(const mge_session* session);
/* An input as declared, or an output as declared and inferred. The pointers are valid as long as the session. */
typedef struct mge_value_facts {
  size_t struct_size;
  const char* name;
  int32_t kind;      /* MGE_VALUE_... */
  int32_t part_kind; /* of an optional or a sequence */
  mge_dtype dtype;
  int32_t rank;                 /* -1: unknown */
  const int64_t* dims;          /* -1: unknown */
  const char* const* dim_names; /* "": no name */
} mge_value_facts;
static inline void mge_value_facts_init(mge_value_facts* facts) { MGE_CLEAR_(facts); }
MGE_API MGE_NODISCARD mge_status* mge_session_input(const mge_session* session, size_t index, mge_value_facts* out);
MGE_API MGE_NODISCARD mge_status* mge_session_output(const mge_session* session, size_t index, mge_value_facts* out);

/* Key and value pairs added by the model's author (ONNX metadata_props). NULL if `index` is out of range. */
MGE_API size_t mge_session_metadata_count(const mge_session* session);
MGE_API const char* mge_session_metadata_key(const mge_session* session, size_t index);
MGE_API const char* mge_session_metadata_value(const mge_session* session, size_t index);

MGE_API int32_t mge_session_threads(const mge_session* session); /* number of threads that its runs use */
/* The names of the session's devices, such as "gpu0", in order of preference. NULL if `index` is out of range. */
MGE_API size_t mge_session_device_count(const mge_session* session);
MGE_API const char* mge_session_device(const mge_session* session, size_t index);

/* Options of generated inputs. */
typedef struct mge_example_options {
  size_t struct_size;
  uint64_t seed;
  /* Shapes of generated inputs, as "NAME=1x3x224x224". Other unknown dimensions are chosen to match the model's shapes. */
  const char* const* shapes;
  size_t shape_count;
  /* 0: floats in [-1, 1). Use a higher value if a model rejects these or returns NaN. 1: floats in (0, 1]. 2: all floats
   * are 1. */
  int32_t variant;
  int32_t reserved;
} mge_example_options;
static inline void mge_example_options_init(mge_example_options* options) { MGE_CLEAR_(options); }

/* Generates the inputs that are NULL in `inputs`, to try or to time a model. Equal options give equal values. `out`
 * receives JSON "mge.inputs/1": for each input its shape, the chosen dimensions with the reason, and the kind of values.
 * Fails with E0307 if none of the tried dimensions match the model's shapes. */
MGE_API MGE_NODISCARD mge_status* mge_session_example_inputs(mge_session* session,
                                                             const mge_example_options* options /* nullable */,
                                                             mge_tensor** inputs, size_t input_count, mge_string** out);

/* Reads a file (.npy, .npz, .pb) as the kind of value that this input or output declares. */
MGE_API MGE_NODISCARD mge_status* mge_session_read_input(mge_session* session, size_t index, const char* path,
                                                         mge_tensor** out);
MGE_API MGE_NODISCARD mge_status* mge_session_read_output(mge_session* session, size_t index, const char* path,
                                                          mge_tensor** out);

/* Receives the end of a run, once, on a thread of the library: the status (the callee releases it) and, if that is NULL, the
 * outputs, which the callee owns. */
typedef void (*mge_done_fn)(void* state, mge_status* status, mge_tensor** outputs, size_t output_count);

/* How a run is done. Zero in every member: all inputs and outputs in the order of the model, and the call waits. */
typedef struct mge_run_options {
  size_t struct_size;
  /* Names of the inputs: every one of the model once, in any order. NULL: they are in the order of the model. */
  const char* const* input_names;
  /* Names of the outputs to compute. Nodes that these do not need are skipped; each set of outputs has its own plan. NULL: all
   * outputs, in the order of the model. */
  const char* const* output_names;
  mge_run_control* control; /* nullable; may be released at once */
  /* Runs of the same runtime that must have ended before this one begins. On a device, its queues wait for them. If one of them
   * fails, this run fails too. */
  mge_run_fence* const* after;
  size_t after_count;
  /* One of these may be set, and the call then returns at once. A worker of the engine does the run; this thread does it if
   * engine.type is naive or the device cpu:default. `done` is called with `state`, or the result is added to the inbox with
   * `tag`, which the program chooses. If the call itself fails, neither happens. */
  mge_done_fn done;
  void* state;
  mge_inbox* inbox;
  uint64_t tag;
  /* A stream of the application on the session's first device, as a driver knows it: a cudaStream_t or hipStream_t (1: the default
   * stream), or an mge_virtual_stream* (mge/virtual_stream.h). The run begins when the work that is on the stream at the call has
   * ended, and work that comes on the stream after the call waits for the end of the run. Inputs in plain host memory must be ready
   * at the call. Not with `done` or an inbox. NULL: no order. Fails with E0502 if the device cannot do that. */
  void* native_stream;
} mge_run_options;
static inline void mge_run_options_init(mge_run_options* options) { MGE_CLEAR_(options); }

/* Runs the model. `outputs[i]` is NULL, and the run creates a tensor, which the caller then owns; or it is a tensor of the
 * right type and shape, to whose memory the result is written. That memory must not overlap another output, nor an input; but
 * in host memory it may be exactly that of an input. The result then replaces the input: without a copy where the last kernel
 * that reads the input can compute in place, as for the cache of GroupQueryAttention. A tensor of strings is replaced. If only
 * the run determines the shape, so is a tensor with its own memory that has another one. For a run with `done` or an inbox,
 * `outputs` may be NULL: the run creates all. On failure, `outputs` is unchanged. Inputs and outputs may be released at once
 * in every case; memory that tensors wrap must stay valid until the run has ended.
 *
 * With `fence` (nullable) the run is enqueued: the call returns without waiting for devices, and the fence is reached when the
 * run has ended. Outputs are on devices or in page-locked memory; those of NULL are created on the device at once. They may be
 * read, and errors of the device arrive, when the fence is reached. Inputs in plain host memory are copied before the return,
 * and steps that the host computes delay it. A model with data-dependent shapes, states or collectives, with outputs that the
 * host computes, or on devices without queues, runs to its end. Each run in progress has its own memory for intermediate
 * values, so wait for an older fence now and then. Time limits apply to the call only: mge_run_fence_wait has its own. */
MGE_API MGE_NODISCARD mge_status* mge_session_run(mge_session* session, mge_tensor* const* inputs, size_t input_count,
                                                  mge_tensor** outputs, size_t output_count,
                                                  const mge_run_options* options /* nullable */,
                                                  mge_run_fence** fence /* nullable */);

/* Waits for the run. `seconds` < 0: without a limit. Sets *reached to 0 if the time limit came first, else to 1. Fails with
 * the error of the run, or of a run that it had to wait for; each call returns it again. */
MGE_API MGE_NODISCARD mge_status* mge_run_fence_wait(mge_run_fence* fence, double seconds, int32_t* reached);
/* Creates a fence for work of the application: it is reached when the work that is now on a stream has ended. `device` and
 * `native_stream` are as in mge_run_options. Waiting for it makes memory that this work writes ready for reading. */
MGE_API MGE_NODISCARD mge_status* mge_run_fence_of_stream(mge_runtime* runtime, const char* device, void* native_stream,
                                                          mge_run_fence** out);
/* Releases the fence, without waiting. A run in progress goes on. The release of a session or a runtime waits for such runs, up to
 * a minute. */
MGE_API void mge_run_fence_release(mge_run_fence* fence);

/* An inbox keeps ended runs, messages and progress until the program takes them, on a thread of its own choice: for event loops,
 * and for languages that a thread of the library must not enter. */
MGE_API MGE_NODISCARD mge_status* mge_inbox_create(mge_inbox** out);
MGE_API void mge_inbox_release(mge_inbox* inbox); /* discards what it keeps, and what comes later */
/* A file descriptor for poll(): it is readable while the inbox is not empty. The inbox owns it. Do not read from it. Not used in
 * a forked child. */
MGE_API int32_t mge_inbox_descriptor(const mge_inbox* inbox);
/* Takes the result of the run that ended first. Returns 0 if there is none, else 1. Sets *status to NULL or to the error of the
 * run, which the caller releases. `outputs` has room for `capacity` tensors, which the caller then owns; *count is 0 on error. */
MGE_API int32_t mge_inbox_take_run(mge_inbox* inbox, uint64_t* tag, mge_status** status, mge_tensor** outputs,
                                   size_t capacity, size_t* count);
/* Takes the oldest message. Returns 0 if there is none, else 1. */
MGE_API int32_t mge_inbox_take_message(mge_inbox* inbox, int32_t* level, mge_string** message);
/* Takes how far a stage is, as `progress` of mge_session_options receives it. Returns 0 if no stage has advanced since it was taken,
 * else 1. Only the latest numbers of a stage are kept. Sessions that share an inbox are not told apart. */
MGE_API int32_t mge_inbox_take_progress(mge_inbox* inbox, mge_string** stage, uint64_t* done, uint64_t* total);

/* ---- states: values that stay in a session from run to run. A session that trains has its parameters, and values of its
 * optimizer, such as "NAME.mean" of adam, and "session.random", int64[2]: the seed of its random numbers and its steps so far. */

/* The names of all states. NULL if `index` is out of range. */
MGE_API size_t mge_session_state_count(const mge_session* session);
MGE_API const char* mge_session_state_name(const mge_session* session, size_t index);
/* Returns a copy of a state's elements in host memory. Waits for runs in progress. If the setting train.shard_optimizer divides the
 * state over processes, all of them must call it at the same time, for the same state. */
MGE_API MGE_NODISCARD mge_status* mge_session_read_state(mge_session* session, const char* name, mge_tensor** out);
/* Copies the elements of a tensor, which may lie anywhere, to the state, of the same type and shape. Waits for runs in progress.
 * A trained parameter of 16 bits is the rounding of the float32 state "NAME.master": write both. */
MGE_API MGE_NODISCARD mge_status* mge_session_write_state(mge_session* session, const char* name, const mge_tensor* tensor);
/* The names of the model's parameters that training changes, which are states. NULL if `index` is out of range. */
MGE_API size_t mge_session_parameter_count(const mge_session* session); /* 0: it does not train */
MGE_API const char* mge_session_parameter_name(const mge_session* session, size_t index);
/* Writes all states of a session that trains to a file, completely or not at all, with a checksum. Steps after a load are those
 * that would have followed the save, bit for bit on the same device. `notes` is a text of the application, such as its position in
 * the data; NULL: none. Fails with E0312 if a state has NaN. With train.shard_optimizer, all processes of a training must call it
 * at the same time: one with a path, and the others with NULL, which give their parts of the states and write nothing. */
MGE_API MGE_NODISCARD mge_status* mge_session_save_checkpoint(mge_session* session, const char* path /* nullable */,
                                                              const char* notes /* nullable */);
/* Sets all states, and *notes to the text that was saved with them. Fails with E0307 if the checkpoint is of another model or
 * optimizer, and E0308 if the file is damaged; the states are then unchanged. With train.shard_optimizer, all processes of a training
 * must call it at the same time. */
MGE_API MGE_NODISCARD mge_status* mge_session_load_checkpoint(mge_session* session, const char* path,
                                                              mge_string** notes /* nullable */);
/* Returns a session that computes the loss and the outputs of the model with the present states of a session that trains, and
 * changes none of them: BatchNormalization uses its running statistics, and Dropout drops nothing. The inputs are those of a step
 * but for the learning rate. It shares the memory of the states, and may outlive `session`. With replicas, it runs on the device of
 * the first one. */
MGE_API MGE_NODISCARD mge_status* mge_session_evaluation(mge_session* session, mge_session** out);
/* Returns the examples of a batch of `examples` that this process computes in a training on several processes: *first, *first + 1,
 * ..., *count of them. Other rows of the inputs are not read. Without a launcher, those are all. */
MGE_API MGE_NODISCARD mge_status* mge_session_part(mge_session* session, int64_t examples, int64_t* first, int64_t* count);
/* Writes the model with its present parameters as an ONNX file, completely or not at all. Everything else is as in the model
 * that was loaded, whose file must not have changed. Fails with E0312 if a parameter has NaN. */
MGE_API MGE_NODISCARD mge_status* mge_session_save(mge_session* session, const char* path);
/* The same, with the outputs of mge_session_evaluation: BatchNormalization uses its running statistics, and each Dropout is an
 * Identity. */
MGE_API MGE_NODISCARD mge_status* mge_session_save_for_inference(mge_session* session, const char* path);

/* Returns the plan for inputs of these types as "text", as JSON "mge.plan/1", or as "html", a page for a browser that needs no
 * network. Does not read the tensors' data. `why` adds the alternatives and reasons to the text. */
MGE_API MGE_NODISCARD mge_status* mge_session_plan(mge_session* session, mge_tensor* const* inputs, size_t input_count,
                                                   const char* format, int32_t why, mge_string** out);
/* Returns facts as JSON: "mge.inspect/1" (the model), "mge.memory/1" (planned and measured memory of the plans used so
 * far), "mge.communication/1" (the sums of gradients over processes: their time per step, and which part of it steps did not
 * wait for). "memory.html" is "mge.memory/1" as a page for a browser. */
MGE_API MGE_NODISCARD mge_status* mge_session_report(mge_session* session, const char* schema, mge_string** out);

/* The memory and steps of a session, as planned and as measured. */
typedef struct mge_memory_facts {
  size_t struct_size;
  /* Memory of the latest plan, including the plans of its bodies (If, Loop, Scan). */
  uint64_t planned_peak_bytes;  /* arenas and packed constants */
  uint64_t measured_peak_bytes; /* memory that was allocated on the device for them */
  uint64_t constant_bytes;      /* constants used directly from the model's file */
  uint32_t steps;
  uint32_t reference_steps; /* steps that only the reference evaluator supports */
  /* Bytes that all runs of the session have copied between plain host memory and page-locked memory. */
  uint64_t staged_bytes;
  /* Operations of the dependency engine in the latest run: 1, or one per step if engine.bulk_inference is false or
   * engine.type is naive. */
  uint64_t engine_operations;
} mge_memory_facts;
static inline void mge_memory_facts_init(mge_memory_facts* facts) { MGE_CLEAR_(facts); }
MGE_API MGE_NODISCARD mge_status* mge_session_memory(mge_session* session, mge_memory_facts* out);

/* ---------------------------------------------------------------- control of runs */

/* One control may be used by several runs, also at the same time. Each run uses the time limit and the seed set when it
 * begins. */

MGE_API MGE_NODISCARD mge_status* mge_run_control_create(mge_run_control** out);
MGE_API void mge_run_control_release(mge_run_control* control);
/* Sets the time limit per run in seconds, planning included. Values <= 0 or > 1e9 disable it. */
MGE_API void mge_run_control_set_timeout(mge_run_control* control, double seconds);
/* Sets the seed of the runs that begin later. */
MGE_API void mge_run_control_set_seed(mge_run_control* control, uint64_t seed);
/* Gives later asynchronous runs a priority, higher first. On a CPU, the threads of engine.cpu_priority_threads run them. */
MGE_API void mge_run_control_set_priority(mge_run_control* control, int32_t priority);
MGE_API void mge_run_control_cancel(mge_run_control* control); /* ends the runs in progress and every later one */
MGE_API void mge_run_control_reset(mge_run_control* control);  /* allows runs again */
/* Returns by how many seconds a run in progress exceeds its time limit; 0 if none does. `place` (may be NULL) receives
 * its current step; empty between steps and during planning. For a watchdog, from any thread: a run ends soon after its
 * limit, unless a kernel in the calling thread does not check its stop flag. */
MGE_API MGE_NODISCARD mge_status* mge_run_control_overdue(const mge_run_control* control, double* seconds,
                                                          mge_string** place);

/* ---------------------------------------------------------------- profiles: where the time of runs goes */

/* Creates a profile: the times of the steps, bodies included, of every run that begins with a control on which it is set.
 * Other runs are not slowed down. A run with a profile waits for each step on a device's queue before it enqueues the
 * next, so that each time belongs to one step. */
MGE_API MGE_NODISCARD mge_status* mge_profile_create(mge_profile** out);
MGE_API void mge_profile_release(mge_profile* profile); /* controls that use it keep it alive */
MGE_API void mge_profile_reset(mge_profile* profile);   /* deletes all times */
MGE_API void mge_run_control_set_profile(mge_run_control* control, mge_profile* profile /* nullable: profiling ends */);
/* Returns the plan like mge_session_plan, with measured times from the profile beside the planner's estimates. Marks a
 * step if it takes more than 1 % of the run and 20 us, and its estimate is wrong by more than a factor of 4. */
MGE_API MGE_NODISCARD mge_status* mge_session_plan_measured(mge_session* session, mge_tensor* const* inputs,
                                                            size_t input_count, const mge_profile* profile,
                                                            const char* format, int32_t why, mge_string** out);
/* Returns the profile as JSON. `format` "mge.profile/1": the time of each step and of each type of operator; the steps,
 * planning and the gaps between steps add up to the wall time. "mge.timeline/1": the steps of the run of median length, for
 * each queue and thread. "trace": every step of every run, for Chrome's and Perfetto's viewers. "html": a page for a browser. */
MGE_API MGE_NODISCARD mge_status* mge_profile_report(const mge_profile* profile, const char* format, mge_string** out);

#ifdef __cplusplus
}
#endif

#endif /* MGE_MGE_H_ */

/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiled form of mge.Session.run(): a run whose inputs are arrays of the declared types. It returns NotImplemented for
 * anything else, which the package then does itself. Uses the limited API of Python 3.9, and NumPy through its array interface
 * (PyArrayInterface), so that one file serves every later version of both.
 *
 * The functions of libmge come from the library that the package has opened.
 */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#include <time.h>

#include "mge/mge.h"

enum { kMaxValues = 512, kMaxRank = 16 }; /* kMaxValues: inputs or outputs of a model, e.g. the caches of many layers */
#define LONG_SECONDS 0.1    /* after a run of this length, the next one must not block the main thread: Ctrl-C */
#define COPIED_BYTES 16384u /* results up to this size are copied, because that is faster than to share them */

/* The struct to which an attribute __array_struct__ points: https://numpy.org/doc/stable/reference/arrays.interface.html */
typedef struct ArrayInterface {
  int two;
  int rank;
  char kind;
  int itemsize;
  int flags;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  void* data;
  PyObject* description;
} ArrayInterface;
enum { kDenseAlignedNative = 0x1 | 0x100 | 0x200 };

typedef struct Library {
  mge_status* (*session_run)(mge_session*, mge_tensor* const*, size_t, mge_tensor**, size_t, const mge_run_options*,
                             mge_run_fence**);
  mge_status* (*tensor_wrap)(mge_dtype, const int64_t*, size_t, void*, uint64_t, mge_tensor**);
  void (*tensor_release)(mge_tensor*);
  int32_t (*tensor_kind)(const mge_tensor*);
  mge_dtype (*tensor_dtype)(const mge_tensor*);
  size_t (*tensor_rank)(const mge_tensor*);
  const int64_t* (*tensor_dims)(const mge_tensor*);
  uint64_t (*tensor_bytes)(const mge_tensor*);
  void* (*tensor_data)(mge_tensor*);
  mge_text (*tensor_string)(const mge_tensor*, uint64_t);
  mge_status* (*value_table)(const mge_tensor*, mge_tensor**, mge_tensor**);
  void (*status_release)(mge_status*);
} Library;

typedef struct Call {
  PyObject_HEAD Library library;
  mge_session* session;
  PyObject* owner;        /* keeps the session */
  PyObject* names;        /* tuple of str: inputs */
  PyObject* outputs;      /* tuple of str */
  PyObject* array_type;   /* numpy.ndarray */
  PyObject* dtypes;       /* tuple: the dtype of NumPy for each number of mge/types.h, or None */
  PyObject* take;         /* take(handle): returns any output */
  PyObject* make_maps;    /* make_maps(names, values): returns a sequence of maps */
  PyObject* raise_for;    /* raise_for(status) */
  PyObject* array_struct; /* the name "__array_struct__" */
  mge_dtype types[kMaxValues];
  Py_ssize_t running; /* runs in progress */
  int is_long;        /* whether a run may be long, so that it must not block the main thread */
} Call;

static mge_dtype DTypeOf(char kind, int itemsize) {
  switch (kind) {
    case 'f': return itemsize == 4 ? MGE_DTYPE_F32 : itemsize == 8 ? MGE_DTYPE_F64 : itemsize == 2 ? MGE_DTYPE_F16 : 0;
    case 'i':
      return itemsize == 8 ? MGE_DTYPE_I64 : itemsize == 4 ? MGE_DTYPE_I32 : itemsize == 2 ? MGE_DTYPE_I16 : MGE_DTYPE_I8;
    case 'u':
      return itemsize == 1 ? MGE_DTYPE_U8 : itemsize == 4 ? MGE_DTYPE_U32 : itemsize == 8 ? MGE_DTYPE_U64 : MGE_DTYPE_U16;
    case 'b': return MGE_DTYPE_BOOL;
    case 'c': return itemsize == 8 ? MGE_DTYPE_C64 : itemsize == 16 ? MGE_DTYPE_C128 : 0;
    default: return 0;
  }
}

/* Returns the new reference to the capsule of an array's interface, which keeps the array. NULL without an error if it is not an
 * array of NumPy's own type. */
static PyObject* CapsuleOf(const Call* self, PyObject* array, const ArrayInterface** out) {
  if ((PyObject*)Py_TYPE(array) != self->array_type) return NULL;
  PyObject* capsule = PyObject_GetAttr(array, self->array_struct);
  if (!capsule) return NULL;
  *out = PyCapsule_GetPointer(capsule, NULL);
  if (*out) return capsule;
  Py_DECREF(capsule);
  return NULL;
}

/* Wraps an array of the declared type. Returns its capsule; NULL, possibly without an error, if that is impossible. */
static PyObject* Wrap(const Call* self, PyObject* array, mge_dtype declared, mge_tensor** out) {
  const ArrayInterface* a = NULL;
  PyObject* capsule = CapsuleOf(self, array, &a);
  if (!capsule) return NULL;
  const int flags = a->flags & kDenseAlignedNative;
  if (flags == kDenseAlignedNative && DTypeOf(a->kind, a->itemsize) == declared && a->rank <= kMaxRank) {
    int64_t dims[kMaxRank];
    uint64_t bytes = (uint64_t)a->itemsize;
    for (int i = 0; i < a->rank; ++i) {
      dims[i] = a->shape[i];
      bytes *= (uint64_t)a->shape[i];
    }
    /* An error is reported by the package's own form of the call. */
    if (!self->library.tensor_wrap(declared, dims, (size_t)a->rank, a->data, bytes, out)) return capsule;
  }
  Py_DECREF(capsule);
  return NULL;
}

/* Returns a copy of a tensor as a new array. */
static PyObject* Copy(const Call* self, mge_tensor* tensor, PyObject* dtype, const void* data, uint64_t bytes) {
  const Library* l = &self->library;
  const size_t rank = l->tensor_rank(tensor);
  const int64_t* dims = l->tensor_dims(tensor);
  PyObject* shape = PyTuple_New((Py_ssize_t)rank);
  for (size_t i = 0; shape && i < rank; ++i) {
    PyObject* size = PyLong_FromLongLong(dims[i]);
    if (!size || PyTuple_SetItem(shape, (Py_ssize_t)i, size) != 0) Py_CLEAR(shape);
  }
  PyObject* array = shape ? PyObject_CallFunctionObjArgs(self->array_type, shape, dtype, NULL) : NULL;
  Py_XDECREF(shape);
  if (!array) return NULL;
  const ArrayInterface* a = NULL;
  PyObject* capsule = CapsuleOf(self, array, &a);
  if (!capsule) {
    Py_DECREF(array);
    return NULL;
  }
  if (bytes > 0) memcpy(a->data, data, (size_t)bytes);
  Py_DECREF(capsule);
  return array;
}

static PyObject* Take(const Call* self, mge_tensor* tensor) {
  return PyObject_CallFunction(self->take, "K", (unsigned long long)(uintptr_t)tensor);
}

/* Returns a tensor of numbers in host memory as an array, and takes over the tensor. */
static PyObject* Array(const Call* self, mge_tensor* tensor) {
  const Library* l = &self->library;
  const uint64_t bytes = l->tensor_bytes(tensor);
  const void* data = bytes <= COPIED_BYTES ? l->tensor_data(tensor) : NULL;
  PyObject* dtype = PyTuple_GetItem(self->dtypes, l->tensor_dtype(tensor));
  if (!dtype) PyErr_Clear();
  if (!data || !dtype || dtype == Py_None) return Take(self, tensor);
  PyObject* array = Copy(self, tensor, dtype, data, bytes);
  l->tensor_release(tensor);
  return array;
}

/* Returns the keys of a map, a vector, as a list. */
static PyObject* Names(const Call* self, mge_tensor* keys) {
  const Library* l = &self->library;
  const Py_ssize_t count = (Py_ssize_t)l->tensor_dims(keys)[0];
  const int64_t* numbers = l->tensor_dtype(keys) == MGE_DTYPE_I64 ? l->tensor_data(keys) : NULL;
  PyObject* names = PyList_New(count);
  for (Py_ssize_t i = 0; names && i < count; ++i) {
    const mge_text text = numbers ? (mge_text){NULL, 0} : l->tensor_string(keys, (uint64_t)i);
    PyObject* name =
        numbers ? PyLong_FromLongLong(numbers[i]) : PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, "replace");
    if (!name || PyList_SetItem(names, i, name) != 0) Py_CLEAR(names);
  }
  return names;
}

/* Returns a sequence of maps with the same keys, and takes over `value`. Any other value is for the package. */
static PyObject* Maps(const Call* self, mge_tensor* value) {
  const Library* l = &self->library;
  mge_tensor *keys = NULL, *values = NULL;
  mge_status* status = l->value_table(value, &keys, &values);
  if (status) {
    l->status_release(status);
    return Take(self, value);
  }
  l->tensor_release(value);
  PyObject* names = Names(self, keys);
  l->tensor_release(keys);
  PyObject* rows = Array(self, values);
  PyObject* maps = names && rows ? PyObject_CallFunctionObjArgs(self->make_maps, names, rows, NULL) : NULL;
  Py_XDECREF(names);
  Py_XDECREF(rows);
  return maps;
}

/* Returns an output, and takes over the tensor. */
static PyObject* Output(const Call* self, mge_tensor* tensor) {
  switch (self->library.tensor_kind(tensor)) {
    case MGE_VALUE_TENSOR: return Array(self, tensor);
    case MGE_VALUE_SEQUENCE: return Maps(self, tensor);
    default: return Take(self, tensor);
  }
}

/* Returns the input number `i` (borrowed), or NULL without an error. */
static PyObject* Input(const Call* self, PyObject* given, int by_name, Py_ssize_t i) {
  return by_name ? PyDict_GetItem(given, PyTuple_GetItem(self->names, i)) : given;
}

static PyObject* Results(const Call* self, mge_tensor** tensors, Py_ssize_t count) {
  PyObject* results = PyDict_New();
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!results) {
      self->library.tensor_release(tensors[i]);
      continue;
    }
    PyObject* value = Output(self, tensors[i]);
    if (!value || PyDict_SetItem(results, PyTuple_GetItem(self->outputs, i), value) != 0) Py_CLEAR(results);
    Py_XDECREF(value);
  }
  return results;
}

/* call(inputs, named): see the file's comment. */
static PyObject* Run(Call* self, PyObject* args, PyObject* unused) {
  (void)unused;
  PyObject* given = NULL;
  PyObject* named = NULL;
  if (!PyArg_UnpackTuple(args, "call", 2, 2, &given, &named)) return NULL;
  const Py_ssize_t count = PyTuple_Size(self->names), output_count = PyTuple_Size(self->outputs);
  const int by_name = given == Py_None || PyDict_CheckExact(given);
  if (by_name) {
    if (given == Py_None) {
      given = named;
    } else if (PyDict_Size(named) != 0) {
      Py_RETURN_NOTIMPLEMENTED;
    }
  }
  const int fits = by_name ? PyDict_Size(given) == count : count == 1 && PyDict_Size(named) == 0;
  if (!fits || self->is_long) Py_RETURN_NOTIMPLEMENTED;

  mge_tensor* inputs[kMaxValues]; /* the first `count` of each are used */
  mge_tensor* outputs[kMaxValues];
  PyObject* keeps[kMaxValues];
  memset(inputs, 0, (size_t)count * sizeof(inputs[0]));
  memset(outputs, 0, (size_t)output_count * sizeof(outputs[0]));
  Py_ssize_t wrapped = 0;
  for (; wrapped < count; ++wrapped) {
    PyObject* array = Input(self, given, by_name, wrapped);
    keeps[wrapped] = array ? Wrap(self, array, self->types[wrapped], &inputs[wrapped]) : NULL;
    if (!keeps[wrapped]) break;
  }
  mge_status* status = NULL;
  if (wrapped == count) {
    struct timespec begin, end;
    ++self->running;
    Py_BEGIN_ALLOW_THREADS;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    status = self->library.session_run(self->session, inputs, (size_t)count, outputs, (size_t)output_count, NULL, NULL);
    clock_gettime(CLOCK_MONOTONIC, &end);
    Py_END_ALLOW_THREADS;
    --self->running;
    self->is_long = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec) >= LONG_SECONDS;
  }
  for (Py_ssize_t i = 0; i < wrapped; ++i) {
    self->library.tensor_release(inputs[i]);
    Py_DECREF(keeps[i]);
  }
  if (PyErr_Occurred()) return NULL;
  if (wrapped < count) Py_RETURN_NOTIMPLEMENTED;
  if (status) {
    PyObject* none = PyObject_CallFunction(self->raise_for, "K", (unsigned long long)(uintptr_t)status);
    Py_XDECREF(none);
    return NULL;
  }
  return Results(self, outputs, output_count);
}

static int Find(Library* library, void* handle) {
  struct {
    const char* name;
    void* slot;
  } const functions[] = {{"mge_session_run", &library->session_run},       {"mge_tensor_wrap", &library->tensor_wrap},
                         {"mge_tensor_release", &library->tensor_release}, {"mge_tensor_kind", &library->tensor_kind},
                         {"mge_tensor_dtype", &library->tensor_dtype},     {"mge_tensor_rank", &library->tensor_rank},
                         {"mge_tensor_dims", &library->tensor_dims},       {"mge_tensor_bytes", &library->tensor_bytes},
                         {"mge_tensor_data", &library->tensor_data},       {"mge_tensor_string", &library->tensor_string},
                         {"mge_value_table", &library->value_table},       {"mge_status_release", &library->status_release}};
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
    void* found = dlsym(handle, functions[i].name);
    if (!found) {
      PyErr_Format(PyExc_ImportError, "libmge has no function %s", functions[i].name);
      return 0;
    }
    memcpy(functions[i].slot, &found, sizeof(found));
  }
  return 1;
}

/* Takes the inputs, a tuple of (name, number of the type), apart. Sets an error if it returns 0. */
static int TakeInputs(Call* self, PyObject* inputs) {
  const Py_ssize_t count = PyTuple_Size(inputs);
  if (count < 0) return 0;
  if (count > kMaxValues || PyTuple_Size(self->outputs) > kMaxValues) {
    PyErr_Format(PyExc_ValueError, "the model has more than %d inputs or outputs", kMaxValues);
    return 0;
  }
  self->names = PyTuple_New(count);
  for (Py_ssize_t i = 0; self->names && i < count; ++i) {
    PyObject* input = PyTuple_GetItem(inputs, i);
    PyObject* name = input ? PyTuple_GetItem(input, 0) : NULL;
    PyObject* type = input ? PyTuple_GetItem(input, 1) : NULL;
    if (!name || !type) return 0;
    Py_INCREF(name);
    self->types[i] = (mge_dtype)PyLong_AsLong(type);
    if (PyTuple_SetItem(self->names, i, name) != 0) return 0;
  }
  return self->names && !PyErr_Occurred();
}

/* Call(library, session, owner, inputs, outputs, array_type, dtypes, take, make_maps, raise_for) */
static PyObject* New(PyTypeObject* type, PyObject* args, PyObject* unused) {
  (void)unused;
  unsigned long long library = 0, session = 0;
  PyObject *owner, *inputs, *outputs, *array_type, *dtypes, *take, *make_maps, *raise_for;
  if (!PyArg_ParseTuple(args, "KKOOOOOOOO", &library, &session, &owner, &inputs, &outputs, &array_type, &dtypes, &take,
                        &make_maps, &raise_for)) {
    return NULL;
  }
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  Call* self = (Call*)allocate(type, 0);
  if (!self) return NULL;
  self->session = (mge_session*)(uintptr_t)session;
  self->is_long = 1;
  PyObject** const members[] = {&self->owner, &self->outputs,   &self->array_type, &self->dtypes,
                                &self->take,  &self->make_maps, &self->raise_for};
  PyObject* const values[] = {owner, outputs, array_type, dtypes, take, make_maps, raise_for};
  for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
    Py_INCREF(values[i]);
    *members[i] = values[i];
  }
  self->array_struct = PyUnicode_InternFromString("__array_struct__");
  if (self->array_struct && Find(&self->library, (void*)(uintptr_t)library) && TakeInputs(self, inputs))
    return (PyObject*)self;
  Py_DECREF(self);
  return NULL;
}

static void Delete(Call* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject* const members[] = {self->owner, self->names,     self->outputs,   self->array_type,  self->dtypes,
                               self->take,  self->make_maps, self->raise_for, self->array_struct};
  for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); ++i) Py_XDECREF(members[i]);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static PyMemberDef kMembers[] = {
    {"running", T_PYSSIZET, offsetof(Call, running), READONLY, "Runs in progress."},
    {"is_long", T_INT, offsetof(Call, is_long), 0, "Whether a run may be long. Set after the first run."},
    {NULL, 0, 0, 0, NULL}};
static PyType_Slot kSlots[] = {{Py_tp_new, New},
                               {Py_tp_dealloc, Delete},
                               {Py_tp_call, Run},
                               {Py_tp_members, kMembers},
                               {Py_tp_doc, "The compiled form of Session.run() of one session."},
                               {0, NULL}};
static PyType_Spec kCall = {"mge._compiled.Call", sizeof(Call), 0, Py_TPFLAGS_DEFAULT, kSlots};

static int Execute(PyObject* module) {
  PyObject* type = PyType_FromSpec(&kCall);
  if (!type || PyModule_AddIntConstant(module, "MAX_VALUES", kMaxValues) != 0) return -1;
  return PyModule_AddObject(module, "Call", type);
}

static PyModuleDef_Slot kModuleSlots[] = {{Py_mod_exec, Execute}, {0, NULL}};
static struct PyModuleDef kModule = {PyModuleDef_HEAD_INIT,
                                     "mge._compiled",
                                     "The compiled form of mge.Session.run().",
                                     0,
                                     NULL,
                                     kModuleSlots,
                                     NULL,
                                     NULL,
                                     NULL};

PyMODINIT_FUNC PyInit__compiled(void) { return PyModuleDef_Init(&kModule); }

/*===- attnc.h - The compiler and its kernels from C -------------*- C -*-===*\
|*                                                                            *|
|* The interface of libattnc.so, which shows no other symbols. It only grows: *|
|* functions keep their meaning, options are appended.                        *|
|*                                                                            *|
|* A function that fails says why by attnc_last_error. Everything may be      *|
|* called from any thread.                                                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef ATTN_C_ATTNC_H
#define ATTN_C_ATTNC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ATTNC_API __attribute__((visibility("default")))

/** "0.1.0" */
ATTNC_API const char *attnc_version(void);

/** Of the last call that failed on this thread, until the next one fails. */
ATTNC_API const char *attnc_last_error(void);

/** A compiled kernel, or sequence of kernels, that is loaded. */
typedef struct attnc_kernel attnc_kernel;

/** A null string is the default. */
typedef struct attnc_options {
  /** sizeof(attnc_options) of the caller: what it doesn't know is default. */
  size_t size;
  /** "fused" (default), "naive", "inplace" or "math". */
  const char *variant;
  /** "native" (default), "cpu", "sm_80" or "sm_90a". */
  const char *target;
  /** The entry function, where there are several. */
  const char *entry;
  /** Folder of compiled kernels; "off" for none. Default: $ATTNC_CACHE_DIR, or
      attnc in $XDG_CACHE_HOME or ~/.cache. */
  const char *cache_dir;
  /** The GPU, as the CUDA driver numbers them. */
  int device;
  /** Whose code: "auto", "fused", "naive", "inplace", "math" or "cudnn";
     default: that of attnc_push_backend, else `variant`. One that is named and
     can't serve the operator is an error. */
  const char *backend;
  /** Told, on any thread, of what is no error but slower than it could be: that
      a kernel isn't kept on disk, and why; that a tensor can't be accessed
     where it lies by the GPU's copy engine, so that another kernel is compiled.
     It and `remark_context`, its first argument, are kept as long as the
     process runs, as kernels are. Null: nobody. */
  void (*on_remark)(void *context, const char *text);
  void *remark_context;
} attnc_options;

/** From now on, what this thread compiles without a backend of its own gets
    this one, until attnc_pop_backend. Calls nest. 0, or -1 on failure. */
ATTNC_API int attnc_push_backend(const char *backend);

/** Ends the last attnc_push_backend of this thread. 0, or -1 on failure. */
ATTNC_API int attnc_pop_backend(void);

/** Says of each backend whether it is the one that such options choose for the
    only operator of the text, could be named, or which of its conditions isn't
    met. Needs no GPU, and says what can't be known without one.

    `inputs` are pointers to DLTensor, as for attnc_launch but the inputs only,
    or null with `num_inputs` 0: what depends on sizes is then left open. Their
    data isn't read. `as_json`: JSON, else a line for each. Lives until the next
    call on this thread that returns text. Null on failure. */
ATTNC_API const char *attnc_explain(const char *text, size_t length,
                                    const attnc_options *options,
                                    const void *const *inputs,
                                    size_t num_inputs, int as_json);

/** Compiles MLIR text of `length` bytes, or finds it compiled in memory or on
    disk. `options` may be null. Null on failure, with the diagnostics as the
    error. */
ATTNC_API attnc_kernel *attnc_compile(const char *text, size_t length,
                                      const attnc_options *options);

/** All launches and graphs of the kernel must be complete. Null is allowed. */
ATTNC_API void attnc_release(attnc_kernel *kernel);

/** docs/Manifest.md as JSON: arguments, kernels, plan. Lives as long as the
    kernel. */
ATTNC_API const char *attnc_manifest(const attnc_kernel *kernel);

/** "NVIDIA H200", or the CPU's name. Lives as long as the kernel. */
ATTNC_API const char *attnc_device_name(const attnc_kernel *kernel);

/** Makes and loads the machine code of all that the kernel launches now. Else a
    GPU's is made when a launch first needs it (a fused operator has kernels for
    several lengths), and after the first launch by a thread of the library. 0,
    or -1 on failure. */
ATTNC_API int attnc_prepare(const attnc_kernel *kernel);

/** The shape of the `output`-th output for inputs of given shapes. `inputs`:
    as for attnc_launch, the inputs only; their data isn't read. Writes up to
    `capacity` sizes and returns the rank; -1 on failure. */
ATTNC_API int attnc_output_shape(const attnc_kernel *kernel,
                                 const void *const *inputs, size_t num_inputs,
                                 size_t output, int64_t *sizes,
                                 size_t capacity);

/** Enqueues one forward on `stream`, a CUstream (null: the legacy default
    stream); on the CPU, where it is null, it is complete on return.

    `tensors` are pointers to DLTensor (DLPack), one an argument of the
    manifest, inputs and outputs in its order; scalars are rank-0 tensors in
    host memory. The memory stays the caller's. Neither allocates nor waits,
    once a launch with the same shapes and strides was made. May be captured
    into a CUDA graph; the kernel must outlive it. 0, or -1 on failure. */
ATTNC_API int attnc_launch(const attnc_kernel *kernel, void *stream,
                           const void *const *tensors, size_t num_tensors);

/** attnc_launch on data that lies at `data`, one address a tensor: data and
    byte_offset of `tensors` aren't read, so that one set of descriptors serves
    any number of calls, from any number of threads. */
ATTNC_API int attnc_launch_at(const attnc_kernel *kernel, void *stream,
                              const void *const *tensors, void *const *data,
                              size_t num_tensors);

/** What a launch may take for granted, joined by |. */
enum {
  /** The tensors that a mask reads (captures) and the lengths of sequences hold
      what they held at the last launch on the stream with tensors of the same
      shapes and strides. What
      that launch found out about them before the attention is used again, if
      they also lie at the same addresses and no other launch of the kernel came
      between on the stream. */
  ATTNC_CAPTURES_UNCHANGED = 1,
  /** The stream is the current one of the tensors' package; only for
      attnc_replay_launch. */
  ATTNC_CURRENT_STREAM = 2
};

/** attnc_launch_at with flags; `data` may be null: where the tensors say. */
ATTNC_API int attnc_launch_with(const attnc_kernel *kernel, void *stream,
                                const void *const *tensors, void *const *data,
                                size_t num_tensors, unsigned flags);

/** A launch for tensors of a Python package that are laid out like given ones.
    They are read from its objects by DLPack's C exchange API, which is faster
    than a capsule for each. */
typedef struct attnc_replay attnc_replay;

/** `exchange_api`: what the capsule `__dlpack_c_exchange_api__` of their type
    points to. `tensors`: as for attnc_launch. `objects`: how the objects are
    laid out, which may differ from what is launched in shape and strides; null
    for the same. Both are copied, and the kernel is kept. Null on failure, as
    with another version of DLPack than 1 or outside of Python. */
ATTNC_API attnc_replay *attnc_replay_create(const attnc_kernel *kernel,
                                            const void *exchange_api,
                                            const void *const *tensors,
                                            const void *const *objects,
                                            size_t num_tensors);

/** Null is allowed. */
ATTNC_API void attnc_replay_release(attnc_replay *replay);

/** attnc_launch_with on one object (PyObject *) an argument of the manifest, in
    its order. The caller holds the GIL, which is released for the launch. 0; 1
    where a tensor is laid out otherwise, which does nothing; or -1 on failure,
    which may be an exception of Python's. */
ATTNC_API int attnc_replay_launch(const attnc_replay *replay, void *stream,
                                  unsigned flags, ...);

/** Records what runs on a device, this library's and other kernels alike. A
    process has one for a device at a time. */
typedef struct attnc_profiler attnc_profiler;

/** For the device that kernels of such options run on. Null on failure: on a
    GPU it needs CUPTI, which the error says how to find. */
ATTNC_API attnc_profiler *attnc_profiler_create(const attnc_options *options);

/** Null is allowed. */
ATTNC_API void attnc_profiler_release(attnc_profiler *profiler);

/** What made the profile, such as a command line; for who reads it. 0, or -1 on
    failure. */
ATTNC_API int attnc_profiler_set_command(attnc_profiler *profiler,
                                         const char *command);

/** Starts a region, such as one implementation among several. 0, or -1 on
    failure. */
ATTNC_API int attnc_profiler_begin(attnc_profiler *profiler, const char *name);

/** A phase of the region: "first" (the first call) or "steady" (what is
    reported). Its end waits for the device; `calls` are the repetitions that
    it was. 0, or -1 on failure. */
ATTNC_API int attnc_profiler_begin_phase(attnc_profiler *profiler,
                                         const char *name);
ATTNC_API int attnc_profiler_end_phase(attnc_profiler *profiler, int64_t calls);

/** Ends the region. 0, or -1 on failure. */
ATTNC_API int attnc_profiler_end(attnc_profiler *profiler);

/** The regions that have ended, as docs/Profile.md says; with the first call,
    the device's rates are measured. Lives until the next such call or the
    release. Null on failure. */
ATTNC_API const char *attnc_profiler_save(attnc_profiler *profiler);

/** What attn-prof would show of a saved profile. `expect`: guesses (may be
    null), of which `all_right` (may be null) says whether all were right;
    `layers`: 0, or of a model, for the costs of findings. Lives until the next
    call on this thread that returns text. Null on failure, as with a malformed
    guess. */
ATTNC_API const char *attnc_profile_show(const char *profile, size_t length,
                                         const char *expect, int64_t layers,
                                         int *all_right);

/** Its report: the text of a page with charts, which needs no network. `expect`
    and `layers` are as for attnc_profile_show, as is how long it lives. Null on
    failure, as where the library was built without charts. */
ATTNC_API const char *attnc_profile_report(const char *profile, size_t length,
                                           const char *expect, int64_t layers);

/** Its trace for Perfetto. Lives as that of attnc_profile_show. */
ATTNC_API const char *attnc_profile_trace(const char *profile, size_t length);

#ifdef __cplusplus
}
#endif

#endif /* ATTN_C_ATTNC_H */

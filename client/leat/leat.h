/* SPDX-License-Identifier: Apache-2.0
 *
 * Leat's C interface: stable, and the base of bindings for other languages. The
 * semantics are those of leat/client.h.
 *
 * Errors: functions return NULL for success, or a status that the caller frees
 * with leat_status_free. Out-parameters are written on success only. Handles
 * are freed with their _free function (NULL is allowed) in any order. Threads:
 * as in leat/client.h; leat_batches_cancel and every _free may be called by any
 * thread. Strings are UTF-8 and end with a zero byte; those returned as char*
 * are freed with leat_string_free.
 */
#ifndef LEAT_LEAT_H_
#define LEAT_LEAT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a program must be compiled again. */
#define LEAT_ABI_VERSION 5
#define LEAT_EXPORT __attribute__((visibility("default")))

/* An error: a code and a message. */
typedef struct leat_status leat_status;
/* A connection to a service. */
typedef struct leat_service leat_service;
/* A job of a service. */
typedef struct leat_job leat_job;
/* An iterator over batches. */
typedef struct leat_batches leat_batches;
/* A batch, which owns its memory. */
typedef struct leat_batch leat_batch;
/* The requests of an iterator for client-supplied samples. */
typedef struct leat_feed leat_feed;

/* Returns LEAT_ABI_VERSION of the library. */
LEAT_EXPORT int leat_abi_version(void);
/* Returns the library's version, such as "0.2.0". */
LEAT_EXPORT const char* leat_version(void);
/* Turns what gRPC writes to stderr into events of the library's own log, from
 * now on and in a bounded number; failed handshakes are not repeated there,
 * since errors say why. This affects the whole process: call it only where the
 * library is the sole user of its libgrpc, as in Python, where grpcio brings
 * its own. Does nothing if GRPC_VERBOSITY or GRPC_TRACE is set. */
LEAT_EXPORT void leat_log_grpc(void);

/* Returns absl::StatusCode's number: 3 INVALID_ARGUMENT, 5 NOT_FOUND, ... */
LEAT_EXPORT int leat_status_code(const leat_status* status);
/* Returns the error's text, which lives as long as the status. */
LEAT_EXPORT const char* leat_status_message(const leat_status* status);
/* Frees a status. */
LEAT_EXPORT void leat_status_free(leat_status* status);
/* Frees a string that a function returned as char*. */
LEAT_EXPORT void leat_string_free(char* string);

/* Returns every operator: [{"name", "doc", "inputs", "outputs", "outputs_of",
 * "random", "args": [{"name", "type", "default", "required", "per_sample",
 * "min", "max", "choices", "doc"}]}]; type is "bool", "int", "float", "string",
 * "ints", "floats" or "strings". */
LEAT_EXPORT char* leat_operators_json(void);
/* Checks a pipeline (JSON form of leat.v1.Graph) without a service;
 * *schema_json becomes an array of its fields. */
LEAT_EXPORT leat_status* leat_pipeline_check(const char* graph_json,
                                             char** schema_json);

/* Connects to a service. `options_json`: {"address", "access_token", "access_token_file", "ca_pem",
 * "cert_pem", "key_pem", "timeout_s", "daemon_dir", "embedded_workers", "embedded_threads",
 * "embedded_cache_bytes", "embedded_disk_cache", "embedded_disk_cache_bytes",
 * "embedded_devices"}, all optional, as in leat::ConnectOptions; an unknown key
 * is an error. Without an address: a private service. */
LEAT_EXPORT leat_status* leat_connect(const char* options_json,
                                      leat_service** out);
/* Returns the coordinator's address, which lives as long as the service. */
LEAT_EXPORT const char* leat_service_address(const leat_service* service);
/* Closes the connection. A call that is running in another thread completes as if the service still
 * existed; no call may begin afterwards. */
LEAT_EXPORT void leat_service_free(leat_service* service);
/* Returns a list or a state of the service: *json becomes the response of
 * proto/leat/v1/admin.proto or pool.proto. `what`: "status", "workers", "jobs",
 * "datasets", "shards", "consumers", "pools", "tokens" (as leat::Admin::Get),
 * "private" (as leat::Service::PrivateJson); `name`: the dataset for "shards",
 * otherwise NULL. */
LEAT_EXPORT leat_status* leat_service_get(leat_service* service,
                                          const char* what, const char* name,
                                          char** json);
/* Changes the service. `verb`: "delete-job", "delete-dataset",
 * "refresh-dataset", "drain", "undrain", "revoke-token", "unmute" (as
 * leat::Admin::Do). */
LEAT_EXPORT leat_status* leat_service_do(leat_service* service,
                                         const char* verb, const char* name);

/* Has `tell(context, job, waits_for)` called by leat_job_create, in its thread, while it waits for
 * a dataset to be listed: after two seconds, and then every ten. `job`: the name in the spec;
 * `waits_for`: a text for people. Both texts end with the call. Set it before the first job; NULL:
 * nothing is called. */
LEAT_EXPORT void leat_service_on_waiting(leat_service* service,
                                         void (*tell)(void* context,
                                                      const char* job,
                                                      const char* waits_for),
                                         void* context);
/* Creates a job, or attaches to the one of this name and spec. `spec_json`: the
 * JSON form of leat.v1.JobSpec. `relist`: "auto" (also NULL),
 * "always" or "never" (leat::Relist). */
LEAT_EXPORT leat_status* leat_job_create(leat_service* service,
                                         const char* spec_json,
                                         const char* relist, double timeout_s,
                                         leat_job** out);
/* Attaches to a job by its name. Code 5 (NOT_FOUND): no such job. */
LEAT_EXPORT leat_status* leat_job_get(leat_service* service, const char* name,
                                      leat_job** out);
/* Returns {"job": leat.v1.Job as JSON, "steps_per_epoch": n, "plan_hash":
 * "hex", "attached", "dataset_changed", "consumers"}, the last three as in
 * leat::Job; 64-bit numbers are JSON numbers there. */
LEAT_EXPORT char* leat_job_json(const leat_job* job);
/* Returns one sample as epoch 0 has it, as a batch of one row. Code 11
 * (OUT_OF_RANGE): no such sample. */
LEAT_EXPORT leat_status* leat_job_sample(const leat_job* job, uint64_t index,
                                         double timeout_s, leat_batch** out);
/* Returns the next step of a consumer of this job that is at `position`. Code 3
 * (INVALID_ARGUMENT): not a position of this job. */
LEAT_EXPORT leat_status* leat_job_step_of(const leat_job* job,
                                          const void* position,
                                          size_t position_bytes,
                                          uint64_t* epoch, uint64_t* step);
/* Returns the samples that the plan assigns to these rows of a step. `rows` may
 * be NULL with num_rows 0: all rows. `samples` has room for one per row; -1
 * marks a row without one: padding, or beyond the end of a partial batch. Code
 * 11 (OUT_OF_RANGE): no such step. */
LEAT_EXPORT leat_status* leat_job_samples(const leat_job* job, uint64_t epoch,
                                          uint64_t step, const uint32_t* rows,
                                          size_t num_rows, int64_t* samples);
/* Returns how many rows of each source of a mixture, or else of each class that
 * has a share, come before a step. `num_sources` is how many of them `rows` has
 * room for. Code 9 (FAILED_PRECONDITION): the job has neither; 3
 * (INVALID_ARGUMENT): it has another number; 11 (OUT_OF_RANGE): no such step. */
LEAT_EXPORT leat_status* leat_job_rows_before(const leat_job* job,
                                              uint64_t epoch, uint64_t step,
                                              uint64_t* rows,
                                              size_t num_sources);
/* Returns where a sample is stored: *json becomes leat.v1.StoredRecord, with
 * 64-bit numbers as numbers. No data is read. If the sample is a packed row,
 * its documents after the first `first_document` are listed, at most 1,024.
 * Code 9 (FAILED_PRECONDITION): consumers supply the job's samples; 11
 * (OUT_OF_RANGE): no such sample; 14 (UNAVAILABLE): no worker can answer. */
LEAT_EXPORT leat_status* leat_job_record(const leat_job* job, uint64_t index,
                                         uint64_t first_document,
                                         double timeout_s, char** json);
/* Returns the content of rows of a step, its origin and its random draws: *json
 * becomes an array of leat.v1.ExplainedRow. `rows` as in leat_job_samples.
 * `read_records` 1: records are read to compute the draws that depend on an
 * image's size, which are otherwise unknown. The first documents of packed rows
 * are listed: 1,024 of one row, and of each of n rows an n-th as many. Codes as
 * in leat_job_record; 5 (NOT_FOUND): no such row. */
LEAT_EXPORT leat_status* leat_job_explain(const leat_job* job, uint64_t epoch,
                                          uint64_t step, const uint32_t* rows,
                                          size_t num_rows, int read_records,
                                          double timeout_s, char** json);
/* Frees a job's handle; the job itself stays. */
LEAT_EXPORT void leat_job_free(leat_job* job);

/* `options_json`: {"epoch", "step", "epochs", "window", "max_window_bytes",
 * "row_timeout_s", "device", "epilogue", "ahead"}, all optional; an unknown key
 * is an error. `position` may be NULL with position_bytes 0. `rows` may be NULL
 * with num_rows 0: all rows. "epochs" (default 1; 0: without end) counts the
 * epoch of the first step as one, although only its remaining steps are
 * delivered. "device": -1 for host memory, or the number of a CUDA device: code
 * 9 (FAILED_PRECONDITION) without a driver or the device. "epilogue": "worker",
 * or "device": tensors are bytes where leat_batches_epilogue describes
 * remaining work. "ahead": true: leat_batches_next is called by a thread that
 * works ahead of the trainer; see leat_batches_begin_wait. */
LEAT_EXPORT leat_status* leat_batches_open(const leat_job* job,
                                           const char* options_json,
                                           const void* position,
                                           size_t position_bytes,
                                           const uint32_t* rows,
                                           size_t num_rows, leat_batches** out);
/* Returns the next batch; *out becomes NULL at the end. timeout_s < 0: wait
 * without limit. Code 4 (DEADLINE_EXCEEDED): call again. */
LEAT_EXPORT leat_status* leat_batches_next(leat_batches* batches,
                                           double timeout_s, leat_batch** out);
/* Ends the iterator: leat_batches_next returns code 1 (CANCELLED). */
LEAT_EXPORT void leat_batches_cancel(leat_batches* batches);
/* With "ahead": call leat_batches_begin_wait when the trainer starts to wait
 * for a batch, and leat_batches_end_wait when it takes one, also without a
 * wait; `delivered` 0: it gave up. Without "ahead", both do nothing. */
LEAT_EXPORT void leat_batches_begin_wait(leat_batches* batches);
LEAT_EXPORT void leat_batches_end_wait(leat_batches* batches, int delivered);
/* Writes at most `capacity` bytes of the position after the last batch, and
 * returns its size (under 1,024). */
LEAT_EXPORT size_t leat_batches_position(const leat_batches* batches,
                                         void* position, size_t capacity);
/* As leat_batches_position, for a consumer whose next batch is step `step` of
 * epoch `epoch`; for callers that pass batches on and know which of them
 * arrived. */
LEAT_EXPORT size_t leat_batches_position_at(const leat_batches* batches,
                                            uint64_t epoch, uint64_t step,
                                            void* position, size_t capacity);
/* The work left to do on a tensor of bytes. In each row, every element x with
 * index c on the last axis becomes table[x * channels + c] (c = 0 if channels
 * is 1); then axis i of the result is axis perm[i]. The result is bit-identical
 * to "epilogue": "worker". */
typedef struct leat_epilogue {
  const char* dtype; /* of the finished tensor; NULL: nothing to do */
  uint32_t channels; /* of the table */
  const void* table; /* 256 * channels values of `dtype`; NULL: bytes stay */
  size_t table_bytes;
  const int64_t* perm; /* over a row's axes; NULL: they stay */
  size_t rank;         /* of `perm` */
} leat_epilogue;
/* Returns the work for the tensor with this index in every batch. Pointers live
 * as long as the iterator. */
LEAT_EXPORT leat_epilogue leat_batches_epilogue(const leat_batches* batches,
                                                size_t index);
/* Returns leat::BatchesStats as JSON. */
LEAT_EXPORT char* leat_batches_stats_json(const leat_batches* batches);
/* Ends and frees the iterator; its batches stay valid. */
LEAT_EXPORT void leat_batches_free(leat_batches* batches);

/* Jobs that read from "readers.external": their samples are in no storage; each
 * consumer supplies the samples of its own rows. The iterator works ahead by
 * its window: a thread of the caller gets requests from leat_feed_next, and
 * answers each sample by leat_feed_supply or leat_feed_fail. A sample (of an
 * epoch) must have the same bytes whenever it is requested. */

/* A field of a sample, for an output of the reader. */
typedef struct leat_field {
  const void*
      data; /* an encoded image; or elements, row-major, little-endian */
  size_t bytes;
  const int64_t* shape; /* NULL if the type leaves no size open */
  size_t rank;
} leat_field;

/* As leat_batches_open, for such a job; leat_batches_open returns code 9
 * (FAILED_PRECONDITION) for it. *feed is independent of *out: either may be
 * freed first. */
LEAT_EXPORT leat_status* leat_batches_open_fed(
    const leat_job* job, const char* options_json, const void* position,
    size_t position_bytes, const uint32_t* rows, size_t num_rows,
    leat_batches** out, leat_feed** feed);
/* Waits for a request: *count samples of *epoch, ascending, each once; *samples
 * lives until the next call. *count 0: no more requests. timeout_s < 0: wait
 * without limit. Code 4 (DEADLINE_EXCEEDED): call again. The functions of a
 * feed may be called from one thread at a time. */
LEAT_EXPORT leat_status* leat_feed_next(leat_feed* feed, double timeout_s,
                                        uint64_t* epoch,
                                        const uint64_t** samples,
                                        size_t* count);
/* Copies the fields. Code 3 (INVALID_ARGUMENT): they do not match the reader's
 * types, which fails the iterator too, or the sample is not requested. Code 1
 * (CANCELLED): no more requests. */
LEAT_EXPORT leat_status* leat_feed_supply(leat_feed* feed, uint64_t sample,
                                          const leat_field* fields,
                                          size_t num_fields);
/* Reports that the sample is unavailable: the iterator fails with this error
 * when it reaches the sample's step. */
LEAT_EXPORT void leat_feed_fail(leat_feed* feed, uint64_t sample, int code,
                                const char* message);
/* Fails the requests that are still open, and frees the feed. */
LEAT_EXPORT void leat_feed_free(leat_feed* feed);
/* As leat_job_sample, for such a job. */
LEAT_EXPORT leat_status* leat_job_sample_supplied(
    const leat_job* job, uint64_t index, const leat_field* fields,
    size_t num_fields, double timeout_s, leat_batch** out);

/* One array of a batch, which owns the memory. */
typedef struct leat_tensor {
  const char* name;     /* lives as long as the batch, like all pointers here */
  const char* dtype;    /* NumPy's name, or "bfloat16" */
  const int64_t* shape; /* rows first */
  size_t rank;
  void* data; /* 64-byte aligned, dense, row-major */
  size_t bytes;
  int32_t device; /* -1: host memory; N: memory of CUDA device N */
} leat_tensor;

/* Returns the epoch that the batch belongs to. */
LEAT_EXPORT uint64_t leat_batch_epoch(const leat_batch* batch);
/* Returns the batch's step in its epoch. */
LEAT_EXPORT uint64_t leat_batch_step(const leat_batch* batch);
/* Returns the rows of each tensor. */
LEAT_EXPORT uint32_t leat_batch_rows(const leat_batch* batch);
/* Returns the number of tensors. */
LEAT_EXPORT size_t leat_batch_num_tensors(const leat_batch* batch);
/* Returns a tensor. `index` < leat_batch_num_tensors. */
LEAT_EXPORT leat_tensor leat_batch_tensor(const leat_batch* batch,
                                          size_t index);
/* Returns the buffer to the pool: no pointer into it may be used afterwards,
 * and device work that uses it must have finished. With several owners, the
 * last one's call does so. */
LEAT_EXPORT void leat_batch_free(leat_batch* batch);
/* Adds an owner, which has to call leat_batch_free too. */
LEAT_EXPORT void leat_batch_retain(leat_batch* batch);
/* Declares that work on `stream` (CUstream or cudaStream_t) will use this
 * batch, which is in device memory; the last leat_batch_free then returns the
 * buffer after the work that is queued on the stream by then. If the stream is
 * being captured into a graph, now or then, the buffer is never reused, since
 * replays read it, and is freed after the iterator and all its batches; the
 * graph must not be replayed after that. Returns 0, and does nothing, if the
 * batch was declared for another stream before. */
LEAT_EXPORT int leat_batch_use_on_stream(leat_batch* batch, void* stream);

/* Returns a tensor as a DLManagedTensor*, or if `versioned` a
 * DLManagedTensorVersioned* (1.0). It is an owner of the batch until its
 * deleter is called, once, by any thread. `stream`: where the consumer uses
 * device memory, as for leat_batch_use_on_stream; NULL: the consumer waits for
 * its work by itself. Returns NULL if there is no such tensor, or the batch was
 * declared for another stream. */
LEAT_EXPORT void* leat_batch_dlpack(leat_batch* batch, size_t index,
                                    int versioned, void* stream);
/* A PyCapsule_Destructor for the result of leat_batch_dlpack in a capsule named
 * "dltensor" or "dltensor_versioned": calls the deleter, unless a consumer has
 * renamed the capsule. Needs a Python interpreter. */
LEAT_EXPORT void leat_dlpack_capsule_free(void* capsule);
/* Returns a new PyCapsule named "leat_slot", whose pointer is a void** to NULL,
 * for calls that create an object. Its destructor calls `release` with the
 * pointer stored there, unless it is NULL or the process was forked meanwhile;
 * it releases the GIL during the call if `waits` is not 0. Needs a Python
 * interpreter, and the GIL. */
LEAT_EXPORT void* leat_slot_capsule(void (*release)(void*), int waits);
/* Frees `batch`, which is in device memory, now, and returns the buffer after
 * the work that is queued on `stream` (CUstream or cudaStream_t; NULL: the
 * default stream). The batch is freed also when an error is returned. The
 * caller has to be its only owner. */
LEAT_EXPORT leat_status* leat_batch_release_on_stream(leat_batch* batch,
                                                      void* stream);

#ifdef __cplusplus
}
#endif
#endif /* LEAT_LEAT_H_ */

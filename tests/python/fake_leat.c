/* SPDX-License-Identifier: Apache-2.0
 *
 * leat.h without a service: batches that are computed on the spot. For tests of
 * the Python package's own duties: lifetimes, threads, signals, conversions.
 *
 * Row r of step s of epoch e is sample s * batch + r; its label is the sample,
 * its image's byte i is (7 * sample + i + e) mod 256. In a job whose name
 * begins with "floats" the image is float32, channels first: byte x of channel
 * c becomes (x - 10 c) / 4. A freed buffer is filled with 0xEE and is the first
 * to be reused, so an array that outlives its buffer is noticed at once. The
 * fake_ functions let tests inspect and control it. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/leat/leat.h"

enum { kSide = 8, kImageBytes = kSide * kSide * 3, kMaxFree = 256 };

struct leat_status {
  int code;
  char message[512];
};
struct leat_service {
  atomic_int users; /* calls in progress */
};
struct leat_job {
  char name[128];
  uint32_t batch;
  uint64_t samples;
  char last_batch[64];
  char decoder[64];
};
struct leat_batches {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool cancelled;
  leat_job job;
  uint64_t end, epoch, step; /* end: the first epoch that is not delivered */
  uint32_t* rows;
  size_t num_rows;
  bool ahead;
  bool heads; /* bytes where the job has floats */
  int device;
};
struct leat_batch {
  uint64_t epoch, step;
  uint32_t rows;
  char* data;
  size_t bytes;
  size_t image_bytes;
  bool floats;
  int device, owners;
  void* stream;
  int64_t image_shape[4];
  int64_t label_shape[1];
};

static pthread_mutex_t pool_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
  char* data;
  size_t bytes;
} free_buffers[kMaxFree];
static int num_free, num_live, num_made;
static double delay_s;
void fake_wait(const char* job, double seconds);
static atomic_int freed_in_use;
static atomic_int handles /* services and jobs */, iterators;
static uint64_t num_samples = 100;
static int fail_at_step = -1;
static int waits_begun, waits_ended;
static int num_devices; /* their memory is really the host's */
static void* last_stream;

LEAT_EXPORT int fake_live(void) {
  pthread_mutex_lock(&pool_mutex);
  const int live = num_live;
  pthread_mutex_unlock(&pool_mutex);
  return live;
}
LEAT_EXPORT int fake_made(void) { return num_made; }
LEAT_EXPORT int fake_handles(void) { return handles; }
LEAT_EXPORT int fake_iterators(void) { return iterators; }
LEAT_EXPORT int fake_freed_in_use(void) { return freed_in_use; }
LEAT_EXPORT void fake_set_delay(double seconds) { delay_s = seconds; }
LEAT_EXPORT void fake_set_samples(uint64_t samples) { num_samples = samples; }
LEAT_EXPORT void fake_set_devices(int devices) { num_devices = devices; }
/* The stream on which the last freed batch was used. */
LEAT_EXPORT void* fake_last_stream(void) { return last_stream; }
/* Counts over all iterators with "ahead". */
LEAT_EXPORT int fake_waits_begun(void) { return waits_begun; }
LEAT_EXPORT int fake_waits_ended(void) { return waits_ended; }
LEAT_EXPORT void fake_fail_at_step(int step) { fail_at_step = step; }

static leat_status* Error(int code, const char* message) {
  leat_status* status = calloc(1, sizeof *status);
  status->code = code;
  snprintf(status->message, sizeof status->message, "%s", message);
  return status;
}

/* The number after "key": in flat JSON text, quoted or not. */
static uint64_t Number(const char* json, const char* key, uint64_t otherwise) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char* at = strstr(json, quoted);
  if (at == NULL) return otherwise;
  at += strlen(quoted);
  while (*at == ' ' || *at == '"') ++at;
  return strtoull(at, NULL, 10);
}

static void Text(const char* json, const char* key, char* out, size_t size) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\": \"", key);
  const char* at = strstr(json, quoted);
  out[0] = 0;
  if (at == NULL) return;
  at += strlen(quoted);
  const size_t length = strcspn(at, "\"");
  snprintf(out, size, "%.*s", (int)length, at);
}

int leat_abi_version(void) { return LEAT_ABI_VERSION; }
const char* leat_version(void) { return "0.0.0-fake"; }
int leat_status_code(const leat_status* status) { return status->code; }
const char* leat_status_message(const leat_status* status) {
  return status->message;
}
void leat_status_free(leat_status* status) { free(status); }
void leat_string_free(char* string) { free(string); }

leat_status* leat_pipeline_check(const char* graph_json, char** schema_json) {
  if (strstr(graph_json, "\"op\": \"cast\"") != NULL)
    return Error(3, "node 1 (cast): expected something else");
  *schema_json = strdup("[]");
  return NULL;
}

leat_status* leat_connect(const char* options_json, leat_service** out) {
  if (strstr(options_json, "nobody:") != NULL)
    return Error(14, "no coordinator at nobody:1");
  *out = calloc(1, sizeof **out);
  ++handles;
  return NULL;
}
const char* leat_service_address(const leat_service* service) {
  return "unix-abstract:fake";
}
void leat_service_free(leat_service* service) {
  --handles;
  if (service->users != 0)
    ++freed_in_use;
  else
    free(service);
}
leat_status* leat_service_get(leat_service* service, const char* what,
                              const char* name, char** json) {
  char text[128];
  snprintf(text, sizeof text, "{\"what\": \"%s\", \"name\": \"%s\"}", what,
           name == NULL ? "" : name);
  *json = strdup(text);
  return NULL;
}
leat_status* leat_service_do(leat_service* service, const char* verb,
                             const char* name) {
  return Error(5, "no such job");
}

leat_status* leat_job_create(leat_service* service, const char* spec_json,
                             const char* relist, double timeout_s,
                             leat_job** out) {
  leat_job job = {.samples = num_samples};
  Text(spec_json, "name", job.name, sizeof job.name);
  Text(spec_json, "last_batch", job.last_batch, sizeof job.last_batch);
  Text(spec_json, "decoder_class", job.decoder, sizeof job.decoder);
  if (strcmp(job.decoder, "DECODER_CLASS_AUTO") == 0)
    strcpy(job.decoder, "DECODER_CLASS_NVJPEG");
  job.batch = (uint32_t)Number(spec_json, "batch", 1);
  if (strncmp(job.name, "error-", 6) == 0)
    return Error(atoi(job.name + 6), "node 0: the text of the service");
  if (strcmp(job.name, "slow") == 0) {
    ++service->users;
    fake_wait(job.name, delay_s);
    --service->users;
  }
  *out = malloc(sizeof job);
  **out = job;
  ++handles;
  return NULL;
}
leat_status* leat_job_get(leat_service* service, const char* name,
                          leat_job** out) {
  return Error(5, "no job of this name");
}
static bool IsFloats(const leat_job* job) {
  return strncmp(job->name, "floats", 6) == 0;
}
char* leat_job_json(const leat_job* job) {
  char text[1024], image[64];
  snprintf(image, sizeof image,
           IsFloats(job) ? "\"D_TYPE_FLOAT32\", \"shape\": [3, %d, %d]"
                         : "\"D_TYPE_UINT8\", \"shape\": [%d, %d, 3]",
           kSide, kSide);
  snprintf(text, sizeof text,
           "{\"job\": {\"spec\": {\"name\": \"%s\", \"batch\": %u, "
           "\"lastBatch\": \"%s\", \"decoderClass\": \"%s\"}, \"dataset\": "
           "{\"shards\": {\"numSamples\": %llu}}, \"schema\": [{\"name\": "
           "\"image\", \"dtype\": %s}, {\"name\": \"label\", "
           "\"dtype\": \"D_TYPE_INT32\"}]}, \"steps_per_epoch\": %llu, "
           "\"plan_hash\": \"0123456789abcdef\"}",
           job->name, job->batch, job->last_batch, job->decoder,
           (unsigned long long)job->samples, image,
           (unsigned long long)(job->samples / job->batch));
  return strdup(text);
}
leat_status* leat_job_step_of(const leat_job* job, const void* position,
                              size_t bytes, uint64_t* epoch, uint64_t* step) {
  unsigned long long e, s;
  if (sscanf(position, "fake %llu %llu", &e, &s) != 2)
    return Error(3, "position of another job");
  *epoch = e, *step = s;
  return NULL;
}
void leat_job_free(leat_job* job) {
  --handles;
  free(job);
}

static char* TakeBuffer(size_t bytes) {
  char* data = NULL;
  pthread_mutex_lock(&pool_mutex);
  while (num_free > 0 && free_buffers[num_free - 1].bytes < bytes)
    free(free_buffers[--num_free].data);
  if (num_free > 0) data = free_buffers[--num_free].data;
  ++num_live;
  if (data == NULL) ++num_made;
  pthread_mutex_unlock(&pool_mutex);
  return data != NULL ? data : aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static float Finished(int byte, int channel) {
  return (float)(byte - 10 * channel) / 4;
}

static leat_batch* MakeBatch(uint64_t epoch, uint64_t step, uint64_t first,
                             const uint32_t* rows, uint32_t num_rows,
                             bool floats, int device) {
  leat_batch* batch = calloc(1, sizeof *batch);
  const size_t image_bytes =
      (size_t)num_rows * kImageBytes * (floats ? sizeof(float) : 1);
  *batch = (leat_batch){.epoch = epoch,
                        .step = step,
                        .rows = num_rows,
                        .bytes = image_bytes + num_rows * sizeof(int32_t),
                        .image_bytes = image_bytes,
                        .floats = floats,
                        .device = device,
                        .owners = 1,
                        .image_shape = {num_rows, kSide, kSide, 3},
                        .label_shape = {num_rows}};
  if (floats) batch->image_shape[1] = 3, batch->image_shape[3] = kSide;
  batch->data = TakeBuffer(batch->bytes);
  int32_t* labels = (int32_t*)(batch->data + image_bytes);
  for (uint32_t i = 0; i < num_rows; ++i) {
    const uint64_t sample = first + (rows != NULL ? rows[i] : i);
    labels[i] = (int32_t)sample;
    for (int byte = 0; byte < kImageBytes; ++byte) {
      const unsigned char value = (unsigned char)(7 * sample + byte + epoch);
      const int channel = byte % 3, pixel = byte / 3;
      if (floats)
        ((float*)batch->data)[(size_t)i * kImageBytes +
                              channel * kSide * kSide + pixel] =
            Finished(value, channel);
      else
        batch->data[(size_t)i * kImageBytes + byte] = (char)value;
    }
  }
  return batch;
}

leat_status* leat_job_sample(const leat_job* job, uint64_t index,
                             double timeout_s, leat_batch** out) {
  *out = MakeBatch(0, 0, index, NULL, 1, IsFloats(job), -1);
  return NULL;
}

leat_status* leat_batches_open(const leat_job* job, const char* options_json,
                               const void* position, size_t bytes,
                               const uint32_t* rows, size_t num_rows,
                               leat_batches** out) {
  unsigned long long epoch = Number(options_json, "epoch", 0);
  unsigned long long step = Number(options_json, "step", 0);
  if (bytes != 0 && sscanf(position, "fake %llu %llu", &epoch, &step) != 2)
    return Error(3, "position of another job");
  const int device = (int)Number(options_json, "device", (uint64_t)-1);
  if (device >= num_devices) return Error(9, "no such CUDA device");
  leat_batches* batches = calloc(1, sizeof *batches);
  pthread_mutex_init(&batches->mutex, NULL);
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&batches->changed, &monotonic);
  batches->job = *job;
  const uint64_t epochs = Number(options_json, "epochs", 1);
  batches->end = epochs == 0 ? UINT64_MAX : epoch + epochs;
  batches->epoch = epoch;
  batches->step = step;
  batches->num_rows = num_rows;
  char epilogue[16];
  Text(options_json, "epilogue", epilogue, sizeof epilogue);
  batches->device = device;
  batches->ahead = strstr(options_json, "\"ahead\": true") != NULL;
  batches->heads = IsFloats(job) && strcmp(epilogue, "device") == 0;
  if (num_rows != 0) {
    batches->rows = malloc(num_rows * sizeof *rows);
    memcpy(batches->rows, rows, num_rows * sizeof *rows);
  }
  *out = batches;
  ++iterators;
  return NULL;
}

static struct timespec After(double seconds) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  at.tv_sec += (time_t)seconds;
  at.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
  if (at.tv_nsec >= 1000000000) ++at.tv_sec, at.tv_nsec -= 1000000000;
  return at;
}

/* Every batch takes delay_s; a shorter timeout is a DEADLINE_EXCEEDED. */
static leat_status* WaitFor(leat_batches* batches, double timeout_s) {
  const bool enough = timeout_s < 0 || timeout_s >= delay_s;
  const struct timespec until = After(enough ? delay_s : timeout_s);
  pthread_mutex_lock(&batches->mutex);
  while (!batches->cancelled &&
         pthread_cond_timedwait(&batches->changed, &batches->mutex, &until) !=
             ETIMEDOUT) {
  }
  const bool cancelled = batches->cancelled;
  pthread_mutex_unlock(&batches->mutex);
  if (cancelled) return Error(1, "cancelled");
  return enough ? NULL : Error(4, "not yet");
}

leat_status* leat_batches_next(leat_batches* batches, double timeout_s,
                               leat_batch** out) {
  leat_status* status = WaitFor(batches, timeout_s);
  if (status != NULL) return status;
  const leat_job* job = &batches->job;
  if (batches->epoch >= batches->end) {
    *out = NULL;
    return NULL;
  }
  if ((int)batches->step == fail_at_step)
    return Error(15, "cats/1.jpg: not a JPEG file");
  *out = MakeBatch(
      batches->epoch, batches->step, batches->step * job->batch, batches->rows,
      batches->rows == NULL ? job->batch : (uint32_t)batches->num_rows,
      IsFloats(job) && !batches->heads, batches->device);
  if (++batches->step == job->samples / job->batch)
    batches->step = 0, ++batches->epoch;
  return NULL;
}
void leat_batches_cancel(leat_batches* batches) {
  pthread_mutex_lock(&batches->mutex);
  batches->cancelled = true;
  pthread_cond_broadcast(&batches->changed);
  pthread_mutex_unlock(&batches->mutex);
}
void leat_batches_begin_wait(leat_batches* batches) {
  if (batches->ahead) ++waits_begun;
}
void leat_batches_end_wait(leat_batches* batches, int delivered) {
  if (batches->ahead && delivered) ++waits_ended;
}
size_t leat_batches_position(const leat_batches* batches, void* position,
                             size_t capacity) {
  return (size_t)snprintf(position, capacity, "fake %llu %llu",
                          (unsigned long long)batches->epoch,
                          (unsigned long long)batches->step);
}
size_t leat_batches_position_at(const leat_batches* batches, uint64_t epoch,
                                uint64_t step, void* position,
                                size_t capacity) {
  return (size_t)snprintf(position, capacity, "fake %llu %llu",
                          (unsigned long long)epoch, (unsigned long long)step);
}
leat_status* leat_job_rows_before(const leat_job* job, uint64_t epoch,
                                  uint64_t step, uint64_t* rows,
                                  size_t num_sources) {
  (void)job, (void)epoch, (void)step, (void)rows, (void)num_sources;
  return NULL;
}

leat_status* leat_job_samples(const leat_job* job, uint64_t epoch,
                              uint64_t step, const uint32_t* rows,
                              size_t num_rows, int64_t* samples) {
  if (step >= (job->samples + job->batch - 1) / job->batch)
    return Error(11, "no such step");
  for (size_t i = 0; i < (num_rows == 0 ? job->batch : num_rows); ++i) {
    const uint64_t sample = step * job->batch + (num_rows == 0 ? i : rows[i]);
    samples[i] = sample < job->samples ? (int64_t)sample : -1;
  }
  return NULL;
}
/* No job here has an external reader. */
leat_status* leat_batches_open_fed(const leat_job* job,
                                   const char* options_json,
                                   const void* position, size_t bytes,
                                   const uint32_t* rows, size_t num_rows,
                                   leat_batches** out, leat_feed** feed) {
  return Error(12, "not in the fake");
}
leat_status* leat_feed_next(leat_feed* feed, double timeout_s, uint64_t* epoch,
                            const uint64_t** samples, size_t* count) {
  return Error(12, "not in the fake");
}
leat_status* leat_feed_supply(leat_feed* feed, uint64_t sample,
                              const leat_field* fields, size_t num_fields) {
  return Error(12, "not in the fake");
}
void leat_feed_fail(leat_feed* feed, uint64_t sample, int code,
                    const char* message) {}
void leat_feed_free(leat_feed* feed) {}
leat_status* leat_job_sample_supplied(const leat_job* job, uint64_t index,
                                      const leat_field* fields,
                                      size_t num_fields, double timeout_s,
                                      leat_batch** out) {
  return Error(12, "not in the fake");
}
leat_epilogue leat_batches_epilogue(const leat_batches* batches, size_t index) {
  static float table[256 * 3];
  static const int64_t perm[] = {2, 0, 1};
  if (!batches->heads || index != 0) return (leat_epilogue){.channels = 1};
  for (int byte = 0; byte < 256; ++byte)
    for (int c = 0; c < 3; ++c) table[3 * byte + c] = Finished(byte, c);
  return (leat_epilogue){"float32", 3, table, sizeof table, perm, 3};
}
char* leat_batches_stats_json(const leat_batches* batches) {
  return strdup("{\"rows_per_s\": 1234.5, \"stall_fraction\": 0.25}");
}
void leat_batches_free(leat_batches* batches) {
  if (batches == NULL) return;
  --iterators;
  pthread_cond_destroy(&batches->changed);
  pthread_mutex_destroy(&batches->mutex);
  free(batches->rows);
  free(batches);
}

uint64_t leat_batch_epoch(const leat_batch* batch) { return batch->epoch; }
uint64_t leat_batch_step(const leat_batch* batch) { return batch->step; }
uint32_t leat_batch_rows(const leat_batch* batch) { return batch->rows; }
size_t leat_batch_num_tensors(const leat_batch* batch) { return 2; }
leat_tensor leat_batch_tensor(const leat_batch* batch, size_t index) {
  if (index == 0)
    return (leat_tensor){.name = "image",
                         .dtype = batch->floats ? "float32" : "uint8",
                         .shape = batch->image_shape,
                         .rank = 4,
                         .data = batch->data,
                         .bytes = batch->image_bytes,
                         .device = batch->device};
  return (leat_tensor){.name = "label",
                       .dtype = "int32",
                       .shape = batch->label_shape,
                       .rank = 1,
                       .data = batch->data + batch->image_bytes,
                       .bytes = batch->rows * sizeof(int32_t),
                       .device = batch->device};
}
void leat_batch_retain(leat_batch* batch) {
  __atomic_add_fetch(&batch->owners, 1, __ATOMIC_SEQ_CST);
}
int leat_batch_use_on_stream(leat_batch* batch, void* stream) {
  if (batch->stream != NULL && batch->stream != stream) return 0;
  batch->stream = stream;
  return 1;
}
void leat_batch_free(leat_batch* batch) {
  if (batch == NULL) return;
  if (__atomic_sub_fetch(&batch->owners, 1, __ATOMIC_SEQ_CST) != 0) return;
  last_stream = batch->stream;
  memset(batch->data, 0xEE, batch->bytes);
  pthread_mutex_lock(&pool_mutex);
  --num_live;
  if (num_free < kMaxFree) {
    free_buffers[num_free].data = batch->data;
    free_buffers[num_free++].bytes = batch->bytes;
  }
  pthread_mutex_unlock(&pool_mutex);
  free(batch);
}
leat_status* leat_batch_release_on_stream(leat_batch* batch, void* stream) {
  leat_batch_free(batch);
  return Error(9, "the batch is in host memory");
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * The fake's answers about records and rows: records of 10 bytes, ten per
 * file, and two draws in each row. Its wait for a listing. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client/leat/leat.h"

enum { kRecordText = 256, kRowText = 1024, kMaxRows = 1024 };

static int PutRecord(char* text, int64_t sample) {
  return snprintf(text, kRecordText,
                  "{\"sample\": %lld, \"root\": \"/data\", \"file\": "
                  "\"%lld.tar\", \"key\": \"\", \"offset\": %lld, \"size\": "
                  "10, \"index\": %lld, \"shard\": 0, \"index_in_shard\": "
                  "%lld}",
                  (long long)sample, (long long)sample / 10,
                  (long long)sample % 10 * 10, (long long)sample % 10,
                  (long long)sample);
}

static void (*tell)(void* context, const char* job, const char* waits_for);

void leat_service_on_waiting(leat_service* service,
                             void (*to)(void* context, const char* job,
                                        const char* waits_for),
                             void* context) {
  tell = to;
}
/* Waits as if a dataset were listed for the job. */
void fake_wait(const char* job, double seconds) {
  const struct timespec delay = {
      .tv_sec = (time_t)seconds,
      .tv_nsec = (long)((seconds - (time_t)seconds) * 1e9)};
  nanosleep(&delay, NULL);
  tell(NULL, job, "worker w1 lists /data: 3 files so far");
}

/* Sample 50 is a packed row of three documents, of which one is listed. */
leat_status* leat_job_record(const leat_job* job, uint64_t index,
                             uint64_t first_document, double timeout_s,
                             char** json) {
  *json = malloc(2 * kRecordText);
  const int end = PutRecord(*json, (int64_t)index);
  if (index != 50) return NULL;
  snprintf(*json + end - 1, kRecordText,
           ", \"documents\": {\"count\": 3, \"first\": %llu, \"listed\": "
           "[{\"document\": 7, \"root\": \"/data\", \"file\": \"7.bin\", "
           "\"key\": \"\", \"index\": 2, \"begin\": 4, \"elements\": 6, "
           "\"row_begin\": 1, \"document_elements\": 10}]}}",
           (unsigned long long)first_document);
  return NULL;
}

leat_status* leat_job_explain(const leat_job* job, uint64_t epoch,
                              uint64_t step, const uint32_t* rows,
                              size_t num_rows, int read_records,
                              double timeout_s, char** json) {
  int64_t samples[kMaxRows];
  for (size_t i = 0; i < kMaxRows; ++i) samples[i] = -2;
  leat_status* const status =
      leat_job_samples(job, epoch, step, rows, num_rows, samples);
  if (status != NULL) return status;
  char* const text = *json = malloc(kMaxRows * kRowText);
  char* at = text;
  *at++ = '[';
  for (size_t i = 0; i < kMaxRows && samples[i] != -2; ++i) {
    at += sprintf(at, "%s{\"row\": %u, \"padding\": false, \"pass\": %llu",
                  i == 0 ? "" : ", ", num_rows == 0 ? (unsigned)i : rows[i],
                  (unsigned long long)epoch);
    if (samples[i] >= 0) {
      at += sprintf(at, ", \"record\": ");
      at += PutRecord(at, samples[i]);
    }
    at += sprintf(at,
                  ", \"draws\": [{\"node\": 3, \"op\": \"coin_flip\", "
                  "\"name\": \"flip.horizontal\", \"values\": [1.0], "
                  "\"text\": \"\", \"unknown\": \"\"}, {\"node\": 4, \"op\": "
                  "\"random_resized_crop\", \"name\": \"\", \"values\": %s, "
                  "\"text\": \"\", \"unknown\": \"%s\"}]}",
                  read_records ? "[1.0, 2.0, 30.0, 40.0]" : "[]",
                  read_records ? "" : "not read");
  }
  sprintf(at, "]");
  return NULL;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Pulls batches of a folder of photos from a private service.
 *
 *   batches FOLDER [DAEMON_DIR]
 */
#include <leat/leat.h>
#include <stdio.h>
#include <string.h>

static int failed(const char* what, leat_status* status) {
  if (status == NULL) return 0;
  fprintf(stderr, "%s: %s (code %d)\n", what, leat_status_message(status),
          leat_status_code(status));
  leat_status_free(status);
  return 1;
}

static void print_batch(const leat_batch* batch) {
  printf("epoch %llu step %llu:", (unsigned long long)leat_batch_epoch(batch),
         (unsigned long long)leat_batch_step(batch));
  for (size_t i = 0; i < leat_batch_num_tensors(batch); ++i) {
    const leat_tensor tensor = leat_batch_tensor(batch, i);
    printf(" %s %s (", tensor.name, tensor.dtype);
    for (size_t axis = 0; axis < tensor.rank; ++axis)
      printf("%s%lld", axis == 0 ? "" : ", ", (long long)tensor.shape[axis]);
    printf(")");
  }
  printf("\n");
}

static int run(leat_job* job) {
  leat_batches* batches = NULL;
  if (failed("open", leat_batches_open(job, "{\"epochs\": 1}", NULL, 0, NULL, 0,
                                       &batches)))
    return 1;
  int result = 0;
  while (result == 0) {
    leat_batch* batch = NULL;
    result = failed("next", leat_batches_next(batches, 60, &batch));
    if (batch == NULL) break;
    print_batch(batch);
    leat_batch_free(batch);
  }
  leat_batches_free(batches);
  return result;
}

static const char kSpec[] =
    "{\"name\": \"example\", \"batch\": 8, \"seed\": 7, \"pipeline\": {"
    "\"nodes\": ["
    "{\"op\": \"readers.image_folder\", \"args\": {\"path\": "
    "{\"string_value\": \"%s\"}}},"
    "{\"op\": \"decode\", \"inputs\": [{\"node\": 0}]},"
    "{\"op\": \"resize\", \"inputs\": [{\"node\": 1}], \"args\": {\"size\": "
    "{\"ints_value\": {\"values\": [64, 64]}}}}],"
    "\"outputs\": [{\"name\": \"image\", \"ref\": {\"node\": 2}},"
    "{\"name\": \"label\", \"ref\": {\"node\": 0, \"output\": 1}}]}}";

int main(int argc, char** argv) {
  if (argc < 2 || strpbrk(argv[1], "\"\\") != NULL) {
    fprintf(stderr, "usage: batches FOLDER [DAEMON_DIR]\n");
    return 2;
  }
  char options[4096] = "{}";
  char spec[8192];
  if (argc > 2)
    snprintf(options, sizeof options, "{\"daemon_dir\": \"%s\"}", argv[2]);
  snprintf(spec, sizeof spec, kSpec, argv[1]);

  leat_service* service = NULL;
  leat_job* job = NULL;
  int result = failed("connect", leat_connect(options, &service));
  if (result == 0)
    result = failed("create", leat_job_create(service, spec, NULL, 60, &job));
  if (result == 0) result = run(job);
  leat_job_free(job);
  leat_service_free(service);
  return result;
}

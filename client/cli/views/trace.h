// SPDX-License-Identifier: Apache-2.0
//
// `leat trace`: what workers and consumers did in a while, in the JSON form of
// Chrome's trace events, which Perfetto (ui.perfetto.dev) and Chrome open.
//
// A process of the trace is a worker or a consumer. On a worker's track of a
// thread are the rows that it computed, with what each was made of; on tracks
// "groups" are groups of rows from asked to sent, with their wait and their
// sending, as many tracks as groups overlap. So events of a track are apart or
// inside of each other. A consumer has tracks with its trainer's waits, with
// the steps of its window, and with what it asked workers and received for
// that; and one with what it reported of the while: the share of it in which it
// waited for batches, and in which it copied rows. One of an older version has
// that alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/base/fields.h"

namespace leat::cli {

// What was collected (Connection::CollectSpans).
struct Collected {
  std::string job;
  Json workers;  // leat::Job::CollectSpans
  // leat.v1.ListConsumersResponse, before and after.
  Json before, after;
  int64_t begin_ns = 0, end_ns = 0;  // between them, since 1970
};

struct TraceFile {
  std::string json;
  size_t spans = 0, workers = 0, consumers = 0;
  uint64_t dropped = 0;
  std::vector<std::string> errors;  // of those that did not answer
};

TraceFile MakeTrace(const Collected& collected);

}  // namespace leat::cli

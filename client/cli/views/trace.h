// SPDX-License-Identifier: Apache-2.0
//
// `leat trace`: shows what workers and consumers did during some time, in the
// JSON form of Chrome's trace events, which Perfetto (ui.perfetto.dev) and
// Chrome open.
//
// A process of the trace is a worker or a consumer. A worker's track per thread
// has the rows that it computed, each with its parts; its tracks "groups" have
// groups of rows from request to sending, with their wait and their sending, on
// as many tracks as groups overlap. The events of a track are therefore
// disjoint or nested. A consumer has tracks with its trainer's waits, with the
// steps of its window, and with its requests to workers and the rows received
// for them; and one with its reports: the share of the time in which it waited
// for batches, and in which it copied rows. A consumer of an older version has
// only that track.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/base/fields.h"

namespace leat::cli {

// The collected data (Connection::CollectSpans).
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

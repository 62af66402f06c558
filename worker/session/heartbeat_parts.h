// SPDX-License-Identifier: Apache-2.0
//
// Parts of a heartbeat, as messages.
#pragma once

#include <vector>

#include "core/clock.h"
#include "leat/v1/coordinator.pb.h"
#include "worker/cache/form_account.h"
#include "worker/cache/idle_forms.h"
#include "worker/compute/histogram.h"
#include "worker/job/bad_samples.h"
#include "worker/job/storage_failures.h"
#include "worker/scheduler/scheduler.h"
#include "worker/serving/record_client.h"
#include "worker/source/disk_cache/cache_shares.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

void AddFailures(const std::vector<StorageFailures::Failure>& failures,
                 v1::Heartbeat* heartbeat);

// Adds those of the first 32 that have something, or were asked for.
void AddCached(const std::vector<CachedDatasetStats>& datasets,
               google::protobuf::RepeatedPtrField<v1::CachedDataset>* to);

void AddStorage(const StorageCounters& from, v1::WorkerStats* stats);

// Records that it took from other workers, and gave them.
void AddPeerRecords(const RecordClient::Counters& taken, uint64_t given,
                    v1::WorkerStats* stats);

void AddLatency(const Histogram::Summary& from, v1::LatencySummary* to);

// What forms have saved, and what making them may cost.
void AddFormAccount(const FormAccount::Totals& from, v1::WorkerStats* stats);

// Forms that were made while no row was owed.
void AddIdleForms(const IdleForms::Stats& from, v1::WorkerStats* stats);

// Rows that several streams asked for.
void AddSharedRows(const Scheduler::Stats& rows, v1::WorkerStats* stats);

// The 64 jobs with most rows.
void AddJobs(const Scheduler::Stats& rows, v1::WorkerStats* stats);

// When the worker's certificate expires.
void AddExpiry(WallTime expiry, v1::WorkerStats* stats);

// Moves what was added since the last heartbeat into this one.
void TakeBadSamples(BadSamples* from, v1::Heartbeat* heartbeat);

// Gives back the bad samples of a heartbeat that was lost, for the next one.
void ReturnBadSamples(const v1::Heartbeat& heartbeat, BadSamples* to);

}  // namespace leat::worker

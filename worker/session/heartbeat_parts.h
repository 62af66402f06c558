// SPDX-License-Identifier: Apache-2.0
//
// Fills parts of heartbeat messages.
#pragma once

#include <vector>

#include "core/cluster/certificate_term.h"
#include "leat/v1/coordinator.pb.h"
#include "rpc/process/machine.h"
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

// Adds the first 32 datasets that have entries, or were read.
void AddCached(const std::vector<CachedDatasetStats>& datasets,
               google::protobuf::RepeatedPtrField<v1::CachedDataset>* to);

void AddStorage(const StorageCounters& from, v1::WorkerStats* stats);

// Adds records taken from other workers, and given to them.
void AddPeerRecords(const RecordClient::Counters& taken, uint64_t given,
                    v1::WorkerStats* stats);

void AddLatency(const Histogram::Summary& from, v1::LatencySummary* to);

// Adds the time that forms have saved, and the time that making them may cost.
void AddFormAccount(const FormAccount::Totals& from, v1::WorkerStats* stats);

// Adds how often the worker's quota of processors was used up.
void AddQuota(const rpc::QuotaUse& from, v1::WorkerStats* stats);

// Adds forms that were made while no row was owed.
void AddIdleForms(const IdleForms::Stats& from, v1::WorkerStats* stats);

// Adds rows that several streams requested.
void AddSharedRows(const Scheduler::Stats& rows, v1::WorkerStats* stats);

// Adds the 64 jobs with the most rows.
void AddJobs(const Scheduler::Stats& rows, v1::WorkerStats* stats);

// Adds the times of the worker's certificate.
void AddCertificate(const CertificateTerm& term, v1::WorkerStats* stats);

// Moves the bad samples added since the last heartbeat into this one.
void TakeBadSamples(BadSamples* from, v1::Heartbeat* heartbeat);

// Returns whether the heartbeat had room for all counted bad samples.
bool TellsAllBadSamples(const v1::Heartbeat& heartbeat);

// Gives back the bad samples of a heartbeat that was lost, for the next one.
void ReturnBadSamples(const v1::Heartbeat& heartbeat, BadSamples* to);

}  // namespace leat::worker

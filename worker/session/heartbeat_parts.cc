// SPDX-License-Identifier: Apache-2.0
#include "worker/session/heartbeat_parts.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "core/utf8.h"
#include "rpc/wire/times.h"

namespace leat::worker {
namespace {

constexpr size_t kMostJobs = 64;

constexpr int kCachedShown = 32;  // datasets of a cache in one heartbeat
constexpr size_t kCountedAtOnce = 16'384;  // bad samples in one heartbeat

}  // namespace

void AddFailures(const std::vector<StorageFailures::Failure>& failures,
                 v1::Heartbeat* heartbeat) {
  for (const StorageFailures::Failure& each : failures) {
    v1::StorageFailure& proto = *heartbeat->add_storage_failures();
    proto.set_root(each.root);
    proto.set_error(each.error);
    for (const Digest& fingerprint : each.fingerprints)
      proto.add_fingerprints(fingerprint.data(), fingerprint.size());
    *proto.mutable_lasting() = rpc::ToProto(each.lasting);
  }
}

void AddCached(const std::vector<CachedDatasetStats>& datasets,
               google::protobuf::RepeatedPtrField<v1::CachedDataset>* to) {
  for (const CachedDatasetStats& each : datasets) {
    if (to->size() >= kCachedShown) return;
    if (each.bytes + each.hits + each.misses == 0) continue;
    v1::CachedDataset& proto = *to->Add();
    proto.set_dataset(each.name);
    proto.set_dataset_id(each.id);
    proto.set_bytes(each.bytes);
    proto.set_entries(each.entries);
    proto.set_hits_total(each.hits);
    proto.set_misses_total(each.misses);
    for (const CachedFormStats& form : each.forms) {
      v1::CachedForm& of = *proto.add_forms();
      of.set_form(std::string(form.form));
      of.set_bytes(form.bytes);
      of.set_entries(form.entries);
      of.set_hits_total(form.hits);
      of.set_saved_ms_total(form.saved_ms);
    }
  }
}

void AddFormAccount(const FormAccount::Totals& from, v1::WorkerStats* stats) {
  const auto ms = [](Duration time) {
    return static_cast<uint64_t>(std::max<int64_t>(0, time.count()) / 1000000);
  };
  stats->set_forms_saved_ms_total(ms(from.saved));
  stats->set_forms_lent_ms_total(ms(from.lent));
  stats->set_forms_spent_ms_total(ms(from.spent));
}

void AddIdleForms(const IdleForms::Stats& from, v1::WorkerStats* stats) {
  stats->set_idle_forms_made_total(from.made);
  stats->set_idle_forms_given_up_total(from.given_up);
  stats->set_idle_forms_ms_total(
      static_cast<uint64_t>(from.took.count() / 1000000));
  stats->set_idle_forms_waiting(from.waiting);
}

void AddQuota(const rpc::QuotaUse& from, v1::WorkerStats* stats) {
  stats->set_quota_periods_total(from.periods);
  stats->set_quota_used_up_total(from.used_up);
}

void AddSharedRows(const Scheduler::Stats& rows, v1::WorkerStats* stats) {
  stats->set_rows_shared_total(rows.rows_shared_total);
  stats->set_shared_rows_bytes(rows.shared_bytes);
}

void AddJobs(const Scheduler::Stats& rows, v1::WorkerStats* stats) {
  std::vector<const Scheduler::JobRows*> most;
  for (const Scheduler::JobRows& job : rows.jobs) most.push_back(&job);
  std::stable_sort(most.begin(), most.end(), [](auto* a, auto* b) {
    return a->rows_total > b->rows_total;
  });
  most.resize(std::min(most.size(), kMostJobs));
  for (const Scheduler::JobRows* job : most) {
    v1::JobRows& proto = *stats->add_job_rows();
    proto.set_job(job->job);
    proto.set_rows_total(job->rows_total);
    proto.set_rows_shared_total(job->rows_shared_total);
    proto.set_input_ns_total(job->input_ns);
    proto.set_thread_ns_total(job->thread_ns);
    proto.set_output_ns_total(job->output_ns);
    proto.set_read_ns_total(job->read_ns);
    proto.set_decode_ns_total(job->decode_ns);
    proto.set_fetch_ns_total(job->fetch_ns);
    proto.set_sending_ns_total(job->sending_ns_total);
    proto.set_groups_unsent(job->groups_unsent);
    proto.set_streams(job->streams);
  }
}

void AddStorage(const StorageCounters& from, v1::WorkerStats* stats) {
  stats->set_storage_requests_total(from.requests);
  stats->set_storage_retries_total(from.retries);
  stats->set_storage_hedges_total(from.hedges);
  stats->set_disk_cache_hits_total(from.disk_hits);
  stats->set_disk_cache_misses_total(from.disk_misses);
  stats->set_disk_cache_bytes(from.disk_bytes);
  AddCached(from.disk_datasets, stats->mutable_disk_cached_datasets());
  for (const std::string& why : from.waits)
    stats->add_storage_waits(ToUtf8(why));
}

void AddPeerRecords(const RecordClient::Counters& taken, uint64_t given,
                    v1::WorkerStats* stats) {
  stats->set_peer_records_found_total(taken.found);
  stats->set_peer_records_missing_total(taken.missing);
  stats->set_peer_records_failed_total(taken.failed);
  stats->set_peer_records_refused_total(taken.refused);
  stats->set_peer_records_given_total(given);
}

void AddLatency(const Histogram::Summary& from, v1::LatencySummary* to) {
  to->set_count(from.count);
  to->set_mean_ms(from.mean_ms);
  to->set_p50_ms(from.p50_ms);
  to->set_p95_ms(from.p95_ms);
  to->set_max_ms(from.max_ms);
}

void AddCertificate(const CertificateTerm& term, v1::WorkerStats* stats) {
  *stats->mutable_certificate_expires_at() = rpc::ToProto(term.end);
  if (term.begin)
    *stats->mutable_certificate_begins_at() = rpc::ToProto(*term.begin);
}

void TakeBadSamples(BadSamples* from, v1::Heartbeat* heartbeat) {
  for (const auto& [job, samples] : from->Take()) {
    v1::JobBadSamples& bad = *heartbeat->add_bad_samples();
    bad.set_job(job);
    for (const auto& [sample, entry] : samples) {
      v1::BadSample& proto = *bad.add_samples();
      proto.set_sample(sample);
      proto.set_record(entry.record);
      proto.set_reason(entry.reason);
      proto.set_count(entry.count);
    }
  }
  for (const auto& [plan, samples] : from->TakeCounted(kCountedAtOnce)) {
    v1::CountedBadSamples& counted = *heartbeat->add_counted_bad_samples();
    counted.set_plan_hash(plan.data(), plan.size());
    counted.mutable_samples()->Add(samples.begin(), samples.end());
  }
}

bool TellsAllBadSamples(const v1::Heartbeat& heartbeat) {
  size_t counted = 0;
  for (const v1::CountedBadSamples& each : heartbeat.counted_bad_samples())
    counted += static_cast<size_t>(each.samples_size());
  return counted < kCountedAtOnce;
}

void ReturnBadSamples(const v1::Heartbeat& heartbeat, BadSamples* to) {
  BadSamples::Report report;
  for (const v1::JobBadSamples& bad : heartbeat.bad_samples())
    for (const v1::BadSample& sample : bad.samples())
      report[bad.job()][sample.sample()] = {.record = sample.record(),
                                            .reason = sample.reason(),
                                            .count = sample.count()};
  to->Return(report);
  BadSamples::Counted counted;
  for (const v1::CountedBadSamples& from : heartbeat.counted_bad_samples()) {
    Digest plan;
    std::copy_n(from.plan_hash().begin(), plan.size(), plan.begin());
    counted[plan].insert(from.samples().begin(), from.samples().end());
  }
  to->ReturnCounted(counted);
}

}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
//
// The current state, as messages for operators and viewers.
#include <utility>

#include "rpc/wire/messages.h"
#include "rpc/wire/times.h"
#include "server/views/messages.h"

namespace leat::server {

v1::AccessTokenInfo ToProto(const AccessToken& token) {
  v1::AccessTokenInfo proto;
  proto.set_id(token.id);
  proto.set_name(token.name);
  proto.set_role(std::string(Name(token.role)));
  *proto.mutable_created_at() = rpc::ToProto(token.created_at);
  if (token.expires_at)
    *proto.mutable_expires_at() = rpc::ToProto(*token.expires_at);
  return proto;
}

v1::Pool ToProto(const PoolView& view) {
  v1::Pool proto;
  proto.set_name(view.name);
  proto.set_min(view.bounds.min);
  proto.set_max(view.bounds.max);
  proto.set_desired(view.target.desired);
  proto.set_workers(static_cast<uint32_t>(view.workers));
  proto.set_draining(static_cast<uint32_t>(view.draining));
  proto.set_reason(view.target.reason);
  proto.mutable_drain()->Assign(view.target.drain.begin(),
                                view.target.drain.end());
  proto.set_version(view.version);
  proto.set_demand_rows_per_s(view.target.demand_rows_per_s);
  return proto;
}

v1::WorkerInfo ToProto(const WorkerView& view) {
  const WorkerRegistration& from = *view.registration;
  v1::WorkerInfo proto;
  proto.set_name(from.name);
  proto.set_address(from.address);
  proto.set_state(static_cast<v1::WorkerState>(view.state));
  proto.set_version(from.version);
  proto.set_threads(from.threads);
  for (DecoderClass has : from.decoder_classes)
    proto.add_decoder_classes(static_cast<v1::DecoderClass>(has));
  proto.mutable_abilities()->Assign(from.abilities.begin(),
                                    from.abilities.end());
  for (const auto& [name, why] : from.lacked) {
    v1::LackedAbility& lacked = *proto.add_lacked();
    lacked.set_name(name);
    lacked.set_why(why);
  }
  proto.set_weight(view.weight);
  proto.set_shards_owned(view.shards_owned);
  if (view.report.stats != nullptr) *proto.mutable_stats() = *view.report.stats;
  *proto.mutable_joined_at() = rpc::ToProto(view.joined_at);
  *proto.mutable_last_heartbeat_at() = rpc::ToProto(view.last_heartbeat_at);
  proto.set_host(from.host);
  proto.set_pid(from.pid);
  proto.set_pool(from.pool);
  proto.mutable_devices()->Assign(from.devices.begin(), from.devices.end());
  for (const Decoders& own : from.decoders)
    *proto.add_decoders() = ToProto(own);
  proto.set_decoders_differ(view.decoders_differ);
  proto.set_public_key(from.public_key);
  proto.set_not_confined(from.not_confined);
  proto.set_insecure_listener(from.insecure_listener);
  proto.mutable_storage_failures()->Assign(view.failures.begin(),
                                           view.failures.end());
  return proto;
}

std::string NamesOf(std::span<const DatasetInfo> datasets) {
  if (datasets.size() == 1) return datasets[0].name;
  return fmt::format("{} and {} more", datasets[0].name, datasets.size() - 1);
}

v1::JobSummary ToProto(const JobView& view) {
  v1::JobSummary proto;
  *proto.mutable_job() = rpc::ShownToProto(*view.info);
  if (IsMixture(view.info->spec)) {
    v1::Dataset* const dataset = proto.mutable_job()->mutable_dataset();
    dataset->set_name(NamesOf(view.info->datasets));
    dataset->mutable_shards()->set_num_samples(NumSamples(*view.info));
  }
  *proto.mutable_created_at() = rpc::ToProto(view.created_at);
  proto.set_created_by(view.created_by);
  *proto.mutable_last_used_at() = rpc::ToProto(view.last_used_at);
  proto.set_consumers(view.consumers);
  proto.set_epoch(view.epoch);
  proto.set_step(view.step);
  if (view.position_at)
    *proto.mutable_position_at() = rpc::ToProto(*view.position_at);
  proto.set_steps_per_epoch(view.steps_per_epoch);
  proto.set_rows_per_s(view.rows_per_s);
  proto.set_stall_fraction(view.stall_fraction);
  proto.set_bad_samples_total(view.bad_samples_total);
  proto.mutable_bad_samples()->Assign(view.bad_samples.begin(),
                                      view.bad_samples.end());
  proto.set_bad_samples_different(view.bad_samples_different);
  proto.set_bad_samples_allowed(view.bad_samples_allowed);
  proto.set_failure(view.failure);
  proto.set_gpu_use(view.not_on_gpu.empty() ? v1::GPU_USE_YES : v1::GPU_USE_NO);
  proto.set_gpu_reason(view.not_on_gpu);
  if (view.decoders) *proto.mutable_decoders() = ToProto(*view.decoders);
  proto.set_limited_by(view.limited_by);
  if (view.limited_by_seen)
    proto.mutable_limited_by_seen()->set_seconds(*view.limited_by_seen /
                                                 std::chrono::seconds(1));
  proto.set_shared_fraction(view.shared_fraction);
  return proto;
}

v1::DatasetSummary ToProto(const DatasetView& view) {
  v1::DatasetSummary proto;
  *proto.mutable_dataset() = rpc::ToProto(*view.info);
  if (view.indexed_at != WallTime{})
    *proto.mutable_indexed_at() = rpc::ToProto(view.indexed_at);
  proto.set_state(view.state);
  proto.set_failure(view.failure);
  proto.mutable_jobs()->Assign(view.jobs.begin(), view.jobs.end());
  proto.set_index_bytes(view.index_bytes);
  if (view.looked_at)
    *proto.mutable_looked_at() = rpc::ToProto(*view.looked_at);
  proto.set_looked_entries(view.looked_entries);
  proto.set_looked_total(view.looked_total);
  proto.mutable_changes()->Assign(view.changes.begin(), view.changes.end());
  for (const PassedOver& each : view.passed_over) {
    v1::PassedOver* to = proto.add_passed_over();
    to->set_what(each.what);
    to->set_count(each.count);
    to->set_first(each.first);
  }
  proto.set_walked(view.walked);
  proto.set_walked_total(view.walked_total);
  proto.set_files(view.files);
  return proto;
}

v1::ConsumerInfo ToProto(const ConsumerView& view) {
  v1::ConsumerInfo proto;
  proto.set_consumer(view.opening.consumer);
  v1::ConsumerStats* stats = proto.mutable_stats();
  if (view.report.stats != nullptr) {
    *stats = *view.report.stats;
  } else {
    stats->set_host(view.opening.host);
    stats->set_pid(view.opening.pid);
  }
  stats->set_job(view.job);
  *proto.mutable_opened_at() = rpc::ToProto(view.opened_at);
  *proto.mutable_last_report_at() = rpc::ToProto(view.last_report_at);
  return proto;
}

v1::Finding ToProto(const Finding& finding) {
  v1::Finding proto;
  proto.set_code(finding.code);
  proto.set_severity(finding.severity);
  proto.set_summary(finding.summary);
  proto.set_remedy(finding.remedy);
  proto.mutable_subjects()->Assign(finding.subjects.begin(),
                                   finding.subjects.end());
  proto.set_muted(finding.muted);
  if (finding.muted_until)
    *proto.mutable_muted_until() = rpc::ToProto(*finding.muted_until);
  return proto;
}

v1::GetBottleneckResponse ToProto(const BottleneckView& view) {
  v1::GetBottleneckResponse proto;
  proto.set_job(view.job);
  proto.set_limit(std::string(Name(view.found.limit)));
  proto.set_subject(view.found.subject);
  proto.set_summary(view.found.summary);
  for (const Figure& from : view.found.figures) {
    v1::Figure& figure = *proto.add_figures();
    figure.set_what(from.what);
    figure.set_value(from.value);
    figure.set_unit(from.unit);
  }
  proto.set_advice(view.found.advice);
  proto.mutable_seen()->set_seconds(view.seen / std::chrono::seconds(1));
  proto.set_workers(view.workers);
  proto.set_consumers(view.consumers);
  return proto;
}

v1::WatchEventsResponse ToProto(const EventPage& page) {
  v1::WatchEventsResponse proto;
  for (const auto& event : page.events) {
    v1::ClusterEvent* to = proto.add_events();
    to->set_sequence(event->sequence);
    *to->mutable_at() = rpc::ToProto(event->at);
    to->set_type(event->type);
    to->set_severity(event->severity);
    to->mutable_subjects()->Assign(event->subjects.begin(),
                                   event->subjects.end());
    to->set_message(event->message);
  }
  proto.set_sequence(page.sequence);
  proto.set_missed(page.missed);
  return proto;
}

}  // namespace leat::server

// SPDX-License-Identifier: Apache-2.0
#include "server/views/messages.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/status.h"
#include "google/protobuf/unknown_field_set.h"
#include "rpc/access/worker_key.h"
#include "rpc/call/auth.h"
#include "rpc/wire/block_messages.h"
#include "rpc/wire/messages.h"
#include "server/membership/assignments.h"
#include "server/membership/kept_shares.h"

namespace leat::server {

constexpr size_t kMaxText = 1024;

// Valid UTF-8 is kept so by cutting before a lead byte.
std::string Cut(const std::string& text) {
  if (text.size() <= kMaxText) return text;
  size_t end = kMaxText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return text.substr(0, end);
}

namespace {

constexpr int kMaxBadSamples = 100;     // of one job in one heartbeat
constexpr int kMaxJobs = 1000;          // in one heartbeat
constexpr size_t kMaxCounted = 16'384;  // samples in one heartbeat
constexpr size_t kMaxUnknown = 4096;    // bytes of unknown fields of a message

double Finite(double value) {
  return std::isfinite(value) && value > 0 ? value : 0;
}

// Makes a report fit to be kept: texts are cut, lists bounded, numbers that are
// not finite, or negative, become 0; fields that this version does not know
// stay unless they are large.
void Sanitise(google::protobuf::Message* message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  if (reflection.GetUnknownFields(*message).SpaceUsedLong() > kMaxUnknown)
    reflection.MutableUnknownFields(message)->Clear();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated()) {
      while (reflection.FieldSize(*message, field) > kMaxDevices)
        reflection.RemoveLast(message, field);
      for (int i = 0; i < reflection.FieldSize(*message, field); ++i)
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE)
          Sanitise(reflection.MutableRepeatedMessage(message, field, i));
        else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
          reflection.SetRepeatedString(
              message, field, i,
              Cut(reflection.GetRepeatedString(*message, field, i)));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      Sanitise(reflection.MutableMessage(message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      std::string text = reflection.GetString(*message, field);
      if (text.size() > kMaxText)
        reflection.SetString(message, field, Cut(text));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      reflection.SetDouble(message, field,
                           Finite(reflection.GetDouble(*message, field)));
    }
  }
}

// At most a day: how long exactly more lasts is of no use to anybody.
Duration LastingOf(const google::protobuf::Duration& proto) {
  constexpr int64_t kDay = 86'400;
  return std::chrono::seconds(std::clamp<int64_t>(proto.seconds(), 0, kDay)) +
         Duration(std::clamp(proto.nanos(), 0, 999'999'999));
}

v1::BadSample ToProto(const BadSample& sample) {
  v1::BadSample proto;
  proto.set_sample(sample.sample);
  proto.set_record(sample.record);
  proto.set_reason(sample.reason);
  proto.set_count(sample.count);
  return proto;
}

// Hostile ones are taken for 1970 and 2200: nanoseconds end in 2262.
WallTime TimeOf(const google::protobuf::Timestamp& proto) {
  constexpr int64_t kLast = 7'258'118'400;
  return WallTime(std::chrono::duration_cast<WallTime::duration>(
      std::chrono::seconds(std::clamp<int64_t>(proto.seconds(), 0, kLast)) +
      std::chrono::nanoseconds(std::clamp(proto.nanos(), 0, 999'999'999))));
}

google::protobuf::Timestamp TimeToProto(WallTime time) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                      time.time_since_epoch())
                      .count();
  google::protobuf::Timestamp proto;
  proto.set_seconds(ns / 1'000'000'000);
  proto.set_nanos(static_cast<int32_t>(ns % 1'000'000'000));
  return proto;
}

void Fill(const AccessTokens& from, v1::KnownAccessTokens* to) {
  to->set_instance(from.instance);
  to->set_version(from.version);
  for (const AccessToken& token : from.tokens) {
    v1::KnownAccessToken* proto = to->add_tokens();
    proto->set_id(token.id);
    proto->set_name(token.name);
    proto->set_role(std::string(Name(token.role)));
    proto->set_sha256(token.sha256.data(), token.sha256.size());
    if (token.expires_at)
      *proto->mutable_expires_at() = TimeToProto(*token.expires_at);
  }
}

struct MessageToProto {
  v1::WorkerSessionResponse* out;
  void operator()(const Welcome& welcome) const {
    v1::Welcome* proto = out->mutable_welcome();
    proto->set_coordinator_version(std::string(rpc::kLeatVersion));
    proto->mutable_heartbeat_interval()->set_seconds(
        welcome.heartbeat_interval / std::chrono::seconds(1));
    proto->mutable_heartbeat_interval()->set_nanos(static_cast<int32_t>(
        (welcome.heartbeat_interval % std::chrono::seconds(1)).count()));
    proto->set_sequence(welcome.sequence);
    if (welcome.access_tokens != nullptr)
      Fill(*welcome.access_tokens, proto->mutable_access_tokens());
  }
  void operator()(const IndexDirective& directive) const {
    v1::IndexDataset* proto = out->mutable_index_dataset();
    proto->set_dataset_id(directive.dataset_id);
    proto->set_request_id(directive.request_id);
    *proto->mutable_reader() = rpc::ToProto(directive.reader);
    proto->set_max_index_bytes(directive.max_index_bytes);
    proto->set_index_block_bytes(directive.index_block_bytes);
    if (directive.look) *proto->mutable_look() = rpc::ToProto(*directive.look);
    proto->set_look_only(directive.look_only);
  }
  void operator()(const LogLevelDirective& directive) const {
    out->set_log_level(directive.level);
  }
  void operator()(const std::shared_ptr<const AccessTokens>& tokens) const {
    Fill(*tokens, out->mutable_access_tokens());
  }
  void operator()(const OwnedShards& owned) const {
    v1::OwnedShards* proto = out->mutable_owned_shards();
    proto->set_dataset_id(owned.dataset_id);
    proto->set_num_shards(owned.num_shards);
    proto->set_owned(owned.Bits());
    const Assignment* table = nullptr;
    for (const auto& [peer, shards] : owned.Peers(&table)) {
      v1::ShardsOfPeer* of = proto->add_peers();
      *of->mutable_peer() = ToProto(table->workers[peer]);
      of->mutable_shards()->Assign(shards.begin(), shards.end());
      if (owned.kept == nullptr) continue;
      if (const std::optional<double> share =
              owned.kept->Of(owned.dataset_id, table->workers[peer].name))
        of->set_kept_share(*share);
    }
  }
};

}  // namespace

absl::StatusOr<Digest> DigestOf(std::string_view what, const std::string& raw) {
  Digest digest;
  if (raw.size() != digest.size())
    return InvalidArgument("{} has {} bytes: want {}", what, raw.size(),
                           digest.size());
  std::copy(raw.begin(), raw.end(), digest.begin());
  return digest;
}

absl::StatusOr<WorkerRegistration> FromProto(const v1::RegisterWorker& proto) {
  WorkerRegistration registration;
  registration.name = proto.name();
  registration.address = proto.address();
  registration.version = Cut(proto.version());
  registration.threads = proto.threads();
  for (int value : proto.decoder_classes()) {
    // Classes that this version does not know are of no use to it.
    if (value != v1::DECODER_CLASS_EXACT && value != v1::DECODER_CLASS_NVJPEG)
      continue;
    const auto known = static_cast<DecoderClass>(value);
    auto& classes = registration.decoder_classes;
    if (std::find(classes.begin(), classes.end(), known) == classes.end())
      classes.push_back(known);
  }
  for (const v1::Decoders& own : proto.decoders()) {
    const auto known = static_cast<DecoderClass>(own.decoder_class());
    // The first digest of each class counts; what cannot be one is left out.
    const absl::StatusOr<Digest> digest = DigestOf("decoders", own.digest());
    if (!digest.ok() || *digest == Digest{} || !registration.Has(known) ||
        registration.DecodersOf(known) != nullptr)
      continue;
    registration.decoders.push_back({known, *digest, Cut(own.libraries())});
  }
  registration.host = Cut(proto.host());
  registration.pid = proto.pid();
  registration.highest_sequence_seen = proto.highest_sequence_seen();
  if (!proto.pool().empty()) registration.pool = proto.pool();
  const size_t key_bytes = proto.public_key().size();
  if (key_bytes != 0 && key_bytes != rpc::kPublicKeyBytes)
    return InvalidArgument("worker {}: a public key of {} bytes: want {}",
                           Cut(proto.name()), key_bytes, rpc::kPublicKeyBytes);
  registration.public_key = proto.public_key();
  registration.not_confined = Cut(proto.not_confined());
  registration.insecure_listener = Cut(proto.insecure_listener());
  for (int i = 0; i < std::min(proto.devices_size(), kMaxDevices); ++i) {
    registration.devices.push_back(proto.devices(i));
    Sanitise(&registration.devices.back());
  }
  return registration;
}

WorkerReport ReportOf(v1::WorkerStats proto) {
  Sanitise(&proto);
  WorkerReport report;
  report.capacity_rows_per_s = proto.capacity_rows_per_s();
  if (proto.has_certificate_expires_at()) {
    report.certificate_expiry = TimeOf(proto.certificate_expires_at());
    // JSON has no other times than these.
    *proto.mutable_certificate_expires_at() =
        ToProto(*report.certificate_expiry);
  }
  report.stats = std::make_shared<const v1::WorkerStats>(std::move(proto));
  return report;
}

ConsumerReport ReportOf(v1::ConsumerStats proto) {
  Sanitise(&proto);
  ConsumerReport report{proto.epoch(),           proto.step(),
                        proto.steps_per_epoch(), proto.rows_per_s(),
                        proto.stall_fraction(),  nullptr};
  report.stats = std::make_shared<const v1::ConsumerStats>(std::move(proto));
  return report;
}

std::vector<StorageTrouble> TroublesOf(const v1::Heartbeat& proto) {
  std::vector<StorageTrouble> troubles;
  for (const v1::StorageTrouble& from : proto.storage_troubles()) {
    if (troubles.size() == kMaxTroubles) break;
    troubles.push_back(
        {Cut(from.root()), Cut(from.error()), LastingOf(from.lasting())});
    StorageTrouble& trouble = troubles.back();
    for (const std::string& bytes : from.fingerprints()) {
      if (trouble.datasets.size() == kMaxTroubleDatasets) break;
      Digest& fingerprint = trouble.datasets.emplace_back();
      if (bytes.size() == fingerprint.size())
        std::ranges::copy(bytes, fingerprint.begin());
    }
  }
  return troubles;
}

BadSampleReport BadSamplesOf(const v1::Heartbeat& proto) {
  BadSampleReport report;
  std::vector<JobBadSamples>& jobs = report.jobs;
  for (int i = 0; i < std::min(proto.bad_samples_size(), kMaxJobs); ++i) {
    const v1::JobBadSamples& from = proto.bad_samples(i);
    JobBadSamples& job = jobs.emplace_back();
    job.job = from.job();
    for (int k = 0; k < std::min(from.samples_size(), kMaxBadSamples); ++k) {
      const v1::BadSample& sample = from.samples(k);
      job.samples.push_back({sample.sample(), Cut(sample.record()),
                             Cut(sample.reason()),
                             std::max<uint64_t>(1, sample.count())});
    }
  }
  size_t left = kMaxCounted;
  for (const v1::CountedBadSamples& from : proto.counted_bad_samples()) {
    const absl::StatusOr<Digest> plan = DigestOf("plan_hash", from.plan_hash());
    const size_t taken =
        std::min(left, static_cast<size_t>(from.samples_size()));
    if (!plan.ok() || taken == 0) continue;
    left -= taken;
    report.plans.push_back(
        {*plan, {from.samples().begin(), from.samples().begin() + taken}});
  }
  return report;
}

absl::StatusOr<ConsumerOpening> FromProto(const v1::OpenConsumer& proto) {
  ConsumerOpening opening;
  ASSIGN_OR_RETURN(opening.plan_hash, DigestOf("plan_hash", proto.plan_hash()));
  opening.host = Cut(proto.host());
  opening.pid = proto.pid();
  opening.consumer = proto.consumer();
  opening.job = proto.job();
  return opening;
}

v1::WorkerSessionResponse ToProto(const WorkerMessage& message) {
  v1::WorkerSessionResponse proto;
  std::visit(MessageToProto{&proto}, message);
  return proto;
}

google::protobuf::Timestamp ToProto(WallTime time) { return TimeToProto(time); }

v1::AccessTokenInfo ToProto(const AccessToken& token) {
  v1::AccessTokenInfo proto;
  proto.set_id(token.id);
  proto.set_name(token.name);
  proto.set_role(std::string(Name(token.role)));
  *proto.mutable_created_at() = ToProto(token.created_at);
  if (token.expires_at)
    *proto.mutable_expires_at() = ToProto(*token.expires_at);
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

v1::Decoders ToProto(const Decoders& decoders) {
  v1::Decoders proto;
  proto.set_decoder_class(
      static_cast<v1::DecoderClass>(decoders.decoder_class));
  proto.set_digest(decoders.digest.data(), decoders.digest.size());
  proto.set_libraries(decoders.libraries);
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
  proto.set_weight(view.weight);
  proto.set_shards_owned(view.shards_owned);
  if (view.report.stats != nullptr) *proto.mutable_stats() = *view.report.stats;
  *proto.mutable_joined_at() = ToProto(view.joined_at);
  *proto.mutable_last_heartbeat_at() = ToProto(view.last_heartbeat_at);
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
  for (const StorageTrouble& from : view.troubles) {
    v1::StorageTrouble& trouble = *proto.add_storage_troubles();
    trouble.set_root(from.root);
    trouble.set_error(from.error);
    for (const Digest& fingerprint : from.datasets)
      trouble.add_fingerprints(fingerprint.data(), fingerprint.size());
    trouble.mutable_lasting()->set_seconds(from.lasting /
                                           std::chrono::seconds(1));
    trouble.mutable_lasting()->set_nanos(
        static_cast<int32_t>((from.lasting % std::chrono::seconds(1)).count()));
  }
  return proto;
}

v1::JobSummary ToProto(const JobView& view) {
  v1::JobSummary proto;
  *proto.mutable_job() = rpc::ShownToProto(*view.info);
  *proto.mutable_created_at() = ToProto(view.created_at);
  proto.set_created_by(view.created_by);
  *proto.mutable_last_used_at() = ToProto(view.last_used_at);
  proto.set_consumers(view.consumers);
  proto.set_epoch(view.epoch);
  proto.set_step(view.step);
  proto.set_steps_per_epoch(view.steps_per_epoch);
  proto.set_rows_per_s(view.rows_per_s);
  proto.set_stall_fraction(view.stall_fraction);
  proto.set_bad_samples_total(view.bad_samples_total);
  for (const BadSample& sample : view.bad_samples)
    *proto.add_bad_samples() = ToProto(sample);
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
  *proto.mutable_indexed_at() = ToProto(view.indexed_at);
  proto.set_state(view.state);
  proto.set_failure(view.failure);
  proto.mutable_jobs()->Assign(view.jobs.begin(), view.jobs.end());
  proto.set_index_bytes(view.index_bytes);
  if (view.looked_at) *proto.mutable_looked_at() = ToProto(*view.looked_at);
  proto.set_looked_entries(view.looked_entries);
  proto.set_looked_total(view.looked_total);
  proto.mutable_changes()->Assign(view.changes.begin(), view.changes.end());
  for (const PassedOver& each : view.passed_over) {
    v1::PassedOver* to = proto.add_passed_over();
    to->set_what(each.what);
    to->set_count(each.count);
    to->set_first(each.first);
  }
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
  *proto.mutable_opened_at() = ToProto(view.opened_at);
  *proto.mutable_last_report_at() = ToProto(view.last_report_at);
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
    *proto.mutable_muted_until() = ToProto(*finding.muted_until);
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
    *to->mutable_at() = ToProto(event->at);
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

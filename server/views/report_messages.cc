// SPDX-License-Identifier: Apache-2.0
//
// Reports of workers and consumers: untrusted bytes, made fit to be kept.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/plan/abilities.h"
#include "core/status.h"
#include "google/protobuf/unknown_field_set.h"
#include "rpc/access/worker_key.h"
#include "rpc/wire/times.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

constexpr int kMaxBadSamples = 100;     // per job in one heartbeat
constexpr int kMaxJobs = 1000;          // in one heartbeat
constexpr int kMaxListings = 16;        // in one heartbeat
constexpr size_t kMaxCounted = 16'384;  // samples in one heartbeat
constexpr size_t kMaxUnknown = 4096;    // unknown fields per message, in bytes

double Finite(double value) {
  return std::isfinite(value) && value > 0 ? value : 0;
}

// Makes a report fit to be kept: texts are cut, lists bounded, and numbers that
// are not finite, or negative, become 0; fields that this version does not know
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

// Clamps to a day: longer durations are not distinguished.
void ClampLasting(google::protobuf::Duration* lasting) {
  constexpr int64_t kDay = 86'400;
  lasting->set_seconds(std::clamp<int64_t>(lasting->seconds(), 0, kDay));
  lasting->set_nanos(std::clamp(lasting->nanos(), 0, 999'999'999));
}

// JSON has no other times than these, so `time` becomes one of them, too.
WallTime BoundedTime(google::protobuf::Timestamp* time) {
  const WallTime bounded = rpc::FromProto(*time);
  *time = rpc::ToProto(bounded);
  return bounded;
}

absl::Status SetAbilities(const v1::RegisterWorker& proto,
                          WorkerRegistration* registration) {
  const auto most = static_cast<int>(kMaxAbilities);
  if (proto.abilities_size() > most || proto.lacked_size() > most)
    return InvalidArgument("{} abilities and {} that it lacks: want at most {}",
                           proto.abilities_size(), proto.lacked_size(), most);
  std::set<std::string> names;
  for (const std::string& name : proto.abilities()) {
    RETURN_IF_ERROR(CheckAbility(name));
    names.insert(name);
  }
  registration->abilities.assign(names.begin(), names.end());
  for (const v1::LackedAbility& lacked : proto.lacked()) {
    RETURN_IF_ERROR(CheckAbility(lacked.name()));
    registration->lacked[lacked.name()] = Cut(lacked.why());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WorkerRegistration> FromProto(const v1::RegisterWorker& proto) {
  WorkerRegistration registration;
  registration.name = proto.name();
  registration.address = proto.address();
  registration.version = Cut(proto.version());
  registration.threads = proto.threads();
  for (int value : proto.decoder_classes()) {
    // Classes that this version does not know are dropped.
    if (value != v1::DECODER_CLASS_EXACT && value != v1::DECODER_CLASS_NVJPEG &&
        value != v1::DECODER_CLASS_NVJPEG_SHARED)
      continue;
    const auto known = static_cast<DecoderClass>(value);
    auto& classes = registration.decoder_classes;
    if (std::find(classes.begin(), classes.end(), known) == classes.end())
      classes.push_back(known);
  }
  for (const v1::Decoders& own : proto.decoders()) {
    const auto known = static_cast<DecoderClass>(own.decoder_class());
    // The first digest of each class counts; invalid ones are dropped.
    const absl::StatusOr<Digest> digest = DigestOf("decoders", own.digest());
    if (!digest.ok() || *digest == Digest{} || !registration.Has(known) ||
        registration.DecodersOf(known) != nullptr)
      continue;
    registration.decoders.push_back({known, *digest, Cut(own.libraries())});
  }
  RETURN_IF_ERROR(Annotate(SetAbilities(proto, &registration),
                           fmt::format("worker {}", Cut(proto.name()))));
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
  if (proto.has_certificate_expires_at())
    report.certificate = {
        .end = BoundedTime(proto.mutable_certificate_expires_at())};
  if (proto.has_certificate_begins_at()) {
    const WallTime begin = BoundedTime(proto.mutable_certificate_begins_at());
    if (report.certificate) report.certificate->begin = begin;
  }
  report.stats = std::make_shared<const v1::WorkerStats>(std::move(proto));
  return report;
}

WorkerReport ReportOf(const v1::Heartbeat& proto) {
  WorkerReport report = ReportOf(proto.stats());
  report.not_reloaded = Cut(proto.not_reloaded());
  for (int i = 0; i < std::min(proto.listings_size(), kMaxListings); ++i) {
    const v1::ListingUnderWay& listing = proto.listings(i);
    report.listings.push_back({.dataset_id = Cut(listing.dataset_id()),
                               .request_id = listing.request_id(),
                               .files = listing.files(),
                               .samples = listing.samples()});
  }
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

StorageFailures FailuresOf(const v1::Heartbeat& proto) {
  const auto& all = proto.storage_failures();
  StorageFailures failures(
      all.begin(),
      all.begin() + std::min(proto.storage_failures_size(), kMaxFailures));
  for (v1::StorageFailure& failure : failures) {
    Sanitise(&failure);
    ClampLasting(failure.mutable_lasting());
  }
  return failures;
}

BadSampleReport BadSamplesOf(const v1::Heartbeat& proto) {
  BadSampleReport report;
  std::vector<JobBadSamples>& jobs = report.jobs;
  for (int i = 0; i < std::min(proto.bad_samples_size(), kMaxJobs); ++i) {
    const v1::JobBadSamples& from = proto.bad_samples(i);
    JobBadSamples& job = jobs.emplace_back();
    job.job = from.job();
    for (int k = 0; k < std::min(from.samples_size(), kMaxBadSamples); ++k) {
      v1::BadSample& sample = job.samples.emplace_back(from.samples(k));
      Sanitise(&sample);
      sample.set_count(std::max<uint64_t>(1, sample.count()));
    }
  }
  report.answers = proto.answers();
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
  opening.job = Cut(proto.job());
  opening.look = proto.look();
  return opening;
}

}  // namespace leat::server

// SPDX-License-Identifier: Apache-2.0
#include "server/state/records.h"

#include <utility>

#include "core/status.h"
#include "google/protobuf/unknown_field_set.h"
#include "leat/stored/v1/records.pb.h"
#include "leat/v1/types.pb.h"
#include "rpc/wire/messages.h"
#include "server/state/dataset_records.h"
#include "server/state/job_check.h"

namespace leat::server {
namespace {

absl::StatusOr<Digest> ToDigest(std::string_view what, const std::string& raw) {
  return DigestOf(what, raw, absl::StatusCode::kDataLoss);
}

int64_t UnixNs(WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             time.time_since_epoch())
      .count();
}

WallTime FromUnixNs(int64_t ns) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(
      std::chrono::nanoseconds(ns)));
}

struct Encoder {
  stored::v1::Event* out;

  void operator()(const DatasetIndexed& indexed) const {
    ToStored(indexed, out->mutable_dataset_indexed());
  }
  void operator()(const DatasetListedAgain& again) const {
    ToStored(again, out->mutable_dataset_listed_again());
  }
  void operator()(const DatasetDeleted& deleted) const {
    out->mutable_dataset_deleted()->set_id(deleted.id);
  }
  void operator()(const JobCreated& created) const {
    stored::v1::JobCreated* to = out->mutable_job_created();
    to->set_name(created.spec.name);
    if (IsMixture(created.spec))
      to->mutable_dataset_ids()->Add(created.dataset_ids.begin(),
                                     created.dataset_ids.end());
    else
      to->set_dataset_id(created.dataset_ids[0]);
    to->set_spec(rpc::ToProto(created.spec).SerializeAsString());
    to->set_plan_hash(BytesOf(created.plan_hash));
    to->set_created_by(created.created_by);
  }
  void operator()(const JobDeleted& deleted) const {
    out->mutable_job_deleted()->set_name(deleted.name);
  }
  void operator()(const WorkerDrained& drained) const {
    out->mutable_worker_drained()->set_name(drained.name);
  }
  void operator()(const WorkerUndrained& undrained) const {
    out->mutable_worker_undrained()->set_name(undrained.name);
  }
  void operator()(const JobsUsed& used) const {
    out->mutable_jobs_used()->mutable_names()->Assign(used.names.begin(),
                                                      used.names.end());
  }
  void operator()(const DecodersPinned& pinned) const {
    stored::v1::DecodersPinned* to = out->mutable_decoders_pinned();
    for (const Digest& plan : pinned.plans) to->add_plan_hashes(BytesOf(plan));
    to->set_digest(BytesOf(pinned.digest));
    to->set_libraries(pinned.libraries);
  }
  void operator()(const AccessCreated& created) const {
    stored::v1::AccessCreated* to = out->mutable_access_created();
    to->set_id(created.token.id);
    to->set_name(created.token.name);
    to->set_role(std::string(Name(created.token.role)));
    to->set_sha256(BytesOf(created.token.sha256));
    if (created.token.expires_at)
      to->set_expires_at_unix_ns(UnixNs(*created.token.expires_at));
  }
  void operator()(const AccessRevoked& revoked) const {
    out->mutable_access_revoked()->set_id(revoked.id);
  }
  void operator()(const PoolBounded& bounded) const {
    stored::v1::PoolBounded* to = out->mutable_pool_bounded();
    to->set_pool(bounded.pool);
    to->set_min(bounded.bounds.min);
    to->set_max(bounded.bounds.max);
  }
  void operator()(const FindingMuted& muted) const {
    stored::v1::FindingMuted* to = out->mutable_finding_muted();
    to->set_code(muted.code);
    if (muted.until) to->set_until_unix_ns(UnixNs(*muted.until));
    to->set_severity(muted.severity);
  }
  void operator()(const FindingUnmuted& unmuted) const {
    out->mutable_finding_unmuted()->set_code(unmuted.code);
  }
  void operator()(const SetAside&) const {}  // it is its record
};

std::vector<std::string> DatasetsOf(const stored::v1::JobCreated& from) {
  if (from.dataset_ids().empty()) return {from.dataset_id()};
  return {from.dataset_ids().begin(), from.dataset_ids().end()};
}

absl::StatusOr<JobCreated> Decode(const stored::v1::JobCreated& from) {
  leat::v1::JobSpec proto;
  if (!proto.ParseFromString(from.spec()))
    return DataLoss("job {}: its spec is not a leat.v1.JobSpec", from.name());
  ASSIGN_OR_RETURN(JobSpec spec, rpc::FromProto(proto));
  ASSIGN_OR_RETURN(PreparedJob job, Prepare(spec));
  JobCreated created;
  // The spec stays as it was stored: a later version may normalise differently,
  // and the plan hash is of the stored form.
  created.spec = std::move(spec);
  created.dataset_ids = DatasetsOf(from);
  if (created.dataset_ids.size() != NumSources(created.spec))
    return DataLoss("job {}: {} datasets for {} sources", from.name(),
                    created.dataset_ids.size(), NumSources(created.spec));
  created.schema = std::move(job.schema);
  created.not_on_gpu = std::move(job.not_on_gpu);
  ASSIGN_OR_RETURN(created.plan_hash,
                   ToDigest("a plan hash", from.plan_hash()));
  created.created_by = from.created_by();
  return created;
}

absl::StatusOr<DecodersPinned> Decode(const stored::v1::DecodersPinned& from) {
  DecodersPinned pinned;
  for (const std::string& plan : from.plan_hashes()) {
    ASSIGN_OR_RETURN(pinned.plans.emplace_back(),
                     ToDigest("a plan hash", plan));
  }
  ASSIGN_OR_RETURN(pinned.digest,
                   ToDigest("the decoders' digest", from.digest()));
  pinned.libraries = from.libraries();
  return pinned;
}

// kInvalidArgument: a role of a later version.
absl::StatusOr<AccessCreated> Decode(const stored::v1::AccessCreated& from) {
  AccessCreated created;
  created.token.id = from.id();
  created.token.name = from.name();
  ASSIGN_OR_RETURN(created.token.role, RoleFrom(from.role()));
  ASSIGN_OR_RETURN(created.token.sha256,
                   ToDigest("an access token's hash", from.sha256()));
  if (from.expires_at_unix_ns() != 0)
    created.token.expires_at = FromUnixNs(from.expires_at_unix_ns());
  return created;
}

FindingMuted Decode(const stored::v1::FindingMuted& from) {
  FindingMuted muted{
      .code = from.code(), .until = {}, .severity = from.severity()};
  if (from.until_unix_ns() != 0) muted.until = FromUnixNs(from.until_unix_ns());
  return muted;
}

// Returns the field number of the event's kind, which this version does not
// know. 0: the event has none.
int UnknownKind(const stored::v1::Event& proto) {
  const google::protobuf::UnknownFieldSet& unknown =
      proto.GetReflection()->GetUnknownFields(proto);
  return unknown.empty() ? 0 : unknown.field(0).number();
}

// An event that this version cannot use is kept as it was stored.
using EventKind = decltype(Event::kind);

template <class T>
absl::StatusOr<EventKind> KindOf(absl::StatusOr<T> decoded) {
  RETURN_IF_ERROR(decoded.status());
  return EventKind(*std::move(decoded));
}

EventKind KindOf(const stored::v1::JobCreated& created,
                 std::string_view bytes) {
  absl::StatusOr<JobCreated> decoded = Decode(created);
  if (decoded.ok()) return *std::move(decoded);
  return SetAside{std::string(bytes), fmt::format("job {}", created.name()),
                  std::string(Message(decoded.status())), created.name(),
                  DatasetsOf(created)};
}

EventKind KindOf(const stored::v1::AccessCreated& created,
                 std::string_view bytes) {
  absl::StatusOr<AccessCreated> decoded = Decode(created);
  if (decoded.ok()) return *std::move(decoded);
  return SetAside{std::string(bytes),
                  fmt::format("access token {}", created.id()),
                  std::string(Message(decoded.status())),
                  "",
                  {}};
}

absl::StatusOr<EventKind> KindOfUnknown(const stored::v1::Event& proto,
                                        std::string_view bytes) {
  const int kind = UnknownKind(proto);
  if (kind == 0) return DataLoss("an event without a kind");
  return SetAside{std::string(bytes),
                  fmt::format("an event of kind {}", kind),
                  "this version does not know the kind: a newer one wrote it",
                  "",
                  {}};
}

absl::StatusOr<EventKind> KindOf(const stored::v1::Event& proto,
                                 std::string_view bytes) {
  switch (proto.kind_case()) {
    case stored::v1::Event::kDatasetIndexed:
      return KindOf(FromStored(proto.dataset_indexed()));
    case stored::v1::Event::kDatasetListedAgain:
      return KindOf(FromStored(proto.dataset_listed_again()));
    case stored::v1::Event::kDatasetDeleted:
      return DatasetDeleted{proto.dataset_deleted().id()};
    case stored::v1::Event::kJobCreated:
      return KindOf(proto.job_created(), bytes);
    case stored::v1::Event::kJobDeleted:
      return JobDeleted{proto.job_deleted().name()};
    case stored::v1::Event::kWorkerDrained:
      return WorkerDrained{proto.worker_drained().name()};
    case stored::v1::Event::kWorkerUndrained:
      return WorkerUndrained{proto.worker_undrained().name()};
    case stored::v1::Event::kJobsUsed:
      return JobsUsed{
          {proto.jobs_used().names().begin(), proto.jobs_used().names().end()}};
    case stored::v1::Event::kDecodersPinned:
      return KindOf(Decode(proto.decoders_pinned()));
    case stored::v1::Event::kAccessCreated:
      return KindOf(proto.access_created(), bytes);
    case stored::v1::Event::kAccessRevoked:
      return AccessRevoked{proto.access_revoked().id()};
    case stored::v1::Event::kPoolBounded: {
      const stored::v1::PoolBounded& bounded = proto.pool_bounded();
      return PoolBounded{bounded.pool(), {bounded.min(), bounded.max()}};
    }
    case stored::v1::Event::kFindingMuted:
      return Decode(proto.finding_muted());
    case stored::v1::Event::kFindingUnmuted:
      return FindingUnmuted{proto.finding_unmuted().code()};
    case stored::v1::Event::KIND_NOT_SET:
      break;
  }
  return KindOfUnknown(proto, bytes);
}

}  // namespace

std::string EncodeEvent(const Event& event) {
  if (const auto* aside = std::get_if<SetAside>(&event.kind))
    return aside->record;
  stored::v1::Event proto;
  proto.set_at_unix_ns(UnixNs(event.at));
  std::visit(Encoder{&proto}, event.kind);
  return proto.SerializeAsString();
}

absl::StatusOr<Event> DecodeEvent(std::string_view bytes) {
  stored::v1::Event proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return DataLoss("{} bytes are not a leat.stored.v1.Event", bytes.size());
  Event event;
  event.at = FromUnixNs(proto.at_unix_ns());
  if (proto.has_job_created()) event.record = std::string(bytes);
  ASSIGN_OR_RETURN(event.kind, KindOf(proto, bytes));
  return event;
}

}  // namespace leat::server

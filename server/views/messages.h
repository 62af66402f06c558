// SPDX-License-Identifier: Apache-2.0
//
// Converts the coordinator's types to and from leat.v1 messages.
#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "leat/v1/admin.pb.h"
#include "leat/v1/coordinator.pb.h"
#include "leat/v1/pool.pb.h"
#include "leat/v1/types.pb.h"
#include "server/observe/cluster_events.h"
#include "server/state/types.h"

namespace leat::server {

// The input is untrusted: texts are cut, lists are bounded, and numbers that
// are not finite become 0. kInvalidArgument if nothing sensible is left.
absl::StatusOr<WorkerRegistration> FromProto(const v1::RegisterWorker& proto);
WorkerReport ReportOf(v1::WorkerStats proto);
WorkerReport ReportOf(const v1::Heartbeat& proto);
ConsumerReport ReportOf(v1::ConsumerStats proto);
StorageFailures FailuresOf(const v1::Heartbeat& proto);
BadSampleReport BadSamplesOf(const v1::Heartbeat& proto);
absl::StatusOr<ConsumerOpening> FromProto(const v1::OpenConsumer& proto);
absl::StatusOr<IndexHeader> FromProto(const v1::IndexHeader& proto);
DatasetLooked FromProto(const v1::IndexLooked& proto);
absl::StatusOr<IndexProgress> FromProto(const v1::IndexProgress& proto);
// Returns the first eight.
std::vector<UnreachedWorker> FromProto(const v1::UnreachedWorkers& proto);
// Cuts a text from a peer to kMaxText bytes.
inline constexpr size_t kMaxText = 1024;
std::string Cut(const std::string& text);

v1::WorkerSessionResponse ToProto(const WorkerMessage& message);
v1::Decoders ToProto(const Decoders& decoders);
v1::WorkerInfo ToProto(const WorkerView& view);
v1::JobSummary ToProto(const JobView& view);
// Returns "web", or "web and 2 more", for people.
std::string NamesOf(std::span<const DatasetInfo> datasets);
v1::DatasetSummary ToProto(const DatasetView& view);
v1::ConsumerInfo ToProto(const ConsumerView& view);
v1::AccessTokenInfo ToProto(const AccessToken& token);
v1::Pool ToProto(const PoolView& view);
v1::Finding ToProto(const Finding& finding);
v1::GetBottleneckResponse ToProto(const BottleneckView& view);
v1::WatchEventsResponse ToProto(const EventPage& page);

}  // namespace leat::server

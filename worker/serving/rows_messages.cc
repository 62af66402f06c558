// SPDX-License-Identifier: Apache-2.0
#include "worker/serving/rows_messages.h"

#include <span>
#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxConsumerBytes = 256;

absl::StatusOr<RowRequest> FromProto(const v1::RequestRows& proto) {
  const int slots = proto.memory_id() != 0 ? proto.rows_size() : 0;
  if (proto.samples_size() != proto.rows_size() || proto.slots_size() != slots)
    return InvalidArgument(
        "request {}: {} rows, {} samples, {} slots in memory {}: want as many",
        proto.request_id(), proto.rows_size(), proto.samples_size(),
        proto.slots_size(), proto.memory_id());
  if (static_cast<size_t>(proto.absent_size()) > kMaxAbsent)
    return InvalidArgument("request {}: {} absent samples, want up to {}",
                           proto.request_id(), proto.absent_size(), kMaxAbsent);
  return RowRequest{.request_id = proto.request_id(),
                    .epoch = proto.epoch(),
                    .step = proto.step(),
                    .rows = {proto.rows().begin(), proto.rows().end()},
                    .samples = {proto.samples().begin(), proto.samples().end()},
                    .memory_id = proto.memory_id(),
                    .slots = {proto.slots().begin(), proto.slots().end()},
                    .absent = {proto.absent().begin(), proto.absent().end()}};
}

// A message whose samples are used. It is counted while it exists.
class KeptRequest {
 public:
  KeptRequest(v1::RequestRows proto, SuppliedBytes counts)
      : proto_(std::move(proto)),
        bytes_(proto_.ByteSizeLong()),
        counts_(std::move(counts)) {
    *counts_.of_stream += bytes_;
    *counts_.of_all += bytes_;
  }
  KeptRequest(const KeptRequest&) = delete;
  KeptRequest& operator=(const KeptRequest&) = delete;
  ~KeptRequest() {
    *counts_.of_stream -= bytes_;
    *counts_.of_all -= bytes_;
  }
  const v1::RequestRows& proto() const { return proto_; }

 private:
  const v1::RequestRows proto_;
  const uint64_t bytes_;
  const SuppliedBytes counts_;
};

// Refers to `owner`'s message without a copy.
StoredSample FromProto(const v1::SuppliedSample& proto,
                       std::shared_ptr<const KeptRequest> owner) {
  StoredSample sample;
  for (const v1::SuppliedField& field : proto.fields())
    sample.fields.push_back(
        {.bytes = std::as_bytes(std::span(field.data())),
         .shape = Shape(field.shape().begin(), field.shape().end())});
  sample.owner = std::move(owner);
  return sample;
}

}  // namespace

absl::Status CheckOpen(const v1::OpenRows& open) {
  if (open.plan_hash().size() != sizeof(Digest))
    return InvalidArgument("open: a plan hash of {} bytes: want {}",
                           open.plan_hash().size(), sizeof(Digest));
  if (open.consumer().size() > kMaxConsumerBytes)
    return InvalidArgument("open: a consumer's name of {} bytes: want up to {}",
                           open.consumer().size(), kMaxConsumerBytes);
  return absl::OkStatus();
}

absl::StatusOr<RowRequest> ReadRequest(v1::RequestRows proto,
                                       const SuppliedBytes& counts,
                                       uint64_t max_of_stream) {
  ASSIGN_OR_RETURN(RowRequest request, FromProto(proto));
  if (proto.supplied().empty()) return request;
  const auto owner =
      std::make_shared<const KeptRequest>(std::move(proto), counts);
  if (*counts.of_stream > max_of_stream)
    return ResourceExhausted(
        "samples of {} bytes are supplied and wait: the limit is {} a stream",
        counts.of_stream->load(), max_of_stream);
  for (const v1::SuppliedSample& sample : owner->proto().supplied())
    request.supplied.push_back(FromProto(sample, owner));
  return request;
}

}  // namespace leat::worker

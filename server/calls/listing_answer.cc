// SPDX-License-Identifier: Apache-2.0
#include "server/calls/listing_answer.h"

#include "core/status.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

absl::Status TakeFailure(Coordinator* coordinator, Now now,
                         const v1::IndexFailure& failure) {
  const bool known = failure.code() > 0 && failure.code() <= 16;
  const absl::Status why(known ? static_cast<absl::StatusCode>(failure.code())
                               : absl::StatusCode::kUnknown,
                         failure.message());
  return coordinator->FailIndex(failure.dataset_id(), failure.request_id(), why,
                                now);
}

absl::Status TakeProgress(Coordinator* coordinator, Now now,
                          const v1::IndexProgress& proto) {
  ASSIGN_OR_RETURN(const IndexProgress progress, FromProto(proto));
  return coordinator->NoteProgress(progress, now);
}

}  // namespace

void TakeListingAnswer(Coordinator* coordinator, Now now,
                       const v1::UploadIndexRequest& request,
                       const Coordinator::Done& done) {
  switch (request.kind_case()) {
    case v1::UploadIndexRequest::kHeader: {
      const v1::IndexHeader& proto = request.header();
      const absl::StatusOr<IndexHeader> header = FromProto(proto);
      if (header.ok()) return coordinator->FinishUpload(*header, now, done);
      coordinator->RefuseUpload(proto.dataset_id(), proto.request_id(),
                                header.status(), now);
      return done(header.status());
    }
    case v1::UploadIndexRequest::kFailure:
      return done(TakeFailure(coordinator, now, request.failure()));
    case v1::UploadIndexRequest::kLooked:
      return done(coordinator->NoteLooked(FromProto(request.looked()), now));
    case v1::UploadIndexRequest::kProgress:
      return done(TakeProgress(coordinator, now, request.progress()));
    case v1::UploadIndexRequest::KIND_NOT_SET:
      break;
  }
  done(InvalidArgument("an UploadIndex message of an unknown kind"));
}

}  // namespace leat::server

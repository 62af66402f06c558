// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/arranged_source.h"

#include <utility>

#include "core/status.h"
#include "leat/stored/v1/indexes.pb.h"
#include "worker/source/arranged/packed_documents.h"
#include "worker/source/arranged/packing_message.h"
#include "worker/source/index_blob.h"

namespace leat::worker {

namespace {

absl::StatusOr<std::unique_ptr<Source>> OpenPacked(
    const stored::v1::ArrangedHead& head, BlobReader* reader,
    const ArrangedBase& base, const Digest& fingerprint) {
  ASSIGN_OR_RETURN(StoredPack stored, FromStored(head.packing()));
  stored::v1::PackedBlock block;
  RETURN_IF_ERROR(reader->Next(&block));
  if (!reader->done())
    return DataLoss("the index has more than one block of rows");
  ASSIGN_OR_RETURN(PackedBlock opened,
                   PackedBlock::Open(stored.pack.packing, std::move(block),
                                     base.source->num_samples()));
  return std::make_unique<PackedDocuments>(base.source, std::move(stored.pack),
                                           stored.types, std::move(opened),
                                           fingerprint, base.limits);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Source>> OpenArranged(
    std::string_view blob, const ArrangedBase& base,
    const Digest& fingerprint) {
  BlobReader reader(blob);
  stored::v1::ArrangedHead head;
  RETURN_IF_ERROR(reader.Next(&head));
  if (head.base_fingerprint() != BytesOf(base.fingerprint))
    return DataLoss("the index arranges another dataset than its base");
  if (head.has_packing()) return OpenPacked(head, &reader, base, fingerprint);
  stored::v1::ChosenSamples block;
  RETURN_IF_ERROR(reader.Next(&block));
  if (!reader.done())
    return DataLoss("the index has more than one block of samples");
  ASSIGN_OR_RETURN(
      ChosenSamples chosen,
      ChosenSamples::Parse(std::move(*block.mutable_gaps()), block.samples(),
                           base.source->num_samples()));
  return std::make_unique<ArrangedSource>(base.source, std::move(chosen),
                                          fingerprint);
}

}  // namespace leat::worker

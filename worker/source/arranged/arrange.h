// SPDX-License-Identifier: Apache-2.0
//
// Arrange lists an arrangement of a dataset, the base, from its opened index.
//
//   head    the arrangement's text, and the base's fingerprint
//   blocks  the base's sample of each item (chosen_samples.h), in groups if the
//           arrangement has any (grouped_writer.h)
//
// The same base and text make the same items on every worker. Fingerprint
// and content are hashes of the base's, the text, and all items, so that an
// arrangement of a copy of the data has the same content.
#pragma once

#include "absl/status/statusor.h"
#include "core/plan/arrangement.h"
#include "core/plan/job.h"
#include "worker/source/arranged/columns.h"
#include "worker/source/arranged/listing_trail.h"
#include "worker/source/source.h"

namespace leat::worker {

// The dataset that is arranged.
struct ArrangeFrom {
  const DatasetInfo& base;
  const Node& reader;    // the base's
  const Source& source;  // its opened index
  // Reads sizes of images for `where`; nullptr: it has no such columns.
  ImageSizeOf image_size = nullptr;
  // Keeps what is read of records, and is told how far the listing is. May be
  // nullptr.
  TrailKeeper* keeper = nullptr;
  ListingTrail::Options trail{};
};

// The index goes to SourceLimits::blocks, or into BuiltIndex::blob, which
// OpenArranged opens. Records that a condition has to read are read by
// SourceLimits::listing_threads. kInvalidArgument: as ForEachNumber (numbers.h)
// and Columns::Bind (columns.h), as GroupsFor (sample_groups.h) and
// GroupedWriter (grouped_writer.h), no sample is left, or values are packed that
// the reader does not have, or not so (CheckPackedTypes). kResourceExhausted:
// over the limits. kCancelled: SourceLimits::cancelled. Others: storage's, and
// the keeper's. REQUIRES: `arrangement` passes CheckArrangement, and is set.
absl::StatusOr<BuiltIndex> Arrange(const Arrangement& arrangement,
                                   const ArrangeFrom& from,
                                   const SourceLimits& limits);

}  // namespace leat::worker

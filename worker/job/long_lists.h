// SPDX-License-Identifier: Apache-2.0
//
// The entries of a reader's long lists, for the worker that lists its dataset.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/pipeline/graph.h"
#include "worker/job/index_cache.h"

namespace leat::worker {

// Gives each LongList of the reader its values, block by block; one that has
// them keeps them. Waits `patience` at most for a block; `pause` returns false
// to give up. kDataLoss: a block or the whole is not what the digest says.
// kInvalidArgument: an entry that the argument does not take. Names argument
// and entry, or block.
absl::Status FetchLongLists(BlockFetcher* fetcher, Duration patience,
                            const std::function<bool(Duration)>& pause,
                            Node* reader);

}  // namespace leat::worker

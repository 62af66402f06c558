// SPDX-License-Identifier: Apache-2.0
//
// Fetches the entries of a reader's long lists, for the worker that lists its
// dataset.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "core/clock.h"
#include "core/pipeline/graph.h"
#include "worker/job/index_cache.h"

namespace leat::worker {

// Gives each LongList of the reader its values, block by block; a list that has
// values keeps them. Waits at most `patience` for a block; `pause` returns
// false to give up. kDataLoss: a block or the whole does not match the digest.
// kInvalidArgument: an entry that the argument does not take. Errors name the
// argument and the entry, or the block.
absl::Status FetchLongLists(BlockFetcher* fetcher, Duration patience,
                            const std::function<bool(Duration)>& pause,
                            Node* reader);

}  // namespace leat::worker

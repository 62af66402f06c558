// SPDX-License-Identifier: Apache-2.0
//
// The blocks of jobs' long lists (core/pipeline/long_list.h): which of them are
// in use, so that they are kept and backed up.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "core/hash.h"
#include "core/pipeline/long_list.h"
#include "core/plan/job.h"

namespace leat::server {

using ListBlocks = std::map<Digest, uint64_t>;  // bytes, by name

void AddBlocks(const LongList& list, ListBlocks* to);
// Adds those of all lists of the job's pipelines.
void AddBlocks(const JobSpec& spec, ListBlocks* to);

// Returns the blocks of an event as it was stored (leat.stored.v1.Event), even
// if this version cannot use the job that it creates: a later version may, and
// wants its lists. Other events have none.
ListBlocks BlocksOfRecord(std::string_view record);

}  // namespace leat::server

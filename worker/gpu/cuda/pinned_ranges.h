// SPDX-License-Identifier: Apache-2.0
//
// The memory that this process has page-locked through the driver. A copy of
// other memory makes the thread that asks for it wait, so it is counted
// (DeviceQueue::pageable_copies).
#pragma once

#include <cstddef>

namespace leat::worker {

void AddPinned(const void* memory, size_t bytes);
void RemovePinned(const void* memory);
// True if all these bytes lie in one such memory. All three are thread-safe.
bool IsPinned(const void* memory, size_t bytes);

}  // namespace leat::worker

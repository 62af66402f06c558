// SPDX-License-Identifier: Apache-2.0
//
// How kernels access a block, its descriptors, and the memory they refer to.
//
// C++ and CUDA compile this file. Blocks come from FusedGroup and are trusted.
#pragma once

#include <cstdint>
#include <cstring>

#include "worker/image/formulas/pixel.h"

namespace leat::worker {

template <class T>
LEAT_PIXEL const T* InBlock(const uint8_t* block, uint32_t offset) {
  return reinterpret_cast<const T*>(block + offset);
}

// Returns the memory at an address that the block has. REQUIRES: it is not 0,
// since CUDA does not specify what __isGlobal returns for a null pointer.
LEAT_PIXEL __attribute__((returns_nonnull)) uint8_t* AtAddress(
    uint64_t address) {
  uint8_t* pointer;
  static_assert(sizeof pointer == sizeof address);
  memcpy(&pointer, &address, sizeof pointer);
#ifdef __CUDA_ARCH__
  // Spares loads and stores the test for the kind of memory.
  __builtin_assume(__isGlobal(pointer));
#endif
  return pointer;
}

// `from` is aligned; `to` need not be.
template <class T>
LEAT_PIXEL void StoreElement(const uint8_t* from, uint8_t* to) {
  const T value = *reinterpret_cast<const T*>(from);
  if (reinterpret_cast<uintptr_t>(to) % sizeof(T) == 0)
    *reinterpret_cast<T*>(to) = value;
  else
    memcpy(to, &value, sizeof value);
}

}  // namespace leat::worker

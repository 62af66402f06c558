// SPDX-License-Identifier: Apache-2.0
//
// TiffMemory: a TIFF file in memory, in the way libtiff reads files.
#pragma once

#include <tiffio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace leat::worker {

struct TiffMemory {
  std::span<const std::byte> bytes;
  uint64_t at = 0;

  // Returns nullptr if the file is damaged or there is too little memory; a
  // handler of `options` has then been called. The result points to this object.
  TIFF* Open(TIFFOpenOptions* options) {
    return TIFFClientOpenExt("TIFF", "r", this, Read, Write, Seek, Close, Size,
                             Map, Unmap, options);
  }

 private:
  static TiffMemory* Of(thandle_t handle) {
    return static_cast<TiffMemory*>(handle);
  }
  static tmsize_t Read(thandle_t handle, void* to, tmsize_t size) {
    TiffMemory* const memory = Of(handle);
    if (memory->at >= memory->bytes.size() || size < 0) return 0;
    const auto count = std::min<uint64_t>(static_cast<uint64_t>(size),
                                          memory->bytes.size() - memory->at);
    memcpy(to, memory->bytes.data() + memory->at, count);
    memory->at += count;
    return static_cast<tmsize_t>(count);
  }
  static tmsize_t Write(thandle_t, void*, tmsize_t) { return 0; }
  static toff_t Seek(thandle_t handle, toff_t offset, int whence) {
    TiffMemory* const memory = Of(handle);
    memory->at = whence == SEEK_SET   ? offset
                 : whence == SEEK_CUR ? memory->at + offset
                                      : memory->bytes.size() + offset;
    return memory->at;
  }
  static int Close(thandle_t) { return 0; }
  static toff_t Size(thandle_t handle) { return Of(handle)->bytes.size(); }
  static int Map(thandle_t handle, void** base, toff_t* size) {
    const std::span<const std::byte> all = Of(handle)->bytes;
    *base = const_cast<std::byte*>(all.data());  // libtiff only reads it
    *size = all.size();
    return 1;
  }
  static void Unmap(thandle_t, void*, toff_t) {}
};

}  // namespace leat::worker

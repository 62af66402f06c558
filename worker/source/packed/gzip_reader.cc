// SPDX-License-Identifier: Apache-2.0
#include "worker/source/packed/gzip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/cluster/fault.h"
#include "core/status.h"

namespace leat::worker {
namespace {

constexpr size_t kChunk = 1 << 20;
constexpr size_t kMaxOutput = 1 << 30;  // per call of zlib

}  // namespace

struct GzipReader::State {
  explicit State(const StorageFile& stored) : file(stored) {}

  // Reads the next bytes of the file. REQUIRES: none are left.
  absl::Status Refill() {
    const uint64_t left = file.size() - offset;
    chunk.resize(std::min<uint64_t>(kChunk, left));
    RETURN_IF_ERROR(file.ReadAt(offset, chunk));
    offset += chunk.size();
    zlib.next_in = reinterpret_cast<Bytef*>(chunk.data());
    zlib.avail_in = static_cast<uInt>(chunk.size());
    return absl::OkStatus();
  }

  const StorageFile& file;
  uint64_t offset = 0;  // in the file: read so far
  std::vector<std::byte> chunk;
  z_stream zlib = {};
  bool ready = false;
  bool in_member = false;
};

absl::StatusOr<bool> IsGzip(const StorageFile& file) {
  std::array<std::byte, 2> magic = {};
  if (file.size() < magic.size()) return false;
  RETURN_IF_ERROR(file.ReadAt(0, magic));
  return magic[0] == std::byte{0x1f} && magic[1] == std::byte{0x8b};
}

GzipReader::GzipReader(const StorageFile& file)
    : state_(std::make_unique<State>(file)) {
  // 16 selects gzip's header and checksum.
  state_->ready = inflateInit2(&state_->zlib, 16 + MAX_WBITS) == Z_OK;
}

GzipReader::~GzipReader() {
  if (state_->ready) inflateEnd(&state_->zlib);
}

absl::StatusOr<size_t> GzipReader::Read(std::span<std::byte> into) {
  State& state = *state_;
  z_stream& zlib = state.zlib;
  if (!state.ready)
    return WithFault(
        ResourceExhausted("{}: no memory to decompress it", state.file.name()),
        Fault::kWorker);
  size_t done = 0;
  while (done < into.size()) {
    if (zlib.avail_in == 0) {
      if (state.offset == state.file.size()) {
        if (!state.in_member) break;
        return DataLoss("{}: the gzip stream is cut off at byte {}",
                        state.file.name(), state.offset);
      }
      RETURN_IF_ERROR(state.Refill());
    }
    const size_t room = std::min(into.size() - done, kMaxOutput);
    zlib.next_out = reinterpret_cast<Bytef*>(into.data() + done);
    zlib.avail_out = static_cast<uInt>(room);
    state.in_member = true;
    const int code = inflate(&zlib, Z_NO_FLUSH);
    done += room - zlib.avail_out;
    if (code == Z_STREAM_END) {
      state.in_member = false;
      inflateReset(&zlib);  // another member may follow
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return DataLoss("{}: damaged gzip stream before byte {}: {}",
                      state.file.name(), state.offset - zlib.avail_in,
                      zlib.msg == nullptr ? "no reason given" : zlib.msg);
    }
  }
  return done;
}

}  // namespace leat::worker

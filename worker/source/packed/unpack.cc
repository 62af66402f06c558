// SPDX-License-Identifier: Apache-2.0
#include "worker/source/packed/unpack.h"

#include <brotli/decode.h>
#include <openssl/evp.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>

#include "core/cluster/fault.h"
#include "core/hash.h"
#include "core/status.h"

namespace leat::worker {
namespace {

absl::Status UnpackZstd(std::span<const std::byte> from,
                        std::span<std::byte> to) {
  const size_t got =
      ZSTD_decompress(to.data(), to.size(), from.data(), from.size());
  if (ZSTD_isError(got))
    return DataLoss("zstd: {} (want {} bytes)", ZSTD_getErrorName(got),
                    to.size());
  if (got != to.size())
    return DataLoss("zstd: {} bytes, want {}", got, to.size());
  return absl::OkStatus();
}

absl::Status UnpackBrotli(std::span<const std::byte> from,
                          std::span<std::byte> to) {
  size_t size = to.size();
  const BrotliDecoderResult result = BrotliDecoderDecompress(
      from.size(), reinterpret_cast<const uint8_t*>(from.data()), &size,
      reinterpret_cast<uint8_t*>(to.data()));
  if (result != BROTLI_DECODER_RESULT_SUCCESS || size != to.size())
    return DataLoss("brotli: malformed, or not {} bytes unpacked", to.size());
  return absl::OkStatus();
}

// Consecutive members are one file.
absl::Status UnpackGzip(std::span<const std::byte> from,
                        std::span<std::byte> to) {
  z_stream stream = {};
  if (inflateInit2(&stream, 15 + 16) != Z_OK)
    return WithFault(ResourceExhausted("gzip: no memory"), Fault::kWorker);
  constexpr size_t kStep = std::numeric_limits<uInt>::max();
  size_t in = 0;
  size_t out = 0;
  // A byte that must stay unwritten: it reveals data longer than `to`.
  Bytef beyond = 0;
  int result = Z_OK;
  while (in < from.size() || result == Z_OK) {
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data() + in));
    const size_t give = std::min(kStep, from.size() - in);
    stream.avail_in = static_cast<uInt>(give);
    const size_t room = std::min(kStep, to.size() - out);
    stream.next_out =
        room > 0 ? reinterpret_cast<Bytef*>(to.data() + out) : &beyond;
    const uInt space = room > 0 ? static_cast<uInt>(room) : 1;
    stream.avail_out = space;
    result = inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in;
    const size_t made = space - stream.avail_out;
    out += made;
    if (room == 0 && made > 0) break;  // out is over to.size(): an error
    if (result == Z_STREAM_END) {
      if (in < from.size() && inflateReset(&stream) != Z_OK) break;
      continue;
    }
    if (result != Z_OK) break;
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END || in != from.size() || out != to.size())
    return DataLoss("gzip: malformed, or not {} bytes unpacked", to.size());
  return absl::OkStatus();
}

const EVP_MD* DigestOf(std::string_view name) {
  if (name.starts_with("shake")) return nullptr;  // no fixed length
  std::string spelled(name);
  std::replace(spelled.begin(), spelled.end(), '_', '-');
  if (spelled == "blake2b") spelled = "blake2b512";
  if (spelled == "blake2s") spelled = "blake2s256";
  return EVP_get_digestbyname(spelled.c_str());
}

}  // namespace

absl::StatusOr<Compression> ParseCompression(std::string_view name) {
  const std::string_view kind = name.substr(0, name.find(':'));
  if (kind == "zstd") return Compression::kZstd;
  if (kind == "gz") return Compression::kGzip;
  if (kind == "br") return Compression::kBrotli;
  return Unimplemented("compression \"{}\": want zstd, gz or br",
                       name.substr(0, 40));
}

absl::Status Unpack(Compression compression, std::span<const std::byte> from,
                    std::span<std::byte> to) {
  switch (compression) {
    case Compression::kZstd:
      return UnpackZstd(from, to);
    case Compression::kGzip:
      return UnpackGzip(from, to);
    case Compression::kBrotli:
      return UnpackBrotli(from, to);
    case Compression::kNone:
      break;
  }
  return Internal("nothing to unpack");
}

bool IsKnownHash(std::string_view name) { return DigestOf(name) != nullptr; }

absl::Status CheckHashes(const std::vector<std::string>& hashes,
                         std::span<const std::byte> bytes) {
  for (const std::string& hash : hashes) {
    const size_t colon = hash.find(':');
    const std::string_view name = std::string_view(hash).substr(0, colon);
    const EVP_MD* const kind = DigestOf(name);
    if (kind == nullptr || colon == std::string::npos) continue;
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), digest, &size, kind, nullptr) !=
        1)
      return Internal("{} failed", name);
    const std::string got = ToHex({digest, size});
    if (got != hash.substr(colon + 1))
      return DataLoss("its {} is {}, the index says {}", name, got,
                      hash.substr(colon + 1, 2 * EVP_MAX_MD_SIZE));
  }
  return absl::OkStatus();
}

}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/session/own_decoders.h"

#include <set>
#include <string>
#include <utility>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/compute/host_share.h"
#include "worker/image/base/known_images.h"
#include "worker/image/codecs/libraries.h"
#include "worker/image/program/decoder_digest.h"

namespace leat::worker {
namespace {

v1::Decoders ToProto(DecoderClass decoder_class, const Digest& digest,
                     std::string libraries) {
  v1::Decoders proto;
  proto.set_decoder_class(static_cast<v1::DecoderClass>(decoder_class));
  proto.set_digest(digest.data(), digest.size());
  proto.set_libraries(std::move(libraries));
  return proto;
}

// Returns the properties that decide the pixels of a GPU's decoder, which
// exclude its size and memory.
std::set<std::string> KindsOf(const std::vector<GpuInfo>& devices) {
  std::set<std::string> kinds;
  for (const GpuInfo& gpu : devices)
    if (!gpu.decoder_version.empty())
      kinds.insert(fmt::format("nvJPEG {} on compute {} {} JPEG engines",
                               gpu.decoder_version, gpu.compute,
                               gpu.jpeg_engines > 0 ? "with" : "without"));
  return kinds;
}

// Returns the digest for people, formatted as elsewhere, even if its bytes are
// not a digest.
std::string Text(const v1::Decoders& decoders) {
  return fmt::format(
      "{} ({})",
      ToHex({reinterpret_cast<const uint8_t*>(decoders.digest().data()),
             decoders.digest().size()})
          .substr(0, ShortHex(Digest{}).size()),
      decoders.libraries());
}

}  // namespace

absl::StatusOr<std::vector<v1::Decoders>> OwnDecoders(const GpuWorker& gpus) {
  ASSIGN_OR_RETURN(const Digest exact, DecoderDigest(KnownImages()));
  const std::string libraries = DecoderLibraries();
  std::vector<v1::Decoders> own;
  for (const DecoderClass each : gpus.decoder_classes()) {
    if (each == DecoderClass::kExact) {
      own.push_back(ToProto(each, exact, libraries));
      continue;
    }
    std::set<std::string> kinds = KindsOf(gpus.devices());
    if (HasHostShare(each)) kinds.emplace(kHostShareText);
    Sha256 hash;
    hash.Update(std::as_bytes(std::span(exact)));
    for (const std::string& kind : kinds) hash.UpdateField(kind);
    own.push_back(
        ToProto(each, hash.Finish(),
                fmt::format("{}, {}", fmt::join(kinds, ", "), libraries)));
  }
  return own;
}

absl::Status CheckDecoders(const std::vector<v1::Decoders>& own,
                           const v1::GetJobResponse& job) {
  if (!job.has_decoders()) return absl::OkStatus();
  for (const v1::Decoders& mine : own) {
    if (mine.decoder_class() != job.decoders().decoder_class() ||
        mine.digest() == job.decoders().digest())
      continue;
    return WithFault(
        Unavailable("job {} began with {} decoders {}, this worker's are {}: "
                    "it would make other bytes",
                    job.job().spec().name(),
                    Name(static_cast<DecoderClass>(mine.decoder_class())),
                    Text(job.decoders()), Text(mine)),
        Fault::kWorker);
  }
  return absl::OkStatus();
}

}  // namespace leat::worker

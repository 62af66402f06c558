// SPDX-License-Identifier: Apache-2.0
#include "client/batch/position.h"

#include "core/status.h"
#include "leat/stored/v1/records.pb.h"

namespace leat::client {
namespace {

constexpr std::string_view kMagic = "LEATTOK1";
constexpr size_t kChecksumBytes = 8;
constexpr size_t kMaxPositionBytes = 1023;
constexpr size_t kMaxPayloadBytes =
    kMaxPositionBytes - kMagic.size() - kChecksumBytes;
constexpr uint32_t kFormat = 1;

std::string Checksum(std::string_view payload) {
  const Digest digest = HashOf(payload);
  return {reinterpret_cast<const char*>(digest.data()), kChecksumBytes};
}

std::string ShortHash(std::string_view hash) {
  return ToHex({reinterpret_cast<const uint8_t*>(hash.data()),
                std::min<size_t>(hash.size(), 6)});
}

// Returns why a position of another plan is refused.
absl::Status Refused(const stored::v1::Position& position, std::string_view job,
                     const PositionHashes& own) {
  const std::string shares = SharesDifference(position, own.shares);
  const std::string theirs = ShortHash(position.plan_hash());
  const std::string ours = ShortHash(AsText(own.position_hash));
  if (position.job() != job)
    return InvalidArgument(
        "position: of job \"{}\" (plan {}){}; want one of job \"{}\" (plan {})",
        position.job(), theirs, shares.empty() ? "" : ": " + shares, job, ours);
  return InvalidArgument(
      "position: of another plan of job \"{}\" ({}, now {}): {}; to begin at "
      "its step nevertheless, pass start=({}, {}), its epoch and step, and no "
      "position",
      job, theirs, ours,
      shares.empty()
          ? "its pipeline, seed, batch, order or shares up to there have "
            "changed, or its dataset: a file's name below the dataset's root, "
            "a size, a label or an archive's index"
          : shares,
      position.epoch(), position.step());
}

}  // namespace

std::string EncodePosition(std::string_view job, const Digest& position_hash,
                           const EpochStep& next,
                           const PositionShares& shares) {
  stored::v1::Position position;
  position.set_format(kFormat);
  position.set_job(std::string(job));
  position.set_plan_hash(position_hash.data(), position_hash.size());
  position.set_epoch(next.epoch);
  position.set_step(next.step);
  AddShares(shares, &position);
  if (position.ByteSizeLong() > kMaxPayloadBytes) position.clear_shares();
  const std::string payload = position.SerializeAsString();
  return std::string(kMagic) + Checksum(payload) + payload;
}

absl::StatusOr<EpochStep> DecodePosition(std::string_view bytes,
                                         std::string_view job, HashesAt own,
                                         uint64_t steps_per_epoch) {
  if (bytes.size() > kMaxPositionBytes || !bytes.starts_with(kMagic))
    return InvalidArgument(
        "position: {} bytes that are not a Leat position; want the bytes that "
        "position() returned",
        bytes.size());
  bytes.remove_prefix(kMagic.size());
  stored::v1::Position position;
  if (bytes.size() < kChecksumBytes ||
      Checksum(bytes.substr(kChecksumBytes)) !=
          bytes.substr(0, kChecksumBytes) ||
      !position.ParseFromArray(bytes.data() + kChecksumBytes,
                               static_cast<int>(bytes.size() - kChecksumBytes)))
    return InvalidArgument(
        "position: damaged (the checksum does not match); use another "
        "checkpoint");
  if (position.format() != kFormat)
    return InvalidArgument("position: format {}; this library reads format {}",
                           position.format(), kFormat);
  const PositionHashes hashes = own({position.epoch(), position.step()});
  if (position.plan_hash() != AsText(hashes.position_hash) &&
      position.plan_hash() != AsText(hashes.plan_hash))
    return Refused(position, job, hashes);
  if (position.step() >= steps_per_epoch)
    return InvalidArgument(
        "position: step {}; job \"{}\" has {} steps an epoch", position.step(),
        job, steps_per_epoch);
  return EpochStep{position.epoch(), position.step()};
}

}  // namespace leat::client

// SPDX-License-Identifier: Apache-2.0
#include "client/batch/token.h"

#include "core/status.h"
#include "leat/stored/v1/records.pb.h"

namespace leat::client {
namespace {

constexpr std::string_view kMagic = "LEATTOK1";
constexpr size_t kChecksumBytes = 8;
constexpr size_t kMaxTokenBytes = 1023;
constexpr uint32_t kFormat = 1;

std::string Checksum(std::string_view payload) {
  const Digest digest = HashOf(payload);
  return {reinterpret_cast<const char*>(digest.data()), kChecksumBytes};
}

std::string ShortHash(std::string_view hash) {
  return ToHex({reinterpret_cast<const uint8_t*>(hash.data()),
                std::min<size_t>(hash.size(), 6)});
}

}  // namespace

std::string EncodeToken(std::string_view job, const Digest& token_hash,
                        const Position& position) {
  stored::v1::Token token;
  token.set_format(kFormat);
  token.set_job(std::string(job));
  token.set_plan_hash(token_hash.data(), token_hash.size());
  token.set_epoch(position.epoch);
  token.set_step(position.step);
  const std::string payload = token.SerializeAsString();
  return std::string(kMagic) + Checksum(payload) + payload;
}

absl::StatusOr<Position> DecodeToken(std::string_view bytes,
                                     std::string_view job,
                                     const TokenNames& own,
                                     uint64_t steps_per_epoch) {
  if (bytes.size() > kMaxTokenBytes || !bytes.starts_with(kMagic))
    return InvalidArgument(
        "token: {} bytes that are not a Leat token; want the bytes that "
        "token() returned",
        bytes.size());
  bytes.remove_prefix(kMagic.size());
  stored::v1::Token token;
  if (bytes.size() < kChecksumBytes ||
      Checksum(bytes.substr(kChecksumBytes)) !=
          bytes.substr(0, kChecksumBytes) ||
      !token.ParseFromArray(bytes.data() + kChecksumBytes,
                            static_cast<int>(bytes.size() - kChecksumBytes)))
    return InvalidArgument(
        "token: damaged (the checksum does not match); use another checkpoint");
  if (token.format() != kFormat)
    return InvalidArgument("token: format {}; this library reads format {}",
                           token.format(), kFormat);
  const std::string_view own_hash = AsText(own.token_hash);
  if (token.plan_hash() != own_hash &&
      token.plan_hash() != AsText(own.plan_hash)) {
    if (token.job() != job)
      return InvalidArgument(
          "token: of job \"{}\" (plan {}), not of \"{}\" "
          "(plan {})",
          token.job(), ShortHash(token.plan_hash()), job, ShortHash(own_hash));
    return InvalidArgument(
        "token: of another plan of job \"{}\" ({}, now {}): its pipeline, "
        "seed, batch or order has changed, or its dataset: a file's name below "
        "the dataset's root, a size, a label or an archive's index; without a "
        "token one can begin where it stands, at epoch {}, step {}",
        job, ShortHash(token.plan_hash()), ShortHash(own_hash), token.epoch(),
        token.step());
  }
  if (token.step() >= steps_per_epoch)
    return InvalidArgument("token: step {}; job \"{}\" has {} steps an epoch",
                           token.step(), job, steps_per_epoch);
  return Position{token.epoch(), token.step()};
}

}  // namespace leat::client

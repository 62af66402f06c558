// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/position_file.h"

#include "absl/strings/escaping.h"
#include "core/hash.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"

namespace leat::cli {
namespace {

constexpr std::string_view kMagic = "LEATTOK1";
constexpr size_t kChecksumBytes = 8;

std::string Checksum(std::string_view payload) {
  const Digest digest = HashOf(payload);
  return {reinterpret_cast<const char*>(digest.data()), kChecksumBytes};
}

}  // namespace

bool LooksLikePosition(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

absl::StatusOr<PositionInfo> ParsePosition(std::string_view bytes) {
  if (!LooksLikePosition(bytes)) return DataLoss("not a position");
  bytes.remove_prefix(kMagic.size());
  if (bytes.size() < kChecksumBytes)
    return DataLoss("a position that is cut off");
  const std::string_view payload = bytes.substr(kChecksumBytes);
  stored::v1::Position position;
  if (!bytes.starts_with(Checksum(payload)) ||
      !position.ParseFromArray(payload.data(),
                               static_cast<int>(payload.size()))) {
    return DataLoss("a damaged position: the checksum does not match");
  }
  return PositionInfo{position.format(), position.job(),
                      absl::BytesToHexString(position.plan_hash()),
                      position.epoch(), position.step()};
}

}  // namespace leat::cli

// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/token_file.h"

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

bool LooksLikeToken(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

absl::StatusOr<TokenInfo> ParseToken(std::string_view bytes) {
  if (!LooksLikeToken(bytes)) return DataLoss("not a token");
  bytes.remove_prefix(kMagic.size());
  if (bytes.size() < kChecksumBytes) return DataLoss("a token that is cut off");
  const std::string_view payload = bytes.substr(kChecksumBytes);
  stored::v1::Token token;
  if (!bytes.starts_with(Checksum(payload)) ||
      !token.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return DataLoss("a damaged token: the checksum does not match");
  }
  return TokenInfo{token.format(), token.job(),
                   absl::BytesToHexString(token.plan_hash()), token.epoch(),
                   token.step()};
}

}  // namespace leat::cli

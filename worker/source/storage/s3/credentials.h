// SPDX-License-Identifier: Apache-2.0
//
// Finds keys, region and endpoint of S3 in the usual places.
//
//   keys      AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; then
//             the profile's in the credentials file, then in the config file
//   region    AWS_REGION, AWS_DEFAULT_REGION, the profile's
//   endpoint  AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's
//   profile   AWS_PROFILE, "default"
//   files     AWS_SHARED_CREDENTIALS_FILE, ~/.aws/credentials;
//             AWS_CONFIG_FILE, ~/.aws/config
//
// For gs:// the keys are GCS_KEY and GCS_SECRET (an HMAC key).
//
// Secrets are in no log and no message: Redact() removes them from servers'
// texts.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "worker/source/storage/base/environment.h"

namespace leat::worker {

struct Credentials {
  std::string key_id;
  std::string secret;
  std::string token;   // may be empty
  std::string source;  // for messages: where they are from

  bool empty() const { return key_id.empty(); }
  // Returns `text` with every secret of these replaced by "***".
  std::string Redact(std::string_view text) const;
  bool operator==(const Credentials&) const = default;
};

struct CloudSettings {
  Credentials credentials;  // empty: none found
  std::string looked_in;    // for the message that none were found
  std::string region;       // empty: not set
  std::string endpoint;     // empty: not set
};

// kInvalidArgument: half a pair of keys, a malformed file (names file and
// line), a named profile that is in no file. kPermissionDenied, ...: a file
// that cannot be read.
absl::StatusOr<CloudSettings> LoadS3Settings(const GetEnv& env);
absl::StatusOr<CloudSettings> LoadGsSettings(const GetEnv& env);

}  // namespace leat::worker

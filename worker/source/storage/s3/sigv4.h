// SPDX-License-Identifier: Apache-2.0
//
// Amazon's signature version 4, as S3 requires it: paths are escaped once and
// not normalised. https://docs.aws.amazon.com/IAM/latest/UserGuide/
// create-signed-request.html
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.h"

namespace leat::worker {

// The SHA-256 of no bytes: the payload of every request.
inline constexpr std::string_view kEmptyPayload =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

struct SignedRequest {
  std::string method = "GET";
  std::string path = "/";  // escaped, as it is sent
  std::vector<std::pair<std::string, std::string>> query;  // not escaped
  // Names in lower case; "host" and "x-amz-date" must be there.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string payload_sha256{kEmptyPayload};
};

struct SigningScope {
  std::string region;
  std::string service = "s3";
};

// Returns for example "a=1&b=%20": escaped, sorted; it is signed and must be
// sent.
std::string CanonicalQuery(
    std::vector<std::pair<std::string, std::string>> query);

// Returns for example "20150830T123600Z".
std::string SigningTime(WallTime time);

// Returns the value of the Authorization header. REQUIRES: `amz_date` is
// SigningTime's and the request's x-amz-date.
std::string Authorization(const SignedRequest& request,
                          const SigningScope& scope, std::string_view amz_date,
                          std::string_view key_id, std::string_view secret);

}  // namespace leat::worker

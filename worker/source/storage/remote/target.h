// SPDX-License-Identifier: Apache-2.0
//
// S3Account: endpoint, region and keys of an S3-compatible service. Target: one
// object, or one bucket's listing, and how to request it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/mutex.h"
#include "worker/source/storage/base/config.h"
#include "worker/source/storage/base/uri.h"
#include "worker/source/storage/http/http.h"
#include "worker/source/storage/remote/verdict.h"
#include "worker/source/storage/s3/credentials.h"

namespace leat::worker {

// Thread-safe.
class S3Account {
 public:
  // kUnauthenticated: no keys and not `anonymous`. kInvalidArgument: an
  // endpoint that is not an http(s) URL. Others as LoadS3Settings.
  static absl::StatusOr<std::shared_ptr<S3Account>> Create(
      UriScheme scheme, const StorageConfig& config, GetEnv env);

  // Reads the keys again. Returns false if they are unchanged, or cannot be
  // read.
  bool Refresh();

  Credentials credentials() const;
  const std::string& region() const { return region_; }
  // True if the operator sets the endpoint.
  bool has_endpoint() const { return !endpoint_.empty(); }
  // Returns "http://host:1/base/bucket", or Amazon's "https://bucket.s3....".
  std::string BucketUrl(const std::string& bucket) const;

 private:
  S3Account(UriScheme scheme, bool anonymous, GetEnv env)
      : scheme_(scheme), anonymous_(anonymous), env_(std::move(env)) {}
  absl::StatusOr<CloudSettings> Load() const;

  // Constant after Create.
  const UriScheme scheme_;
  const bool anonymous_;
  const GetEnv env_;
  std::string region_;
  std::string endpoint_;  // empty: Amazon's
  mutable Mutex mu_;
  Credentials credentials_ ABSL_GUARDED_BY(mu_);
};

struct Target {
  std::string name;  // for messages
  std::string url;   // escaped, without S3's query
  std::vector<std::pair<std::string, std::string>> query;  // S3's, not escaped
  std::shared_ptr<S3Account> account;                      // nullptr: http

  // Returns the request, signed for `now` if there is an account with keys.
  HttpRequest Request(bool head, WallTime now) const;
  // For Explain. `what`: "cannot read 10 bytes at 5".
  Asked AskedFor(std::string_view what) const;
};

// `account`: for kS3 and kGs.
Target ObjectTarget(const StorageUri& uri, std::shared_ptr<S3Account> account);

}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
//
// Credentials: what this process shows to the service. An access token that
// came from a file is read again for each call and stream that begins, so that
// a training outlives its token:
//
//   leat access create --role trainer --name vision > token
//   leat access revoke OLD: the streams end, and begin again with the new one
//
// Thread-safe. Reads the file on the caller's thread, without a lock.
#pragma once

#include <string>

#include "core/mutex.h"
#include "rpc/call/auth.h"

namespace leat::client {

class Credentials {
 public:
  // `token_file`: where security.token came from; empty: it stays.
  explicit Credentials(rpc::Security security, std::string token_file = {});

  // Returns the credentials for what begins now. While the file has no token
  // (somebody writes it), its last one.
  rpc::Security Now() const;

 private:
  const rpc::Security security_;
  const std::string token_file_;
  mutable Mutex mu_;
  mutable std::string token_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::client

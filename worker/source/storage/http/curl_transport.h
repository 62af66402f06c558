// SPDX-License-Identifier: Apache-2.0
//
// CurlTransport: HttpTransport by libcurl; one thread drives all connections,
// which are kept open and reused. It uses HTTP/1.1, since parallel ranges gain
// nothing from one shared connection.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/source/storage/base/allowed.h"
#include "worker/source/storage/base/config.h"
#include "worker/source/storage/http/http.h"

namespace leat::worker {

class CurlTransport : public HttpTransport {
 public:
  // kInternal: libcurl cannot be set up.
  static absl::StatusOr<std::unique_ptr<CurlTransport>> Create(
      const StorageConfig& config, std::shared_ptr<const AllowedReads> allowed);
  // REQUIRES: no transfer is under way.
  ~CurlTransport() override;

  Id Begin(HttpRequest request, Done done) override;
  void Cancel(Id id) override;
  bool Saturated() const override;

 private:
  class Loop;
  explicit CurlTransport(std::unique_ptr<Loop> loop);
  const std::unique_ptr<Loop> loop_;
};

}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
//
// Link: a data stream to one worker, as the engine sees it. The gRPC link has a
// channel (a TCP connection) of its own.
//
// Send and Cancel are thread-safe. A link keeps itself and its handler alive
// until OnClosed has returned.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "leat/v1/worker.pb.h"
#include "rpc/call/raw_frame.h"

namespace leat::client {

class Credentials;

// Calls are serial.
class LinkHandler {
 public:
  virtual ~LinkHandler() = default;
  // Must not block. An error ends the stream, and is passed to OnClosed.
  virtual absl::Status OnRows(const rpc::RowsFrame& frame) = 0;
  // The last call, exactly once, also if the stream was never established.
  virtual void OnClosed(const absl::Status& status) = 0;
};

class Link {
 public:
  virtual ~Link() = default;
  virtual absl::Status Send(const v1::RowsRequest& request) = 0;
  // OnClosed follows soon. Idempotent.
  virtual void Cancel() = 0;
};

using LinkFactory = std::function<std::shared_ptr<Link>(
    const std::string& address, std::shared_ptr<LinkHandler> handler)>;

// Makes links by WorkerService.Rows. Over plaintext TCP, messages carry
// checksums: one that does not match ends the stream with kDataLoss, before any
// of its data is used.
LinkFactory GrpcLinks(std::shared_ptr<const Credentials> credentials);

}  // namespace leat::client

// SPDX-License-Identifier: Apache-2.0
//
// Makes the TLS context of an HttpServer's connections.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "absl/status/statusor.h"
#include "rpc/http/server.h"

namespace leat::rpc {

using TlsContext = std::shared_ptr<boost::asio::ssl::context>;

// Returns nullptr for plaintext. kInvalidArgument names the flag.
absl::StatusOr<TlsContext> TlsContextFor(const HttpTls& tls);

}  // namespace leat::rpc

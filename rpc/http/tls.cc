// SPDX-License-Identifier: Apache-2.0
#include "rpc/http/tls.h"

#include <boost/asio/buffer.hpp>

#include "core/status.h"
#include "openssl/ssl.h"

namespace leat::rpc {
namespace {

namespace net = boost::asio;
using boost::system::error_code;

absl::Status TlsError(std::string_view flag, const error_code& error) {
  return InvalidArgument("{}: {}", flag, error.message());
}

}  // namespace

absl::StatusOr<TlsContext> TlsContextFor(const HttpTls& tls) {
  if (tls.cert.empty()) return TlsContext();
  auto context =
      std::make_shared<net::ssl::context>(net::ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // Sessions are not resumed: each connection is asked for a certificate.
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  error_code error;
  context->use_certificate_chain(net::buffer(tls.cert), error);
  if (error) return TlsError("--tls-cert", error);
  context->use_private_key(net::buffer(tls.key), net::ssl::context::pem, error);
  if (error) return TlsError("--tls-key", error);
  if (tls.ca.empty()) return context;
  context->add_certificate_authority(net::buffer(tls.ca), error);
  if (error) return TlsError("--tls-ca", error);
  // A caller without one can read only the health pages (status_pages.h).
  context->set_verify_mode(net::ssl::verify_peer, error);
  if (error) return TlsError("--tls-ca", error);
  return context;
}

}  // namespace leat::rpc

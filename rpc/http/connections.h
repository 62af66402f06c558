// SPDX-License-Identifier: Apache-2.0
//
// HttpConnections: the connections of an HttpServer. Each reads one request
// after the other, and writes its response.
//
// All work on connections runs on the loop's thread, so there is no lock. A
// connection is owned by the operation in progress on it; the list has the
// connections in the order in which their requests began:
//
//   list_: [sends nothing since 9 s] [idle since 2 s] [began now]
//           closed first, if there are too many
#pragma once

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <utility>

#include "rpc/http/message.h"
#include "rpc/http/server.h"
#include "rpc/http/tls.h"

namespace leat::rpc {

class HttpConnections {
 public:
  using Request = boost::beast::http::request<boost::beast::http::string_body>;
  // `certified`: as in HttpRequest.
  using Answer =
      std::function<HttpResponse(const Request& request, bool certified)>;

  // `options` outlives it, and it outlives the operations in progress.
  HttpConnections(const HttpOptions* options, Answer answer)
      : options_(*options), answer_(std::move(answer)) {}
  HttpConnections(const HttpConnections&) = delete;
  HttpConnections& operator=(const HttpConnections&) = delete;

  // Serves a new connection. `context`: nullptr without TLS.
  void Begin(boost::asio::ip::tcp::socket socket, const TlsContext& context);

 private:
  class Connection;
  template <class Stream>
  class StreamConnection;
  using List = std::list<Connection*>;

  void MakeRoom(const boost::asio::ip::address& address);

  const HttpOptions& options_;
  const Answer answer_;
  List list_;           // sorted by the begin of the request, oldest first
  size_t endless_ = 0;  // of these: endless responses
};

}  // namespace leat::rpc

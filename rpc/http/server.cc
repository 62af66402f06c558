// SPDX-License-Identifier: Apache-2.0
#include "rpc/http/server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <exception>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"
#include "rpc/connections/listener.h"
#include "rpc/http/connections.h"
#include "rpc/http/tls.h"

namespace leat::rpc {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;
using Request = HttpConnections::Request;

// The pause after an accept failed for lack of descriptors or memory.
constexpr auto kRest = std::chrono::milliseconds(100);

std::string_view View(beast::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

class HttpServer::Loop {
 public:
  Loop(const HttpOptions& options, Handler handler)
      : options_(options), handler_(std::move(handler)), io_(1) {}

  // Must be called first.
  absl::Status Open(const Listener& listener, TlsContext context);
  bool is_tls() const { return is_tls_; }
  void Run();
  // The next two may be called on any thread.
  void Stop() { io_.stop(); }
  void Replace(TlsContext context) {
    net::post(io_, [this, taken = std::move(context)]() mutable {
      context_ = std::move(taken);
    });
  }

 private:
  struct Door {
    explicit Door(net::io_context* io) : acceptor(*io), rest(*io) {}
    tcp::acceptor acceptor;
    net::steady_timer rest;
  };

  void Accept(Door* door);
  HttpResponse Answer(const Request& request, bool certified) const;
  bool IsPost(const Request& request) const {
    return options_.takes_posts && request.method() == http::verb::post;
  }

  const HttpOptions options_;
  const Handler handler_;
  std::string address_;
  bool is_tls_ = false;
  TlsContext context_;
  HttpConnections connections_{&options_,
                               [this](const Request& request, bool certified) {
                                 return Answer(request, certified);
                               }};
  // Owns operations in progress, which use the members above when they end.
  net::io_context io_;
  std::vector<std::unique_ptr<Door>> doors_;
};

absl::Status HttpServer::Loop::Open(const Listener& listener,
                                    TlsContext context) {
  address_ = listener.address();
  is_tls_ = context != nullptr;
  context_ = std::move(context);
  for (const int listening : listener.sockets()) {
    sockaddr_storage name{};
    socklen_t size = sizeof name;
    const int fd = fcntl(listening, F_DUPFD_CLOEXEC, 0);
    if (fd < 0 ||
        getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
      if (fd >= 0) close(fd);
      return ResourceExhausted("cannot listen on {}: no descriptor is left",
                               address_);
    }
    auto door = std::make_unique<Door>(&io_);
    error_code error;
    door->acceptor.assign(name.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(),
                          fd, error);
    if (error) {
      close(fd);
      return Unavailable("cannot listen on {}: {}", address_, error.message());
    }
    Accept(doors_.emplace_back(std::move(door)).get());
  }
  return absl::OkStatus();
}

// An exception of Asio, if memory is short, ends the operation that caused it.
void HttpServer::Loop::Run() {
  while (!io_.stopped()) try {
      io_.run();
    } catch (const std::exception& error) {
      LOG_ERROR("http.failed error=\"{}\"", error.what());
    }
}

void HttpServer::Loop::Accept(Door* door) {
  door->acceptor.async_accept(
      [this, door](const error_code& error, tcp::socket socket) {
        if (error == net::error::operation_aborted) return;
        if (!error || error == net::error::connection_aborted) {
          Accept(door);  // before Begin, which throws if memory is short
          if (!error) connections_.Begin(std::move(socket), context_);
          return;
        }
        LOG_WARN("http.accept error=\"{}\"", error.message());
        door->rest.expires_after(kRest);
        door->rest.async_wait([this, door](const error_code& stopped) {
          if (!stopped) Accept(door);
        });
      });
}

HttpResponse HttpServer::Loop::Answer(const Request& request,
                                      bool certified) const {
  const size_t hosts = request.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && request.version() > 10))
    return HttpResponse::Text(400, "want one field Host\n");
  if (hosts == 1 && !IsHostOf(View(request[http::field::host]), address_))
    return HttpResponse::Text(
        421,
        "the field Host does not name this server: want an IP address or "
        "localhost\n");
  if (request.method() != http::verb::get &&
      request.method() != http::verb::head && !IsPost(request))
    return HttpResponse::Text(405, "want GET or HEAD\n");
  if (request.count(http::field::authorization) > 1)
    return HttpResponse::Text(400, "want at most one field Authorization\n");
  const std::string_view target = View(request.target());
  const std::string_view path = target.substr(0, target.find('?'));
  return handler_(
      {.path = path,
       .token = BearerToken(View(request[http::field::authorization])),
       .query = target.substr(std::min(target.size(), path.size() + 1)),
       .cookie = View(request[http::field::cookie]),
       .last_event_id = View(request["Last-Event-ID"]),
       .body = request.body(),
       .is_post = IsPost(request),
       .is_own_origin = IsOwnOrigin(View(request["Sec-Fetch-Site"]),
                                    View(request[http::field::origin]),
                                    View(request[http::field::host])),
       .is_tls = is_tls_,
       .certified = certified});
}

HttpServer::HttpServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const HttpOptions& options, const HttpTls& tls, Handler handler) {
  if (IsUnixAddress(options.address))
    return InvalidArgument("--http {}: want HOST:PORT", options.address);
  ASSIGN_OR_RETURN(TlsContext context, TlsContextFor(tls));
  ASSIGN_OR_RETURN(const Listener listener,
                   Listener::Bind(options.address, options.request_timeout));
  std::unique_ptr<HttpServer> server(
      new HttpServer(std::make_unique<Loop>(options, std::move(handler))));
  server->address_ = listener.address();
  RETURN_IF_ERROR(server->loop_->Open(listener, std::move(context)));
  RETURN_IF_ERROR(StartThread(
      "leat-http", [loop = server->loop_.get()] { loop->Run(); },
      &server->thread_));
  return server;
}

HttpServer::~HttpServer() {
  loop_->Stop();
  if (thread_.joinable()) thread_.join();
}

absl::Status HttpServer::ReplaceTls(const HttpTls& tls) {
  ASSIGN_OR_RETURN(TlsContext context, TlsContextFor(tls));
  if ((context != nullptr) != loop_->is_tls())
    return FailedPrecondition(
        "--tls-cert: whether {} speaks TLS is decided at the start", address_);
  loop_->Replace(std::move(context));
  return absl::OkStatus();
}

}  // namespace leat::rpc

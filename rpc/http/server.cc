// SPDX-License-Identifier: Apache-2.0
//
// All work on connections runs on the loop's thread, so this file has no lock.
// A connection is owned by the operation in progress on it; the loop's list has
// the connections in the order in which their requests began:
//
//   connections_: [sends nothing since 9 s] [idle since 2 s] [began now]
//                  closed first, if there are too many
#include "rpc/http/server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <exception>
#include <list>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"
#include "rpc/connections/listener.h"
#include "rpc/http/refusal.h"
#include "rpc/http/tls.h"

namespace leat::rpc {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;
using Request = http::request<http::string_body>;
using Response = http::response<http::span_body<const char>>;

// The pause after an accept failed for lack of descriptors or memory.
constexpr auto kRest = std::chrono::milliseconds(100);
// Maximum that the kernel buffers of an endless response that is not read.
constexpr int kEndlessSendBytes = 256 << 10;
// Room in a request's buffer in addition to header and body: sizes of chunks.
constexpr size_t kFraming = 4 << 10;

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
  class Connection;
  template <class Stream>
  class StreamConnection;
  using Connections = std::list<Connection*>;
  struct Door {
    explicit Door(net::io_context* io) : acceptor(*io), rest(*io) {}
    tcp::acceptor acceptor;
    net::steady_timer rest;
  };

  void Accept(Door* door);
  void Begin(tcp::socket socket);
  void MakeRoom(const net::ip::address& address);
  HttpResponse Answer(const Request& request, bool certified) const;
  bool IsPost(const Request& request) const {
    return options_.takes_posts && request.method() == http::verb::post;
  }

  const HttpOptions options_;
  const Handler handler_;
  std::string address_;
  bool is_tls_ = false;
  TlsContext context_;
  Connections connections_;  // sorted by the begin of the request, oldest first
  size_t endless_ = 0;       // of these: endless responses
  // Owns operations in progress, which use the members above when they end.
  net::io_context io_;
  std::vector<std::unique_ptr<Door>> doors_;
};

class HttpServer::Loop::Connection {
 public:
  Connection(Loop* loop, net::ip::address address)
      : loop_(loop), address_(std::move(address)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() {
    Leave();
    if (endless_) --loop_->endless_;
  }

  const net::ip::address& address() const { return address_; }
  // Ends the operation in progress, and removes the connection from the list.
  virtual void Close() = 0;

 protected:
  // Called when a request begins.
  void Enter() {
    Leave();
    place_ = loop_->connections_.insert(loop_->connections_.end(), this);
  }
  void Leave() {
    if (place_) loop_->connections_.erase(*std::exchange(place_, {}));
  }

  // Returns whether one more endless response may begin.
  bool BeginEndless() {
    if (loop_->endless_ >= loop_->options_.max_endless) return false;
    ++loop_->endless_;
    return endless_ = true;
  }

  Loop* const loop_;

 private:
  const net::ip::address address_;
  bool endless_ = false;
  std::optional<Connections::iterator> place_;
};

template <class Stream>
class HttpServer::Loop::StreamConnection final
    : public Connection,
      public std::enable_shared_from_this<StreamConnection<Stream>> {
 public:
  static constexpr bool kTls = !std::is_same_v<Stream, beast::tcp_stream>;

  // `arguments` are those of the stream. `context` is nullptr without TLS.
  template <class... Arguments>
  StreamConnection(Loop* loop, net::ip::address address, TlsContext context,
                   Arguments&&... arguments)
      : Connection(loop, std::move(address)),
        context_(std::move(context)),
        stream_(std::forward<Arguments>(arguments)...),
        buffer_(loop->options_.max_header_bytes +
                loop->options_.max_body_bytes + kFraming) {}

  void Start() {
    if constexpr (kTls) {
      this->Enter();
      AllowTime();
      stream_.async_handshake(
          net::ssl::stream_base::server,
          [self = this->shared_from_this()](const error_code& error) {
            if (!error) self->Read();
          });
    } else {
      Read();
    }
  }

  void Close() override {
    this->Leave();
    beast::get_lowest_layer(stream_).close();
  }

 private:
  void AllowTime() {
    beast::get_lowest_layer(stream_).expires_after(
        this->loop_->options_.request_timeout);
  }

  void Read() {
    this->Enter();
    parser_.emplace();
    parser_->header_limit(
        static_cast<uint32_t>(this->loop_->options_.max_header_bytes));
    parser_->body_limit(uint64_t{this->loop_->options_.max_body_bytes});
    AllowTime();
    http::async_read(
        stream_, buffer_, *parser_,
        [self = this->shared_from_this()](const error_code& error, size_t) {
          self->OnRead(error);
        });
  }

  bool IsCertified() {
    if constexpr (kTls) {
      SSL* const ssl = stream_.native_handle();
      return SSL_get_verify_mode(ssl) == SSL_VERIFY_NONE ||
             SSL_get0_peer_certificate(ssl) != nullptr;
    } else {
      return true;
    }
  }

  void OnRead(const error_code& error) {
    const Request& request = parser_->get();
    if (error) {
      keep_alive_ = false;
      std::optional<HttpResponse> answer = AnswerTo(error);
      if (answer) Write(*std::move(answer), /*version=*/11, /*head=*/false);
      return;
    }
    keep_alive_ = request.keep_alive();
    Write(this->loop_->Answer(request, IsCertified()), request.version(),
          request.method() == http::verb::head);
  }

  void Write(HttpResponse answer, unsigned version, bool head) {
    const bool endless = answer.more != nullptr && !head;
    if (endless && !this->BeginEndless())
      answer = HttpResponse::Text(503, "too many pages are open\n");
    else if (endless)
      Prepare(&answer);
    body_ = std::move(answer.body);
    response_.emplace();
    Response& response = *response_;
    response.version(version);
    response.result(answer.status);
    response.set(http::field::content_type, answer.type);
    response.set(http::field::cache_control, "no-store");
    response.set("X-Content-Type-Options", "nosniff");
    if (answer.status == 401)
      response.set(http::field::www_authenticate, "Bearer");
    if (answer.status == 405) response.set(http::field::allow, "GET, HEAD");
    for (const auto& [name, value] : answer.fields) response.set(name, value);
    if (!head)
      response.body() =
          Response::body_type::value_type(body_->data(), body_->size());
    if (more_ == nullptr) response.content_length(body_->size());
    response.keep_alive(keep_alive_);
    AllowTime();
    http::async_write(
        stream_, response,
        [self = this->shared_from_this()](const error_code& error, size_t) {
          self->OnWritten(error);
        });
  }

  void OnWritten(const error_code& error) {
    response_.reset();
    body_.reset();
    // A response that ends with the connection ends with this error.
    if (more_ != nullptr && (!error || error == http::error::end_of_stream))
      return Rest();
    if (error) return;
    if (keep_alive_) return Read();
    Finish();
  }

  // An endless response keeps only its next text in memory: not the request,
  // and little in the kernel.
  void Prepare(HttpResponse* answer) {
    more_ = std::move(answer->more);
    every_ = answer->every;
    keep_alive_ = false;
    parser_.reset();
    buffer_.shrink_to_fit();
    auto& socket = beast::get_lowest_layer(stream_).socket();
    error_code ignored;
    socket.set_option(net::socket_base::send_buffer_size(kEndlessSendBytes),
                      ignored);
    const auto wait = static_cast<int>(this->loop_->options_.request_timeout /
                                       std::chrono::milliseconds(1));
    setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &wait,
               sizeof wait);
  }

  // Waits until the next text is due.
  void Rest() {
    beast::get_lowest_layer(stream_).expires_never();
    timer_.emplace(stream_.get_executor());
    timer_->expires_after(every_);
    timer_->async_wait(
        [self = this->shared_from_this()](const error_code& stopped) {
          if (!stopped) self->WriteMore();
        });
  }

  void WriteMore() {
    if (!beast::get_lowest_layer(stream_).socket().is_open()) return;
    body_ = more_();
    if (body_ == nullptr) return Finish();
    if (body_->empty()) return Rest();
    AllowTime();
    net::async_write(
        stream_, net::buffer(*body_),
        [self = this->shared_from_this()](const error_code& error, size_t) {
          self->body_.reset();
          if (!error) self->Rest();
        });
  }

  void Finish() {
    if constexpr (kTls) {
      AllowTime();
      stream_.async_shutdown(
          [self = this->shared_from_this()](const error_code&) {});
    } else {
      error_code ignored;
      beast::get_lowest_layer(stream_).socket().shutdown(
          tcp::socket::shutdown_send, ignored);
    }
  }

  const TlsContext context_;  // outlives the stream
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  bool keep_alive_ = false;
  // Set for an endless response.
  std::function<std::shared_ptr<const std::string>()> more_;
  Duration every_{};
  std::optional<net::steady_timer> timer_;
  // Own the response until all of it has been sent.
  std::shared_ptr<const std::string> body_;
  std::optional<Response> response_;
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
        if (!error) Begin(std::move(socket));
        if (!error || error == net::error::connection_aborted)
          return Accept(door);
        LOG_WARN("http.accept error=\"{}\"", error.message());
        door->rest.expires_after(kRest);
        door->rest.async_wait([this, door](const error_code& stopped) {
          if (!stopped) Accept(door);
        });
      });
}

void HttpServer::Loop::Begin(tcp::socket socket) {
  error_code error;
  const tcp::endpoint from = socket.remote_endpoint(error);
  if (error) return;
  MakeRoom(from.address());
  if (context_ == nullptr)
    std::make_shared<StreamConnection<beast::tcp_stream>>(
        this, from.address(), nullptr, std::move(socket))
        ->Start();
  else
    std::make_shared<StreamConnection<net::ssl::stream<beast::tcp_stream>>>(
        this, from.address(), context_, std::move(socket), *context_)
        ->Start();
}

// Makes room for one more connection from `address`.
void HttpServer::Loop::MakeRoom(const net::ip::address& address) {
  const auto of_it = static_cast<size_t>(std::count_if(
      connections_.begin(), connections_.end(),
      [&](const Connection* each) { return each->address() == address; }));
  const bool too_many_of_it = of_it >= options_.max_connections_per_address;
  if (!too_many_of_it && connections_.size() < options_.max_connections) return;
  for (Connection* const each : connections_) {
    if (too_many_of_it && each->address() != address) continue;
    each->Close();
    return;
  }
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

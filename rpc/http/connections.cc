// SPDX-License-Identifier: Apache-2.0
#include "rpc/http/connections.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/write.hpp>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "rpc/http/refusal.h"

namespace leat::rpc {
namespace {

namespace net = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using net::ip::tcp;
using Response = http::response<http::span_body<const char>>;

// Maximum that the kernel buffers of an endless response that is not read.
constexpr int kEndlessSendBytes = 256 << 10;
// Room in a request's buffer in addition to header and body: sizes of chunks.
constexpr size_t kFraming = 4 << 10;

}  // namespace

class HttpConnections::Connection {
 public:
  Connection(HttpConnections* all, net::ip::address address)
      : all_(all), address_(std::move(address)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() {
    Leave();
    if (endless_) --all_->endless_;
  }

  const net::ip::address& address() const { return address_; }
  // Ends the operation in progress, and removes the connection from the list.
  virtual void Close() = 0;

 protected:
  // Called when a request begins.
  void Enter() {
    Leave();
    place_ = all_->list_.insert(all_->list_.end(), this);
  }
  void Leave() {
    if (place_) all_->list_.erase(*std::exchange(place_, {}));
  }

  // Returns whether one more endless response may begin.
  bool BeginEndless() {
    if (all_->endless_ >= all_->options_.max_endless) return false;
    ++all_->endless_;
    return endless_ = true;
  }

  HttpConnections* const all_;

 private:
  const net::ip::address address_;
  bool endless_ = false;
  std::optional<List::iterator> place_;
};

template <class Stream>
class HttpConnections::StreamConnection final
    : public Connection,
      public std::enable_shared_from_this<StreamConnection<Stream>> {
 public:
  static constexpr bool kTls = !std::is_same_v<Stream, beast::tcp_stream>;

  // `arguments` are those of the stream. `context` is nullptr without TLS.
  template <class... Arguments>
  StreamConnection(HttpConnections* all, net::ip::address address,
                   TlsContext context, Arguments&&... arguments)
      : Connection(all, std::move(address)),
        context_(std::move(context)),
        stream_(std::forward<Arguments>(arguments)...),
        buffer_(all->options_.max_header_bytes + all->options_.max_body_bytes +
                kFraming) {}

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
        this->all_->options_.request_timeout);
  }

  void Read() {
    this->Enter();
    parser_.emplace();
    parser_->header_limit(
        static_cast<uint32_t>(this->all_->options_.max_header_bytes));
    parser_->body_limit(uint64_t{this->all_->options_.max_body_bytes});
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
    Write(this->all_->answer_(request, IsCertified()), request.version(),
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
    const auto wait = static_cast<int>(this->all_->options_.request_timeout /
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

void HttpConnections::Begin(tcp::socket socket, const TlsContext& context) {
  error_code error;
  const tcp::endpoint from = socket.remote_endpoint(error);
  if (error) return;
  MakeRoom(from.address());
  if (context == nullptr)
    std::make_shared<StreamConnection<beast::tcp_stream>>(
        this, from.address(), nullptr, std::move(socket))
        ->Start();
  else
    std::make_shared<StreamConnection<net::ssl::stream<beast::tcp_stream>>>(
        this, from.address(), context, std::move(socket), *context)
        ->Start();
}

// Makes room for one more connection from `address`.
void HttpConnections::MakeRoom(const net::ip::address& address) {
  const auto of_it = static_cast<size_t>(std::count_if(
      list_.begin(), list_.end(),
      [&](const Connection* each) { return each->address() == address; }));
  const bool too_many_of_it = of_it >= options_.max_connections_per_address;
  if (!too_many_of_it && list_.size() < options_.max_connections) return;
  for (Connection* const each : list_) {
    if (too_many_of_it && each->address() != address) continue;
    each->Close();
    return;
  }
}

}  // namespace leat::rpc

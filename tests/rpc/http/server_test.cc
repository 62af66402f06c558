// SPDX-License-Identifier: Apache-2.0
//
// Tests an HTTP server with hostile callers, over bare sockets.
#include "rpc/http/server.h"

#include <poll.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/pem.h"
#include "openssl/ssl.h"
#include "tests/rpc/http/caller.h"
#include "tests/support/sanitized.h"

namespace leat::rpc {
namespace {

using leat::testing::kSanitized;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGet[] = "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n";

HttpResponse Page(const HttpRequest& request) {
  return HttpResponse::Text(
      200, fmt::format("page {} token {}{}\n", request.path, request.token,
                       request.certified ? "" : " uncertified"));
}

std::unique_ptr<HttpServer> StartPages(HttpOptions options = {},
                                       const HttpTls& tls = {}) {
  if (options.address.empty()) options.address = "127.0.0.1:0";
  return HttpServer::Start(options, tls, Page).value();
}

TEST(HttpServer, AnswersGetAndHead) {
  const auto server = StartPages();
  const std::string got = Get(*server, "/page?x=1");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(got, HasSubstr("Content-Length: 18\r\n"));
  EXPECT_THAT(got, EndsWith("\r\n\r\npage /page token \n"));
  const std::string head =
      Ask(*server,
          "HEAD /page HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 18\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
  EXPECT_THAT(Ask(*server, "GET /page HTTP/1.0\r\n\r\n"),
              HasSubstr(" 200 OK\r\n"));
  EXPECT_THAT(Ask(*server,
                  "GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: "
                  "close\r\nauthorization: bearer  abc \r\n\r\n"),
              EndsWith("page /page token abc\n"));
}

TEST(HttpServer, KeepsAConnectionForMoreRequests) {
  const auto server = StartPages();
  HttpCaller caller(*server);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(caller.Send(kGet));
    EXPECT_THAT(caller.ReadUntil("token \n"), StartsWith("HTTP/1.1 200"));
  }
  ASSERT_TRUE(
      caller.Send("GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: "
                  "close\r\n\r\nGET /y HTTP/1.1\r\n"));
  EXPECT_THAT(caller.ReadUntil(""), Not(HasSubstr("/y")));
}

TEST(HttpServer, RefusesWhatIsNoRequestForIt) {
  const auto server = StartPages();
  const std::pair<std::string, std::string> cases[] = {
      {"POST /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
       "Content-Length: 2\r\n\r\nhi",
       "405"},
      {"GET /page HTTP/1.1\r\nConnection: close\r\n\r\n", "400"},
      {"GET /page HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n"
       "Connection: close\r\n\r\n",
       "400"},
      {"GET /page HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
       "421"},
      {"GET /page HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\n"
       "Authorization: Bearer b\r\nConnection: close\r\n\r\n",
       "400"},
      {"hello\r\n\r\n", "400"},
      {"GET /page HTTP/1.1\r\nHost: localhost\r\nX: " +
           std::string(17 << 10, 'a') + "\r\n\r\n",
       "431"},
      {"POST /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n",
       "413"},
      {"POST /page HTTP/1.1\r\nHost: localhost\r\n"
       "Transfer-Encoding: chunked\r\n\r\n-2\r\n",
       "400"},
      {"GET /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
       "Transfer-Encoding: chunked\r\n\r\n",
       "400"}};
  for (const auto& [request, status] : cases)
    EXPECT_THAT(Ask(*server, request), StartsWith("HTTP/1.1 " + status))
        << request.substr(0, 100);
  EXPECT_THAT(Get(*server), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, ClosesConnectionsThatTakeTooLong) {
  const auto server =
      StartPages({.request_timeout = std::chrono::milliseconds(50)});
  HttpCaller silent(*server), slow(*server);
  ASSERT_TRUE(slow.Send("GET /page HTTP/1.1\r\nX"));
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(slow.IsClosed());
  // A connection that was answered in time, and sends no more requests.
  for (bool answered = false; !answered;) {
    HttpCaller idle(*server);
    idle.Send(kGet);
    answered = idle.ReadUntil("token \n").starts_with("HTTP/1.1 200");
    if (answered) {
      EXPECT_TRUE(idle.IsClosed());
    }
  }
}

// Sending one byte at a time does not extend the time of a request.
TEST(HttpServer, ASlowSenderGetsNoMoreTime) {
  const auto server =
      StartPages({.request_timeout = std::chrono::milliseconds(200)});
  HttpCaller slow(*server);
  const MonotonicTime start = Clock::Real().Now();
  ASSERT_TRUE(slow.Send("GET /page HTTP/1.1\r\n"));
  pollfd closed = {slow.fd(), POLLIN, 0};
  while (poll(&closed, 1, 20) == 0) {
    if (!slow.Send("X")) break;
    ASSERT_LT(Clock::Real().Now() - start, std::chrono::seconds(20));
  }
  EXPECT_TRUE(slow.IsClosed());
}

std::string Headers() {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += fmt::format("X-{:04}: a\r\n", i);
  return text;
}

// Each sends up to 200 MB, as long as the server reads.
TEST(HttpServer, EndlessRequestsTakeNoMemory) {
  constexpr size_t kOffered = 200 << 20, kGrowth = 8 << 10;
  const std::string kChunked =
      "POST /page HTTP/1.1\r\nHost: localhost\r\n"
      "Transfer-Encoding: chunked\r\n\r\n";
  const std::string bytes(64 << 10, 'a');
  const std::pair<std::string, std::string> floods[] = {
      {"GET /page HTTP/1.1\r\nX: ", bytes},
      {"GET /page HTTP/1.1\r\n", Headers()},
      {"GET /", bytes},
      {kChunked, "10000\r\n" + bytes + "\r\n"},
      {kChunked + "0\r\n", Headers()},
      {kChunked + "-2\r\n", bytes}};
  const auto server = StartPages();
  EXPECT_THAT(Get(*server), StartsWith("HTTP/1.1 200"));
  const uint64_t before = ResidentKib();
  for (const auto& [begin, more] : floods) {
    HttpCaller caller(*server);
    size_t sent = 0;
    for (bool open = caller.Send(begin); open && sent < kOffered;
         sent += more.size())
      open = caller.Send(more);
    EXPECT_LT(sent, kOffered / 4) << begin;
    EXPECT_THAT(Get(*server), StartsWith("HTTP/1.1 200")) << begin;
  }
  if (!kSanitized) {
    EXPECT_LE(ResidentKib(), before + kGrowth);
  }
}

TEST(HttpServer, AnswersWhile250RequestsAreHalfOpen) {
  const auto server = StartPages();
  const uint64_t before = ResidentKib();
  std::vector<std::unique_ptr<HttpCaller>> half;
  for (int i = 0; i < 250; ++i) {
    half.push_back(std::make_unique<HttpCaller>(*server));
    ASSERT_TRUE(half.back()->connected());
    half.back()->Send("GET /page HTTP/1.1\r\nX: ");
    if (i % 50 == 49) {
      EXPECT_THAT(Get(*server), StartsWith("HTTP/1.1 200"));
    }
  }
  EXPECT_TRUE(half.front()->IsClosed());
  if (!kSanitized) {
    EXPECT_LE(ResidentKib(), before + (8 << 10));
  }
  half.clear();
  EXPECT_THAT(Get(*server), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, OneAddressDoesNotPushOutOthers) {
  const auto server =
      StartPages({.max_connections = 8, .max_connections_per_address = 4});
  HttpCaller quiet(*server, "127.0.0.2");
  ASSERT_TRUE(quiet.Send(kGet));
  ASSERT_THAT(quiet.ReadUntil("token \n"), StartsWith("HTTP/1.1 200"));
  std::vector<std::unique_ptr<HttpCaller>> many;
  for (int i = 0; i < 20; ++i) {
    many.push_back(std::make_unique<HttpCaller>(*server));
    many.back()->Send("GET /page HTTP/1.1\r\nX: ");
  }
  EXPECT_TRUE(many.front()->IsClosed());
  ASSERT_TRUE(quiet.Send(kGet));
  EXPECT_THAT(quiet.ReadUntil("token \n"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, EndsWithConnectionsOpen) {
  auto server = StartPages();
  HttpCaller idle(*server), half(*server);
  ASSERT_TRUE(idle.Send(kGet));
  EXPECT_THAT(idle.ReadUntil("token \n"), StartsWith("HTTP/1.1 200"));
  ASSERT_TRUE(half.Send("GET /"));
  server.reset();
  EXPECT_TRUE(idle.IsClosed());
  EXPECT_TRUE(half.IsClosed());
}

TEST(HttpServer, NamesTheAddressThatItCannotHave) {
  const auto server = StartPages();
  const auto second =
      HttpServer::Start({.address = server->address()}, {}, Page);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(second.status())),
              HasSubstr(server->address()));
}

// Tests of certificates.

class HttpTlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets that may be closed
    folder_ = std::filesystem::path(::testing::TempDir()) / "leat_http_test";
    std::filesystem::create_directories(folder_);
    for (HttpTls* each : {&first_, &second_}) {
      const std::string make = fmt::format(
          "cd {} && openssl req -x509 -newkey ec -pkeyopt "
          "ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost "
          "-keyout key.pem -out cert.pem 2>/dev/null",
          folder_.string());
      if (std::system(make.c_str()) != 0)
        GTEST_SKIP() << "no openssl program here to make a certificate with";
      each->cert = Slurp("cert.pem");
      each->key = Slurp("key.pem");
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Slurp(const char* name) const {
    std::stringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }
  // Returns the response to a caller that trusts only `trusted`, and presents
  // `own`; empty: it does not trust the server, or is rejected.
  static std::string GetByTls(const HttpServer& server, const HttpTls& trusted,
                              const HttpTls& own = {}) {
    SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
    Load(context, trusted, own);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL* const ssl = SSL_new(context);
    HttpCaller caller(server);
    SSL_set_fd(ssl, caller.fd());
    std::string text;
    char bytes[4096];
    const std::string_view request =
        "GET /page HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    if (SSL_connect(ssl) == 1 &&
        SSL_write(ssl, request.data(), static_cast<int>(request.size())) > 0)
      for (int got; (got = SSL_read(ssl, bytes, sizeof bytes)) > 0;)
        text.append(bytes, static_cast<size_t>(got));
    SSL_free(ssl);
    SSL_CTX_free(context);
    return text;
  }

  std::filesystem::path folder_;
  HttpTls first_, second_;

 private:
  static void Load(SSL_CTX* context, const HttpTls& trusted,
                   const HttpTls& own) {
    BIO* const pem = BIO_new_mem_buf(trusted.cert.data(), -1);
    X509* const certificate = PEM_read_bio_X509(pem, nullptr, nullptr, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate);
    X509_free(certificate);
    BIO_free(pem);
    if (own.cert.empty()) return;
    BIO* const own_pem = BIO_new_mem_buf(own.cert.data(), -1);
    BIO* const key_pem = BIO_new_mem_buf(own.key.data(), -1);
    X509* const shown = PEM_read_bio_X509(own_pem, nullptr, nullptr, nullptr);
    EVP_PKEY* const key =
        PEM_read_bio_PrivateKey(key_pem, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context, shown);
    SSL_CTX_use_PrivateKey(context, key);
    EVP_PKEY_free(key);
    X509_free(shown);
    BIO_free(key_pem);
    BIO_free(own_pem);
  }
};

TEST_F(HttpTlsTest, CertificatesAreExchangedWhileItServes) {
  const auto server = StartPages({}, first_);
  EXPECT_THAT(GetByTls(*server, first_), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(GetByTls(*server, second_), "");
  ASSERT_EQ(server->ReplaceTls(second_), absl::OkStatus());
  EXPECT_THAT(GetByTls(*server, second_), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(GetByTls(*server, first_), "");
  EXPECT_THAT(Get(*server), Not(HasSubstr("200")));  // plaintext
}

TEST_F(HttpTlsTest, AsksForACertificateOfTheAuthority) {
  HttpTls asks = first_;
  asks.ca = second_.cert;
  const auto server = StartPages({}, asks);
  EXPECT_THAT(GetByTls(*server, first_, second_),
              AllOf(StartsWith("HTTP/1.1 200"), Not(HasSubstr("uncertified"))));
  // The handler decides what callers without one may see.
  EXPECT_THAT(GetByTls(*server, first_),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("uncertified")));
  EXPECT_EQ(GetByTls(*server, first_, first_), "");
  const auto asks_nobody = StartPages({}, first_);
  EXPECT_THAT(GetByTls(*asks_nobody, first_), Not(HasSubstr("uncertified")));
}

TEST_F(HttpTlsTest, BadOnesLeaveTheLastGoodOnes) {
  const auto server = StartPages({}, first_);
  HttpTls other_key = first_;
  other_key.key = second_.key;
  EXPECT_EQ(server->ReplaceTls(other_key).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server->ReplaceTls({}).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(GetByTls(*server, first_), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace leat::rpc

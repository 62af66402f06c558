// SPDX-License-Identifier: Apache-2.0
//
// Tests endless responses, POST, and which site made a browser send a request.
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/http/message.h"
#include "rpc/http/server.h"
#include "tests/rpc/http/caller.h"
#include "tests/support/sanitized.h"

namespace leat::rpc {
namespace {

using leat::testing::kSanitized;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGetLive[] = "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr Duration kOften = std::chrono::milliseconds(5);

std::shared_ptr<const std::string> Shared(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

// Sends "begin
// ", then `text` endlessly.
HttpResponse Endless(std::shared_ptr<const std::string> text) {
  HttpResponse response = HttpResponse::Text(200, "begin\n");
  response.every = kOften;
  response.more = [text = std::move(text)] { return text; };
  return response;
}

TEST(EndlessAnswer, GoesOnUntilItsSourceEndsIt) {
  const auto handler = [](const HttpRequest& request) {
    if (request.path != "/live") return HttpResponse::Text(200, "page\n");
    HttpResponse response = HttpResponse::Text(200, "begin\n");
    response.every = kOften;
    response.more = [n = 0]() mutable -> std::shared_ptr<const std::string> {
      if (++n > 4) return nullptr;
      return Shared(n % 2 == 0 ? "" : fmt::format("{}\n", n));
    };
    return response;
  };
  const auto server =
      HttpServer::Start({.address = "127.0.0.1:0"}, {}, handler).value();
  HttpCaller caller(*server);
  ASSERT_TRUE(caller.Send(kGetLive));
  const std::string all = caller.ReadUntil("");
  EXPECT_THAT(all, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(all, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(all, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(all, EndsWith("\r\n\r\nbegin\n1\n3\n"));
  // HEAD is answered, and ends.
  EXPECT_THAT(Ask(*server,
                  "HEAD /live HTTP/1.1\r\nHost: localhost\r\nConnection: "
                  "close\r\n\r\n"),
              EndsWith("\r\n\r\n"));
}

TEST(EndlessAnswer, ThereAreNoMoreThanSoMany) {
  const auto text = Shared("more\n");
  const auto server =
      HttpServer::Start({.address = "127.0.0.1:0", .max_endless = 2}, {},
                        [&](const HttpRequest&) { return Endless(text); })
          .value();
  std::vector<std::unique_ptr<HttpCaller>> open;
  for (int i = 0; i < 2; ++i) {
    open.push_back(std::make_unique<HttpCaller>(*server));
    ASSERT_TRUE(open.back()->Send(kGetLive));
    EXPECT_THAT(open.back()->ReadUntil("more\n"), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_THAT(Get(*server, "/live"), StartsWith("HTTP/1.1 503"));
  open.pop_back();
  // The server notices that a caller has gone when it writes to it.
  for (std::string status; !status.starts_with("HTTP/1.1 200");) {
    open.push_back(std::make_unique<HttpCaller>(*server));
    ASSERT_TRUE(open.back()->Send(kGetLive));
    status = open.back()->ReadUntil("\n");
    if (!status.starts_with("HTTP/1.1 200")) open.pop_back();
  }
}

TEST(EndlessAnswer, WhoTakesNothingIsDropped) {
  const auto text = Shared(std::string(1 << 20, 'x'));
  const auto server =
      HttpServer::Start({.address = "127.0.0.1:0",
                         .max_endless = 8,
                         .request_timeout = std::chrono::milliseconds(300)},
                        {},
                        [&](const HttpRequest& request) {
                          return request.path == "/live"
                                     ? Endless(text)
                                     : HttpResponse::Text(200, "page\n");
                        })
          .value();
  Get(*server);
  const uint64_t before = ResidentKib();
  std::vector<std::unique_ptr<HttpCaller>> slow;
  for (int i = 0; i < 8; ++i) {
    slow.push_back(std::make_unique<HttpCaller>(*server));
    ASSERT_TRUE(slow.back()->Send(kGetLive));
  }
  // The sockets have room for a few texts, and then none is read. The slots of
  // dropped callers become free again.
  const MonotonicTime start = Clock::Real().Now();
  for (std::string status; !status.starts_with("HTTP/1.1 200");) {
    ASSERT_LT(Clock::Real().Now() - start, std::chrono::seconds(20));
    HttpCaller next(*server);
    ASSERT_TRUE(next.Send(kGetLive));
    status = next.ReadUntil("\n");
  }
  EXPECT_THAT(Get(*server), StartsWith("HTTP/1.1 200"));
  if (!kSanitized) {
    EXPECT_LE(ResidentKib(), before + (8 << 10));
  }
}

TEST(EndlessAnswer, EndsWithTheServer) {
  const auto text = Shared("more\n");
  auto server =
      HttpServer::Start({.address = "127.0.0.1:0"}, {},
                        [&](const HttpRequest&) { return Endless(text); })
          .value();
  HttpCaller caller(*server);
  ASSERT_TRUE(caller.Send(kGetLive));
  EXPECT_THAT(caller.ReadUntil("more\n"), StartsWith("HTTP/1.1 200"));
  server.reset();
  EXPECT_THAT(caller.ReadUntil(""), Not(HasSubstr("late")));
}

TEST(HttpServer, TakesPostsWhereItIsToldTo) {
  const auto handler = [](const HttpRequest& request) {
    return HttpResponse::Text(
        200, fmt::format("{} {} {} {} {} {}", request.is_post, request.query,
                         request.body, request.cookie, request.last_event_id,
                         request.is_own_origin));
  };
  const auto server =
      HttpServer::Start({.address = "127.0.0.1:0", .takes_posts = true}, {},
                        handler)
          .value();
  EXPECT_THAT(Ask(*server,
                  "POST /x?a=1 HTTP/1.1\r\nHost: localhost\r\nCookie: s=1\r\n"
                  "Last-Event-ID: 7-8\r\nContent-Length: 2\r\n"
                  "Origin: http://localhost\r\nConnection: close\r\n\r\nhi"),
              EndsWith("true a=1 hi s=1 7-8 true"));
  EXPECT_THAT(Ask(*server,
                  "GET /x HTTP/1.1\r\nHost: localhost\r\nOrigin: "
                  "https://evil.example\r\nConnection: close\r\n\r\n"),
              EndsWith("false     false"));
  EXPECT_THAT(Ask(*server,
                  "PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0"
                  "\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 405"));
}

TEST(Origin, IsOnesOwnOrNobodys) {
  for (const char* good : {"same-origin", "none"})
    EXPECT_TRUE(IsOwnOrigin(good, "http://evil.example", "h")) << good;
  for (const char* bad : {"cross-site", "same-site", "x"})
    EXPECT_FALSE(IsOwnOrigin(bad, "http://h", "h")) << bad;
  EXPECT_TRUE(IsOwnOrigin("", "", "h"));
  EXPECT_TRUE(IsOwnOrigin("", "https://H:80", "h:80"));
  for (const char* bad : {"null", "http://h", "http://h:80/", "h:80",
                          "ftp://h:80", "http://h:80.evil.example"})
    EXPECT_FALSE(IsOwnOrigin("", bad, "h:80")) << bad;
}

TEST(Cookie, IsTheOneOfItsName) {
  EXPECT_EQ(CookieIn("a=1; b=2;c=3", "a"), "1");
  EXPECT_EQ(CookieIn("a=1; b=2;c=3", "c"), "3");
  EXPECT_EQ(CookieIn("aa=1; b=a=2", "a"), "");
  EXPECT_EQ(CookieIn("a=1; a=2", "a"), "");
  for (const char* none : {"", ";", "a", "=a", ";;a"})
    EXPECT_EQ(CookieIn(none, "a"), "") << none;
}

TEST(Form, ValuesAreDecoded) {
  EXPECT_EQ(FormValue("a=1&b=x+y%21%2B&c=", "b"), "x y!+");
  EXPECT_EQ(FormValue("a=1&b=2", "a"), "1");
  EXPECT_EQ(FormValue("ab=1&b=2", "a"), "");
  EXPECT_EQ(FormValue("a=%4", "a"), "%4");
  EXPECT_EQ(FormValue("a=%zz%41", "a"), "%zzA");
  for (const char* none : {"", "&", "a", "a&", "=a"})
    EXPECT_EQ(FormValue(none, "a"), "") << none;
}

}  // namespace
}  // namespace leat::rpc

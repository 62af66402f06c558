// SPDX-License-Identifier: Apache-2.0
//
// CallHttp against servers that are slow, end early, or send too much.
#include "client/cli/base/http_call.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;

// Answers one connection with `text`, and closes it; without an answer it lets
// callers wait.
class OneAnswer {
 public:
  explicit OneAnswer(std::string text) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    inet_pton(AF_INET, "127.0.0.1", &own.sin_addr);
    socklen_t size = sizeof own;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&own), size), 0);
    EXPECT_EQ(listen(fd_, 4), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size);
    url_ = fmt::format("http://127.0.0.1:{}/x", ntohs(own.sin_port));
    if (text.empty()) return;
    thread_ = std::thread([this, answer = std::move(text)] {
      const int caller = accept(fd_, nullptr, nullptr);
      char bytes[4096];
      const ssize_t got = recv(caller, bytes, sizeof bytes, 0);
      asked_.assign(bytes, static_cast<size_t>(std::max<ssize_t>(0, got)));
      size_t at = 0;
      while (at < answer.size()) {
        const ssize_t sent =
            send(caller, answer.data() + at, answer.size() - at, MSG_NOSIGNAL);
        if (sent <= 0) break;
        at += static_cast<size_t>(sent);
      }
      close(caller);
    });
  }
  ~OneAnswer() {
    Join();
    close(fd_);
  }
  const std::string& url() const { return url_; }
  std::string Asked() {
    Join();
    return asked_;
  }

 private:
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  const int fd_;
  std::string url_, asked_;
  std::thread thread_;
};

TEST(CallHttp, SendsWhatItIsTold) {
  OneAnswer server(
      "HTTP/1.1 409 Conflict\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\n"
      "hello");
  const absl::StatusOr<HttpReply> reply =
      CallHttp({.method = "PATCH",
                .url = server.url(),
                .headers = {"Accept: a/b", "Content-Type: c/d"},
                .body = "{}"});
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->status, 409);
  EXPECT_EQ(reply->body, "hello");
  EXPECT_EQ(reply->retry_after, absl::Seconds(7));
  const std::string asked = server.Asked();
  for (const char* part : {"PATCH /x HTTP/1.1\r\n", "Accept: a/b\r\n",
                           "Content-Type: c/d\r\n", "Content-Length: 2\r\n"})
    EXPECT_THAT(asked, HasSubstr(part));
}

TEST(CallHttp, FollowsNoRedirect) {
  OneAnswer server(
      "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n"
      "Content-Length: 0\r\n\r\n");
  const absl::StatusOr<HttpReply> reply = CallHttp({.url = server.url()});
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->status, 302);
}

TEST(CallHttp, GivesUpAfterItsTime) {
  const OneAnswer silent("");
  const absl::Status status =
      CallHttp({.url = silent.url(), .limit = absl::Milliseconds(100)})
          .status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr(silent.url()));
}

TEST(CallHttp, AnAnswerThatBreaksOffOrIsNoneIsUnavailable) {
  for (const char* text : {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
                           "SSH-2.0-x\r\n"}) {
    const OneAnswer server(text);
    const absl::Status status =
        CallHttp({.url = server.url(), .limit = absl::Seconds(10)}).status();
    EXPECT_FALSE(status.ok()) << text;
  }
  EXPECT_TRUE(
      absl::IsUnavailable(CallHttp({.url = "http://127.0.0.1:1/"}).status()));
}

TEST(CallHttp, AnAnswerIsBounded) {
  const OneAnswer server("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" +
                         std::string(kMaxHttpBody + 1, 'x'));
  EXPECT_TRUE(
      absl::IsResourceExhausted(CallHttp({.url = server.url()}).status()));
}

TEST(CallHttp, OtherAddressesAreRefused) {
  for (const char* url : {"file:///etc/hostname", "ftp://127.0.0.1/", ""})
    EXPECT_TRUE(absl::IsInvalidArgument(CallHttp({.url = url}).status()))
        << url;
}

}  // namespace
}  // namespace leat::cli

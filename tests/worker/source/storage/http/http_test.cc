// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "tests/worker/source/storage/remote/fixture.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Request = ObjectServer::Request;
using Reply = ObjectServer::Reply;
using Code = absl::StatusCode;

class HttpStorage : public RemoteStorage {
 protected:
  void Slow(StorageMs timeout) {
    StorageConfig config = Small();
    config.request_timeout = timeout;
    Restart(config);
  }
};

TEST_F(HttpStorage, AnObjectIsReadByRanges) {
  const std::string bytes = Pattern(5500);
  server_.Put("/a b", bytes);
  const auto file = Opened(Url("/a%20b"));
  EXPECT_EQ(file->size(), 5500);
  EXPECT_EQ(file->identity(), "size=5500 etag=\"v1\"");
  std::string some;
  ASSERT_TRUE(Read(*file, 17, 100, &some).ok());
  EXPECT_EQ(some, bytes.substr(17, 100));
  EXPECT_EQ(ReadWhole(*file, 6000).value(), bytes);
  // HEAD, one small range, and a large one in parts of 1000 bytes.
  EXPECT_EQ(server_.Count("HEAD"), 1);
  EXPECT_EQ(server_.Count("GET"), 1 + 6);
  EXPECT_EQ(storage_->counters().requests, 8);
  EXPECT_EQ(storage_->counters().retries, 0);
}

TEST_F(HttpStorage, EmptyObjectsAndEmptyReadsAskNothing) {
  server_.Put("/empty", "");
  const auto file = Opened(Url("/empty"));
  EXPECT_EQ(ReadWhole(*file, 0).value(), "");
  EXPECT_EQ(server_.Count("GET"), 0);
  EXPECT_EQ(Read(*file, 0, 1).code(), Code::kOutOfRange);
  EXPECT_EQ(Read(*file, 1, 0).code(), Code::kOutOfRange);
}

TEST_F(HttpStorage, NeighbouringRangesAreOneRequest) {
  const std::string bytes = Pattern(5000);
  server_.Put("/x", bytes);
  const auto file = Opened(Url("/x"));
  std::string a(10, '?'), b(20, '?'), c(30, '?'), d(5, '?'), e(1500, '?'), f;
  const ReadRange ranges[] = {{4000, Bytes(c)}, {25, Bytes(b)},  {0, Bytes(a)},
                              {40, Bytes(d)},   {900, Bytes(e)}, {7, Bytes(f)}};
  ASSERT_TRUE(file->ReadRanges(ranges).ok());
  EXPECT_EQ(a, bytes.substr(0, 10));
  EXPECT_EQ(b, bytes.substr(25, 20));
  EXPECT_EQ(c, bytes.substr(4000, 30));
  EXPECT_EQ(d, bytes.substr(40, 5));
  EXPECT_EQ(e, bytes.substr(900, 1500));
  // 0-9 alone (the gap is 15), 25-44 with 40-44 inside, two parts, 4000.
  EXPECT_EQ(server_.Count("GET"), 1 + 1 + 2 + 1);
}

TEST_F(HttpStorage, ErrorsOfTheServerAreFinalAndClear) {
  server_.Put("/x", "0123456789");
  EXPECT_EQ(storage_->Open(Url("/none")).status().code(), Code::kNotFound);
  const auto file = Opened(Url("/x"));
  const std::pair<int, Code> wanted[] = {
      {401, Code::kUnauthenticated}, {403, Code::kPermissionDenied},
      {404, Code::kNotFound},        {410, Code::kNotFound},
      {400, Code::kInvalidArgument}, {501, Code::kUnimplemented},
      {302, Code::kUnknown},         {204, Code::kUnknown}};
  for (const auto& [status, code] : wanted) {
    const int before = server_.Count("GET");
    server_.Next(ObjectServer::Status(status));
    const absl::Status read = Read(*file, 3, 4);
    EXPECT_EQ(read.code(), code) << read;
    EXPECT_THAT(Text(read), AllOf(HasSubstr(Url("/x")),
                                  HasSubstr("cannot read 4 bytes at 3"),
                                  HasSubstr(std::to_string(status))));
    EXPECT_EQ(server_.Count("GET"), before + 1) << status;
  }
}

TEST_F(HttpStorage, FailureThatPassesIsTriedAgain) {
  server_.Put("/x", "0123456789");
  const auto file = Opened(Url("/x"));
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    server_.Next(ObjectServer::Status(status), 2);
    std::string bytes;
    EXPECT_TRUE(Read(*file, 3, 4, &bytes).ok()) << status;
    EXPECT_EQ(bytes, "3456");
  }
  EXPECT_EQ(storage_->counters().retries, 12);
}

TEST_F(HttpStorage, TriesEndAtTheirBoundAndSayWhy) {
  server_.Put("/x", "0123456789");
  const auto file = Opened(Url("/x"));
  server_.Always(ObjectServer::Status(503, "SlowDown", "Reduce the rate."));
  const absl::Status status = Read(*file, 3, 4);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(Text(status),
              AllOf(HasSubstr(Url("/x")), HasSubstr("4 bytes at 3"),
                    HasSubstr(": 503 ("), HasSubstr("after 20 tries"),
                    Not(HasSubstr("Reduce"))));
  EXPECT_EQ(server_.Count("GET"), 20);
}

TEST_F(HttpStorage, AConnectionThatBreaksIsContinuedWhereItEnded) {
  const std::string bytes = Pattern(900);
  server_.Put("/x", bytes);
  const auto file = Opened(Url("/x"));
  const auto cut = [](const Request&, Reply* reply) { reply->cut_after = 250; };
  server_.Next(cut, 3);
  EXPECT_EQ(ReadWhole(*file, 1000).value(), bytes);
  std::vector<std::string> ranges;
  for (const Request& each : server_.Seen()) {
    if (each.method == "GET") ranges.push_back(each.Header("range"));
  }
  EXPECT_THAT(ranges, testing::ElementsAre("bytes=0-899", "bytes=250-899",
                                           "bytes=500-899", "bytes=750-899"));
}

TEST_F(HttpStorage, AServerThatComesBackIsFoundAgain) {
  const std::string bytes = Pattern(3000);
  server_.Put("/x", bytes);
  const auto file = Opened(Url("/x"));
  server_.Next([](const Request&, Reply* reply) { reply->raw = ""; }, 5);
  server_.Next([](const Request&, Reply* reply) { reply->raw = "garbage\n"; });
  EXPECT_EQ(ReadWhole(*file, 3000).value(), bytes);
}

TEST_F(HttpStorage, AServerThatIsGoneIsAnErrorInTheEnd) {
  server_.Put("/x", "0123456789");
  const auto file = Opened(Url("/x"));
  server_.Stop();
  const absl::Status status = Read(*file, 0, 10);
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_THAT(Text(status), HasSubstr(Url("/x")));
  EXPECT_EQ(storage_->Open(Url("/x")).status().code(), Code::kUnavailable);
}

TEST_F(HttpStorage, ASilentServerIsAskedAgain) {
  const std::string bytes = Pattern(900);
  server_.Put("/x", bytes);
  Slow(StorageMs(50));
  const auto file = Opened(Url("/x"));
  server_.Next([](const Request&, Reply* reply) {
    reply->cut_after = 100;
    reply->stall = true;
  });
  EXPECT_EQ(ReadWhole(*file, 1000).value(), bytes);
  EXPECT_GE(storage_->counters().retries, 1);
}

// An incomplete head is not an answer: here it has neither size nor version.
TEST_F(HttpStorage, AHeadThatDoesNotEndIsAskedForAgain) {
  const std::string bytes = Pattern(900);
  server_.Put("/x", bytes);
  Slow(StorageMs(50));
  const auto half = [this](std::string head) {
    server_.Next([head](const Request&, Reply* reply) {
      reply->raw = head;
      reply->stall = true;
    });
  };
  for (const char* head : {"HTTP/1.1 200 O", "HTTP/1.1 200 OK\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nETa"}) {
    half(head);
    const auto file = Opened(Url("/x"));
    EXPECT_EQ(file->size(), 900u) << head;
    EXPECT_EQ(file->identity(), "size=900 etag=\"v1\"");
  }
  const auto file = Opened(Url("/x"));
  for (const char* head :
       {"HTTP/1.1 206 Partial Content\r\nETag: \"v1\"\r\nContent-Ra",
        "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n"}) {
    half(head);
    EXPECT_EQ(ReadWhole(*file, 1000).value_or("none"), bytes) << head;
  }
}

TEST_F(HttpStorage, AServerWhoseHeadDripsInIsNamedWhileItIsWaitedFor) {
  StorageConfig config = Small();
  config.silence = StorageMs(20);
  Restart(config);
  server_.Always([](const Request&, Reply* reply) {
    reply->raw = "HTTP/1.1 200 OK\r\n";
    reply->drip = "X-More: 1\r\n";
  });
  absl::Status status;
  std::thread opens([&] { status = storage_->Open(Url("/x")).status(); });
  std::vector<std::string> waits;
  while ((waits = storage_->counters().waits).empty())
    std::this_thread::yield();
  EXPECT_EQ(waits,
            std::vector<std::string>{
                Url("/x") + ": looking at it: nothing of use has come for "
                            "20 ms (tried 1 time so far)"});
  storage_->Stop();
  opens.join();
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_TRUE(storage_->counters().waits.empty());
}

TEST_F(HttpStorage, TheDeadlineEndsACallToASilentServer) {
  server_.Put("/x", "0123456789");
  const auto file = Opened(Url("/x"));
  StorageConfig config = Small();
  config.deadline = StorageMs(50);
  Restart(config);
  server_.Always([](const Request&, Reply* reply) {
    reply->stall = true;
    reply->cut_after = 0;
  });
  const auto again = storage_->Open(Url("/x"), file->identity());
  const absl::Status status = Read(**again, 2, 3);
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(Text(status), HasSubstr("reading 3 bytes at 2"));
}

TEST_F(HttpStorage, AChangeIsAnErrorThatNamesBothIdentities) {
  server_.Put("/x", Pattern(900));
  const auto file = Opened(Url("/x"));
  server_.Put("/x", Pattern(800), "v2");
  for (const uint64_t offset : {0, 850}) {
    const absl::Status status = Read(*file, offset, 10);
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status;
    EXPECT_THAT(Text(status),
                AllOf(HasSubstr(Url("/x")), HasSubstr("size=900 etag=\"v1\""),
                      HasSubstr("size=800 etag=\"v2\"")));
  }
  server_.Remove("/x");
  EXPECT_EQ(Read(*file, 0, 10).code(), Code::kNotFound);
}

TEST_F(HttpStorage, AServerThatIgnoresConditionsIsCaughtByItsHeaders) {
  const std::string bytes = Pattern(3000);
  server_.Put("/x", bytes);
  const auto file = Opened(Url("/x"));
  const auto with_etag = [](const std::string& etag) {
    return [etag](const Request&, Reply* reply) {
      reply->headers[0].second = etag;
    };
  };
  server_.Next(with_etag("\"v1\""), 2);
  server_.Next(with_etag("\"v2\""));
  EXPECT_EQ(Read(*file, 0, 3000).code(), Code::kFailedPrecondition);
  const auto other_size = [](const Request&, Reply* reply) {
    reply->headers[1].second = "bytes 0-9/3001";
  };
  server_.Next(other_size);
  EXPECT_EQ(Read(*file, 0, 10).code(), Code::kFailedPrecondition);
}

TEST_F(HttpStorage, AShorterObjectWithTheSameTagIsAChangeToo) {
  server_.Put("/x", Pattern(900));
  const auto file = Opened(Url("/x"));
  server_.Put("/x", Pattern(100));
  const absl::Status status = Read(*file, 500, 10);
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr("416"));
  EXPECT_THAT(Text(status), HasSubstr("size=100"));
}

TEST_F(HttpStorage, AWrongRangeIsRefused) {
  server_.Put("/x", Pattern(900));
  const auto file = Opened(Url("/x"));
  for (const char* range : {"bytes 1-10/900", "bytes */900", "", "rubbish"}) {
    server_.Next([range](const Request&, Reply* reply) {
      reply->headers[1].second = range;
    });
    EXPECT_EQ(Read(*file, 0, 10).code(), Code::kDataLoss) << range;
  }
}

TEST_F(HttpStorage, AServerWithoutRangesServesWholeObjectsOnly) {
  const std::string bytes = Pattern(900);
  server_.Put("/x", bytes);
  server_.Always([&](const Request& request, Reply* reply) {
    if (request.method == "GET") {
      *reply = {.headers = {{"ETag", "\"v1\""}}, .body = bytes};
    }
  });
  const auto file = Opened(Url("/x"));
  EXPECT_EQ(ReadWhole(*file, 1000).value(), bytes);
  server_.Next([](const Request&, Reply* reply) { reply->cut_after = 300; });
  EXPECT_EQ(ReadWhole(*file, 1000).value(), bytes);
  for (const uint64_t offset : {0, 10}) {
    const absl::Status status = Read(*file, offset, 10);
    EXPECT_EQ(status.code(), Code::kUnimplemented) << status;
    EXPECT_THAT(Text(status), HasSubstr("ranges"));
  }
}

TEST_F(HttpStorage, WithoutHeadTheFirstByteTellsTheSize) {
  server_.Put("/x", "0123456789");
  server_.Put("/empty", "");
  server_.Always([](const Request& request, Reply* reply) {
    if (request.method == "HEAD") *reply = {.status = 405};
  });
  EXPECT_EQ(Opened(Url("/x"))->identity(), "size=10 etag=\"v1\"");
  EXPECT_EQ(Opened(Url("/empty"))->size(), 0);
}

TEST_F(HttpStorage, WithoutATagTheDateIsTheVersion) {
  server_.Put("/x", "0123456789");
  std::string date = "Tue, 15 Nov 1994 12:45:26 GMT";
  server_.Always([&](const Request&, Reply* reply) {
    if (!reply->headers.empty()) reply->headers[0] = {"Last-Modified", date};
  });
  const auto file = Opened(Url("/x"));
  EXPECT_EQ(file->identity(), "size=10 modified=\"" + date + "\"");
  EXPECT_TRUE(Read(*file, 0, 10).ok());
  EXPECT_EQ(server_.Seen().back().Header("if-unmodified-since"), date);
  date = "Tue, 15 Nov 1994 12:45:27 GMT";
  EXPECT_EQ(Read(*file, 0, 10).code(), Code::kFailedPrecondition);
}

TEST_F(HttpStorage, RedirectsAreFollowedAFewTimes) {
  server_.Put("/x", "0123456789");
  server_.Always([&](const Request& request, Reply* reply) {
    if (request.Path() == "/from") {
      *reply = {.status = 302,
                .headers = {{"Location", Url("/x")},
                            {"ETag", "\"of the redirect\""}}};
    }
    if (request.Path() == "/circle") {
      *reply = {.status = 302, .headers = {{"Location", Url("/circle")}}};
    }
    if (request.Path() == "/file") {
      *reply = {.status = 302, .headers = {{"Location", "file:///etc/passwd"}}};
    }
  });
  const auto file = Opened(Url("/from"));
  EXPECT_EQ(file->identity(), "size=10 etag=\"v1\"");
  EXPECT_EQ(ReadWhole(*file, 10).value(), "0123456789");
  EXPECT_EQ(storage_->Open(Url("/circle")).status().code(),
            Code::kFailedPrecondition);
  EXPECT_EQ(storage_->Open(Url("/file")).status().code(),
            Code::kFailedPrecondition);
}

TEST_F(HttpStorage, PasswordsAndSignaturesOfUrlsAreNotInMessages) {
  const std::string uri = fmt::format(
      "http://user:secret-1@{}/none?sig=secret-2", server_.url().substr(7));
  const auto file = storage_->Open(uri);
  EXPECT_EQ(file.status().code(), Code::kNotFound);
  EXPECT_THAT(Text(file.status()), Not(HasSubstr("secret")));
  EXPECT_EQ(server_.Seen().back().Query("sig"), "secret-2");
}

TEST_F(HttpStorage, AnIdentityThatIsKnownSavesTheFirstQuestion) {
  server_.Put("/x", "0123456789");
  const auto file = storage_->Open(Url("/x"), "size=10 etag=\"v1\"");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(server_.Seen().size(), 0);
  EXPECT_EQ(ReadWhole(**file, 10).value(), "0123456789");
  const auto other = storage_->Open(Url("/x"), "size=10 etag=\"v0\"");
  EXPECT_EQ(Read(**other, 0, 10).code(), Code::kFailedPrecondition);
  EXPECT_EQ(storage_->Open(Url("/x"), "size=10 mtime_ns=1").status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(storage_->List(Url("/")).status().code(), Code::kUnimplemented);
}

TEST_F(HttpStorage, FilesOutliveTheirStorageAndAreReadByManyThreads) {
  const std::string bytes = Pattern(20'000);
  server_.Put("/x", bytes);
  const auto file = Opened(Url("/x"));
  storage_.reset();
  server_.Next(ObjectServer::Status(500), 10);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < 5; ++j) {
        std::string some;
        EXPECT_TRUE(Read(*file, 100 * i + j, 3000, &some).ok());
        EXPECT_EQ(some, bytes.substr(100 * i + j, 3000));
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

TEST_F(HttpStorage, ALateRangeIsAskedForASecondTime) {
  const std::string bytes = Pattern(900);
  server_.Put("/x", bytes);
  StorageConfig config = Small();
  config.hedge_after = StorageMs(5);
  config.hedge_factor = 1;
  config.max_hedges = 2;
  Restart(config);
  const auto file = Opened(Url("/x"));
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(Read(*file, i, 10).ok());
  server_.Next([](const Request&, Reply* reply) {
    reply->cut_after = 100;
    reply->stall = true;
  });
  std::string some;
  EXPECT_TRUE(Read(*file, 100, 700, &some).ok());
  EXPECT_EQ(some, bytes.substr(100, 700));
  EXPECT_GE(storage_->counters().hedges, 1);
}

}  // namespace
}  // namespace leat::worker

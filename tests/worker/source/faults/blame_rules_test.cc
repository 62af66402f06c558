// SPDX-License-Identifier: Apache-2.0
//
// Whose trouble it is: each row of the tables, and what a missing file is.
#include "worker/source/faults/blame_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "core/status.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/faults/file_error.h"
#include "worker/source/storage/remote/verdict.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using Code = absl::StatusCode;
using testing::HasSubstr;

struct ErrnoCase {
  int error;
  Code code;
  Blame blame;
};

TEST(BlameRules, OfErrno) {
  const ErrnoCase cases[] = {
      {ENOENT, Code::kNotFound, Blame::kObject},
      {ENOTDIR, Code::kNotFound, Blame::kObject},
      {ESTALE, Code::kNotFound, Blame::kObject},
      {ELOOP, Code::kFailedPrecondition, Blame::kObject},
      {ENAMETOOLONG, Code::kFailedPrecondition, Blame::kObject},
      {EISDIR, Code::kFailedPrecondition, Blame::kObject},
      {EACCES, Code::kPermissionDenied, Blame::kWorker},
      {EPERM, Code::kPermissionDenied, Blame::kWorker},
      {EIO, Code::kUnavailable, Blame::kWorker},
      {ENXIO, Code::kUnavailable, Blame::kWorker},
      {ENODEV, Code::kUnavailable, Blame::kWorker},
      {ENOTCONN, Code::kUnavailable, Blame::kWorker},
      {ESHUTDOWN, Code::kUnavailable, Blame::kWorker},
      {EHOSTDOWN, Code::kUnavailable, Blame::kWorker},
      {EHOSTUNREACH, Code::kUnavailable, Blame::kWorker},
      {ENETUNREACH, Code::kUnavailable, Blame::kWorker},
      {EMFILE, Code::kUnavailable, Blame::kWorker},
      {ENFILE, Code::kUnavailable, Blame::kWorker},
      {ENOMEM, Code::kUnavailable, Blame::kWorker},
      {EINTR, Code::kUnavailable, Blame::kPassing},
      {EAGAIN, Code::kUnavailable, Blame::kPassing},
      {EBUSY, Code::kUnavailable, Blame::kPassing},
      {ETIMEDOUT, Code::kUnavailable, Blame::kPassing},
      {ECONNRESET, Code::kUnavailable, Blame::kPassing},
      {ECONNABORTED, Code::kUnavailable, Blame::kPassing},
      // Whatever else there may be never touches a sample.
      {ENOTTY, Code::kUnknown, Blame::kWorker},
  };
  for (const ErrnoCase& each : cases) {
    const absl::Status status = FileError(each.error, "open", "/a/b");
    EXPECT_EQ(status.code(), each.code) << status;
    EXPECT_EQ(BlameOf(status), each.blame) << status;
  }
}

struct HttpCase {
  int status;
  std::string s3;
  Code code;
  Blame blame;
};

TEST(BlameRules, OfHttp) {
  const HttpCase cases[] = {
      {404, "", Code::kNotFound, Blame::kObject},
      {404, "NoSuchKey", Code::kNotFound, Blame::kObject},
      {404, "NoSuchBucket", Code::kNotFound, Blame::kWorker},
      {410, "", Code::kNotFound, Blame::kObject},
      {412, "PreconditionFailed", Code::kFailedPrecondition, Blame::kObject},
      {416, "InvalidRange", Code::kOutOfRange, Blame::kObject},
      {400, "", Code::kInvalidArgument, Blame::kWorker},
      {400, "ExpiredToken", Code::kUnauthenticated, Blame::kWorker},
      {400, "InvalidToken", Code::kUnauthenticated, Blame::kWorker},
      {400, "TokenRefreshRequired", Code::kUnauthenticated, Blame::kWorker},
      {401, "", Code::kUnauthenticated, Blame::kWorker},
      {403, "AccessDenied", Code::kPermissionDenied, Blame::kWorker},
      {403, "RequestTimeTooSkewed", Code::kFailedPrecondition, Blame::kWorker},
      {405, "", Code::kUnimplemented, Blame::kWorker},
      {501, "", Code::kUnimplemented, Blame::kWorker},
      {505, "", Code::kUnknown, Blame::kWorker},
      {302, "", Code::kUnknown, Blame::kWorker},
      {418, "", Code::kUnknown, Blame::kWorker},
      {400, "RequestTimeout", Code::kUnavailable, Blame::kPassing},
      {408, "", Code::kUnavailable, Blame::kPassing},
      {425, "", Code::kUnavailable, Blame::kPassing},
      {429, "", Code::kUnavailable, Blame::kPassing},
      {500, "InternalError", Code::kUnavailable, Blame::kPassing},
      {503, "SlowDown", Code::kUnavailable, Blame::kPassing},
      {599, "", Code::kUnavailable, Blame::kPassing},
  };
  for (const HttpCase& each : cases) {
    HttpResponse response;
    response.status = each.status;
    if (!each.s3.empty())
      response.body = fmt::format("<Error><Code>{}</Code></Error>", each.s3);
    const Verdict verdict =
        Explain(response, {.what = "s3://b/k", .region = "", .credentials = {}},
                WallTime());
    EXPECT_EQ(verdict.status.code(), each.code) << verdict.status;
    EXPECT_EQ(BlameOf(verdict.status), each.blame) << verdict.status;
    EXPECT_EQ(verdict.kind == Verdict::Kind::kRetry,
              each.blame == Blame::kPassing)
        << verdict.status;
  }
}

TEST(BlameRules, OfConnections) {
  using Failure = HttpResponse::Failure;
  const std::pair<Failure, Blame> cases[] = {
      {Failure::kConnection, Blame::kPassing},
      {Failure::kTimeout, Blame::kPassing},
      {Failure::kTooLarge, Blame::kWorker},
      {Failure::kFinal, Blame::kWorker},  // a certificate that does not verify
  };
  for (const auto& [failure, blame] : cases) {
    HttpResponse response;
    response.failure = failure;
    const Verdict verdict = Explain(
        response, {.what = "w", .region = "", .credentials = {}}, WallTime());
    EXPECT_EQ(BlameOf(verdict.status), blame) << verdict.status;
  }
}

TEST(BlameRules, OfABucketElsewhere) {
  HttpResponse response;
  response.status = 301;
  response.bucket_region = "eu-west-1";
  const Verdict verdict =
      Explain(response, {.what = "w", .region = "us-east-1", .credentials = {}},
              WallTime());
  EXPECT_EQ(BlameOf(verdict.status), Blame::kWorker) << verdict.status;
}

TEST(BlameRules, VerdictsThatNobodyMarked) {
  const std::pair<Code, Blame> cases[] = {
      {Code::kDataLoss, Blame::kSample},
      {Code::kInvalidArgument, Blame::kSample},
      {Code::kFailedPrecondition, Blame::kSample},
      {Code::kResourceExhausted, Blame::kSample},
      {Code::kUnimplemented, Blame::kSample},
      {Code::kOutOfRange, Blame::kSample},
      {Code::kUnavailable, Blame::kPassing},
      {Code::kDeadlineExceeded, Blame::kPassing},
      {Code::kCancelled, Blame::kPassing},
      {Code::kAborted, Blame::kPassing},
      {Code::kInternal, Blame::kWorker},
      {Code::kUnknown, Blame::kWorker},
      {Code::kPermissionDenied, Blame::kWorker},
      {Code::kUnauthenticated, Blame::kWorker},
  };
  for (const auto& [code, blame] : cases) {
    const absl::Status plain(code, "why");
    EXPECT_EQ(BlameOf(Judged(plain)), blame) << plain;
    // The mark wins over the code.
    EXPECT_EQ(BlameOf(Judged(WithBlame(plain, Blame::kObject))),
              Blame::kObject);
  }
  EXPECT_TRUE(Judged(absl::OkStatus()).ok());
}

// A file that is gone is the object's; without its folder, the worker's.
TEST(BlameRules, OfAMissingFile) {
  const TempDir dir;
  dir.Write("set/class/a.jpg", "a");
  const std::string root = dir.path() + "/set";
  const auto blame = [&](const std::string& path, const std::string& folder) {
    return BlameOf(IndexedFileError(ENOENT, "open", path, path, folder));
  };
  const std::string gone = root + "/class/gone.jpg";
  EXPECT_EQ(blame(gone, root), Blame::kObject);
  EXPECT_EQ(blame(gone, ""), Blame::kObject);
  EXPECT_EQ(blame(gone, gone), Blame::kObject);
  const std::string of_class = root + "/other/gone.jpg";
  EXPECT_EQ(blame(of_class, root), Blame::kObject) << "a class was removed";
  EXPECT_EQ(blame(of_class, ""), Blame::kWorker) << "an archive's folder";
  EXPECT_EQ(blame(gone, dir.path() + "/nowhere"), Blame::kWorker);
  EXPECT_EQ(blame(gone, root + "/class/a.jpg"), Blame::kWorker) << "no folder";
  std::filesystem::remove_all(root + "/class");
  EXPECT_EQ(blame(gone, root), Blame::kWorker) << "a mount that is not there";
  const absl::Status status =
      IndexedFileError(ENOENT, "open", gone, gone, root);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("is it mounted here?"));
  // What is no matter of being there does not look.
  EXPECT_EQ(BlameOf(IndexedFileError(EIO, "open", gone, gone, root)),
            Blame::kWorker);
}

TEST(BlameRules, OfWhatStorageOpens) {
  const TempDir dir;
  dir.Write("set/a", "one");
  const auto storage = Storage::Create({});
  ASSERT_TRUE(storage.ok());
  const std::string path = dir.path() + "/set/a";
  const std::string identity = (*(*storage)->Open(path))->identity();
  const auto blame = [&](const std::string& uri, const std::string& expected,
                         const std::string& folder) {
    return BlameOf((*storage)->Open(uri, expected, folder).status());
  };
  EXPECT_EQ(blame(path, identity, ""), std::nullopt);
  EXPECT_EQ(blame(path, "size=9 mtime_ns=1", ""), Blame::kObject);
  EXPECT_EQ(blame(path, "nonsense", ""), Blame::kSample);
  EXPECT_EQ(blame("gopher://a/b", "", ""), Blame::kSample);
  EXPECT_EQ(blame(path + "b", identity, ""), Blame::kObject);
  EXPECT_EQ(blame("file://" + path + "b", identity, ""), Blame::kObject);
  EXPECT_EQ(blame(path + "b", identity, "file://" + dir.path() + "/set"),
            Blame::kObject);
  EXPECT_EQ(blame(path + "b", identity, dir.path() + "/other"), Blame::kWorker);
  EXPECT_EQ(blame(dir.path() + "/set", "", ""), Blame::kObject)
      << "a directory";
  EXPECT_EQ(blame("s3://bucket/key", "size=1 mtime_ns=1", ""), Blame::kWorker)
      << "no keys, or the identity of a file";
}

}  // namespace
}  // namespace leat::worker

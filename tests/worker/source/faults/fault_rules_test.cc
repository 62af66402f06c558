// SPDX-License-Identifier: Apache-2.0
//
// Checks each row of the tables of faults, and the fault of a missing file.
#include "worker/source/faults/fault_rules.h"

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
  Fault fault;
};

TEST(FaultRules, OfErrno) {
  const ErrnoCase cases[] = {
      {ENOENT, Code::kNotFound, Fault::kObject},
      {ENOTDIR, Code::kNotFound, Fault::kObject},
      {ESTALE, Code::kNotFound, Fault::kObject},
      {ELOOP, Code::kFailedPrecondition, Fault::kObject},
      {ENAMETOOLONG, Code::kFailedPrecondition, Fault::kObject},
      {EISDIR, Code::kFailedPrecondition, Fault::kObject},
      {EACCES, Code::kPermissionDenied, Fault::kWorker},
      {EPERM, Code::kPermissionDenied, Fault::kWorker},
      {EIO, Code::kUnavailable, Fault::kWorker},
      {ENXIO, Code::kUnavailable, Fault::kWorker},
      {ENODEV, Code::kUnavailable, Fault::kWorker},
      {ENOTCONN, Code::kUnavailable, Fault::kWorker},
      {ESHUTDOWN, Code::kUnavailable, Fault::kWorker},
      {EHOSTDOWN, Code::kUnavailable, Fault::kWorker},
      {EHOSTUNREACH, Code::kUnavailable, Fault::kWorker},
      {ENETUNREACH, Code::kUnavailable, Fault::kWorker},
      {EMFILE, Code::kUnavailable, Fault::kWorker},
      {ENFILE, Code::kUnavailable, Fault::kWorker},
      {ENOMEM, Code::kUnavailable, Fault::kWorker},
      {EINTR, Code::kUnavailable, Fault::kTransient},
      {EAGAIN, Code::kUnavailable, Fault::kTransient},
      {EBUSY, Code::kUnavailable, Fault::kTransient},
      {ETIMEDOUT, Code::kUnavailable, Fault::kTransient},
      {ECONNRESET, Code::kUnavailable, Fault::kTransient},
      {ECONNABORTED, Code::kUnavailable, Fault::kTransient},
      // Any other error never affects a sample.
      {ENOTTY, Code::kUnknown, Fault::kWorker},
  };
  for (const ErrnoCase& each : cases) {
    const absl::Status status = FileError(each.error, "open", "/a/b");
    EXPECT_EQ(status.code(), each.code) << status;
    EXPECT_EQ(FaultOf(status), each.fault) << status;
  }
}

struct HttpCase {
  int status;
  std::string s3;
  Code code;
  Fault fault;
};

TEST(FaultRules, OfHttp) {
  const HttpCase cases[] = {
      {404, "", Code::kNotFound, Fault::kObject},
      {404, "NoSuchKey", Code::kNotFound, Fault::kObject},
      {404, "NoSuchBucket", Code::kNotFound, Fault::kWorker},
      {410, "", Code::kNotFound, Fault::kObject},
      {412, "PreconditionFailed", Code::kFailedPrecondition, Fault::kObject},
      {416, "InvalidRange", Code::kOutOfRange, Fault::kObject},
      {400, "", Code::kInvalidArgument, Fault::kWorker},
      {400, "ExpiredToken", Code::kUnauthenticated, Fault::kWorker},
      {400, "InvalidToken", Code::kUnauthenticated, Fault::kWorker},
      {400, "TokenRefreshRequired", Code::kUnauthenticated, Fault::kWorker},
      {401, "", Code::kUnauthenticated, Fault::kWorker},
      {403, "AccessDenied", Code::kPermissionDenied, Fault::kWorker},
      {403, "RequestTimeTooSkewed", Code::kFailedPrecondition, Fault::kWorker},
      {405, "", Code::kUnimplemented, Fault::kWorker},
      {407, "", Code::kUnauthenticated, Fault::kWorker},
      {501, "", Code::kUnimplemented, Fault::kWorker},
      {505, "", Code::kUnknown, Fault::kWorker},
      {302, "", Code::kUnknown, Fault::kWorker},
      {418, "", Code::kUnknown, Fault::kWorker},
      {400, "RequestTimeout", Code::kUnavailable, Fault::kTransient},
      {408, "", Code::kUnavailable, Fault::kTransient},
      {425, "", Code::kUnavailable, Fault::kTransient},
      {429, "", Code::kUnavailable, Fault::kTransient},
      {500, "InternalError", Code::kUnavailable, Fault::kTransient},
      {503, "SlowDown", Code::kUnavailable, Fault::kTransient},
      {599, "", Code::kUnavailable, Fault::kTransient},
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
    EXPECT_EQ(FaultOf(verdict.status), each.fault) << verdict.status;
    EXPECT_EQ(verdict.kind == Verdict::Kind::kRetry,
              each.fault == Fault::kTransient)
        << verdict.status;
  }
}

TEST(FaultRules, AProxyThatRefusesIsNamed) {
  HttpResponse response;
  response.status = 407;
  const Verdict verdict = Explain(
      response, {.what = "w", .region = "", .credentials = {}}, WallTime());
  EXPECT_THAT(std::string(Message(verdict.status)), HasSubstr("http_proxy"));
}

TEST(FaultRules, OfConnections) {
  using Failure = HttpResponse::Failure;
  const std::pair<Failure, Fault> cases[] = {
      {Failure::kConnection, Fault::kTransient},
      {Failure::kTimeout, Fault::kTransient},
      {Failure::kTooLarge, Fault::kWorker},
      {Failure::kFinal, Fault::kWorker},  // a certificate that does not verify
  };
  for (const auto& [failure, fault] : cases) {
    HttpResponse response;
    response.failure = failure;
    const Verdict verdict = Explain(
        response, {.what = "w", .region = "", .credentials = {}}, WallTime());
    EXPECT_EQ(FaultOf(verdict.status), fault) << verdict.status;
  }
}

TEST(FaultRules, OfABucketElsewhere) {
  HttpResponse response;
  response.status = 301;
  response.bucket_region = "eu-west-1";
  const Verdict verdict =
      Explain(response, {.what = "w", .region = "us-east-1", .credentials = {}},
              WallTime());
  EXPECT_EQ(FaultOf(verdict.status), Fault::kWorker) << verdict.status;
}

TEST(FaultRules, VerdictsThatNobodyMarked) {
  const std::pair<Code, Fault> cases[] = {
      {Code::kDataLoss, Fault::kSample},
      {Code::kInvalidArgument, Fault::kSample},
      {Code::kFailedPrecondition, Fault::kSample},
      {Code::kResourceExhausted, Fault::kSample},
      {Code::kUnimplemented, Fault::kSample},
      {Code::kOutOfRange, Fault::kSample},
      {Code::kUnavailable, Fault::kTransient},
      {Code::kDeadlineExceeded, Fault::kTransient},
      {Code::kCancelled, Fault::kTransient},
      {Code::kAborted, Fault::kTransient},
      {Code::kInternal, Fault::kWorker},
      {Code::kUnknown, Fault::kWorker},
      {Code::kPermissionDenied, Fault::kWorker},
      {Code::kUnauthenticated, Fault::kWorker},
  };
  for (const auto& [code, fault] : cases) {
    const absl::Status plain(code, "why");
    EXPECT_EQ(FaultOf(Judged(plain)), fault) << plain;
    // The mark takes precedence over the code.
    EXPECT_EQ(FaultOf(Judged(WithFault(plain, Fault::kObject))),
              Fault::kObject);
  }
  EXPECT_TRUE(Judged(absl::OkStatus()).ok());
}

// A missing file is the object's fault; without its folder, the worker's.
TEST(FaultRules, OfAMissingFile) {
  const TempDir dir;
  dir.Write("set/class/a.jpg", "a");
  const std::string root = dir.path() + "/set";
  const auto fault = [&](const std::string& path, const std::string& folder) {
    return FaultOf(IndexedFileError(ENOENT, "open", path, path, folder));
  };
  const std::string gone = root + "/class/gone.jpg";
  EXPECT_EQ(fault(gone, root), Fault::kObject);
  EXPECT_EQ(fault(gone, ""), Fault::kObject);
  EXPECT_EQ(fault(gone, gone), Fault::kObject);
  const std::string of_class = root + "/other/gone.jpg";
  EXPECT_EQ(fault(of_class, root), Fault::kObject) << "a class was removed";
  EXPECT_EQ(fault(of_class, ""), Fault::kWorker) << "an archive's folder";
  EXPECT_EQ(fault(gone, dir.path() + "/nowhere"), Fault::kWorker);
  EXPECT_EQ(fault(gone, root + "/class/a.jpg"), Fault::kWorker) << "no folder";
  std::filesystem::remove_all(root + "/class");
  EXPECT_EQ(fault(gone, root), Fault::kWorker) << "a mount that is not there";
  const absl::Status status =
      IndexedFileError(ENOENT, "open", gone, gone, root);
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("is it mounted here?"));
  // An error that is not about existence does not examine the folder.
  EXPECT_EQ(FaultOf(IndexedFileError(EIO, "open", gone, gone, root)),
            Fault::kWorker);
}

TEST(FaultRules, OfWhatStorageOpens) {
  const TempDir dir;
  dir.Write("set/a", "one");
  const auto storage = Storage::Create({});
  ASSERT_TRUE(storage.ok());
  const std::string path = dir.path() + "/set/a";
  const std::string identity = (*(*storage)->Open(path))->identity();
  const auto fault = [&](const std::string& uri, const std::string& expected,
                         const std::string& folder) {
    return FaultOf((*storage)->Open(uri, expected, folder).status());
  };
  EXPECT_EQ(fault(path, identity, ""), std::nullopt);
  EXPECT_EQ(fault(path, "size=9 mtime_ns=1", ""), Fault::kObject);
  EXPECT_EQ(fault(path, "nonsense", ""), Fault::kSample);
  EXPECT_EQ(fault("gopher://a/b", "", ""), Fault::kSample);
  EXPECT_EQ(fault(path + "b", identity, ""), Fault::kObject);
  EXPECT_EQ(fault("file://" + path + "b", identity, ""), Fault::kObject);
  EXPECT_EQ(fault(path + "b", identity, "file://" + dir.path() + "/set"),
            Fault::kObject);
  EXPECT_EQ(fault(path + "b", identity, dir.path() + "/other"), Fault::kWorker);
  EXPECT_EQ(fault(dir.path() + "/set", "", ""), Fault::kObject)
      << "a directory";
  EXPECT_EQ(fault("s3://bucket/key", "size=1 mtime_ns=1", ""), Fault::kWorker)
      << "no keys, or the identity of a file";
}

}  // namespace
}  // namespace leat::worker

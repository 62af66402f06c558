// SPDX-License-Identifier: Apache-2.0
#include "worker/source/faults/blame_rules.h"

#include <cerrno>
#include <utility>

namespace leat::worker {
namespace {

using Code = absl::StatusCode;

struct ErrnoRule {
  int error;
  BlameRule rule;
};

constexpr ErrnoRule kErrnoRules[] = {
    // It is not there, or is something else by now.
    {ENOENT, {Code::kNotFound, Blame::kObject}},
    {ENOTDIR, {Code::kNotFound, Blame::kObject}},
    {ESTALE, {Code::kNotFound, Blame::kObject}},
    {ELOOP, {Code::kFailedPrecondition, Blame::kObject}},
    {ENAMETOOLONG, {Code::kFailedPrecondition, Blame::kObject}},
    {EISDIR, {Code::kFailedPrecondition, Blame::kObject}},
    // This worker may not, or cannot.
    {EACCES, {Code::kPermissionDenied, Blame::kWorker}},
    {EPERM, {Code::kPermissionDenied, Blame::kWorker}},
    {EIO, {Code::kUnavailable, Blame::kWorker}},
    {ENXIO, {Code::kUnavailable, Blame::kWorker}},
    {ENODEV, {Code::kUnavailable, Blame::kWorker}},
    {ENOTCONN, {Code::kUnavailable, Blame::kWorker}},
    {ESHUTDOWN, {Code::kUnavailable, Blame::kWorker}},
    {EHOSTDOWN, {Code::kUnavailable, Blame::kWorker}},
    {EHOSTUNREACH, {Code::kUnavailable, Blame::kWorker}},
    {ENETUNREACH, {Code::kUnavailable, Blame::kWorker}},
    {EMFILE, {Code::kUnavailable, Blame::kWorker}},
    {ENFILE, {Code::kUnavailable, Blame::kWorker}},
    {ENOMEM, {Code::kUnavailable, Blame::kWorker}},
    // Another try may help.
    {EINTR, {Code::kUnavailable, Blame::kPassing}},
    {EAGAIN, {Code::kUnavailable, Blame::kPassing}},
    {EBUSY, {Code::kUnavailable, Blame::kPassing}},
    {ETIMEDOUT, {Code::kUnavailable, Blame::kPassing}},
    {ECONNRESET, {Code::kUnavailable, Blame::kPassing}},
    {ECONNABORTED, {Code::kUnavailable, Blame::kPassing}},
};

struct HttpRule {
  int first, last;        // statuses
  std::string_view code;  // empty: any
  BlameRule rule;
};

// The first that fits.
constexpr HttpRule kHttpRules[] = {
    // The bucket is what a mount is elsewhere.
    {404, 404, "NoSuchBucket", {Code::kNotFound, Blame::kWorker}},
    {404, 404, "", {Code::kNotFound, Blame::kObject}},
    {410, 410, "", {Code::kNotFound, Blame::kObject}},
    // Keys, rights, clock, region, or a server that serves no objects.
    {300, 499, "ExpiredToken", {Code::kUnauthenticated, Blame::kWorker}},
    {300, 499, "InvalidToken", {Code::kUnauthenticated, Blame::kWorker}},
    {300,
     499,
     "TokenRefreshRequired",
     {Code::kUnauthenticated, Blame::kWorker}},
    {300,
     499,
     "RequestTimeTooSkewed",
     {Code::kFailedPrecondition, Blame::kWorker}},
    {400, 400, "RequestTimeout", {Code::kUnavailable, Blame::kPassing}},
    {400, 400, "", {Code::kInvalidArgument, Blame::kWorker}},
    {401, 401, "", {Code::kUnauthenticated, Blame::kWorker}},
    {403, 403, "", {Code::kPermissionDenied, Blame::kWorker}},
    {405, 405, "", {Code::kUnimplemented, Blame::kWorker}},
    {501, 501, "", {Code::kUnimplemented, Blame::kWorker}},
    {505, 505, "", {Code::kUnknown, Blame::kWorker}},
    // Another version, or another length, than the one that was indexed.
    {412, 412, "", {Code::kFailedPrecondition, Blame::kObject}},
    {416, 416, "", {Code::kOutOfRange, Blame::kObject}},
    // Another try may help.
    {408, 408, "", {Code::kUnavailable, Blame::kPassing}},
    {425, 425, "", {Code::kUnavailable, Blame::kPassing}},
    {429, 429, "", {Code::kUnavailable, Blame::kPassing}},
    {500, 599, "", {Code::kUnavailable, Blame::kPassing}},
};

Blame BlameOfUnmarked(Code code) {
  switch (code) {
    case Code::kCancelled:
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kAborted:
      return Blame::kPassing;
    case Code::kUnknown:
    case Code::kInternal:
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
      return Blame::kWorker;
    default:
      return Blame::kSample;
  }
}

}  // namespace

BlameRule RuleOfErrno(int error) {
  for (const ErrnoRule& each : kErrnoRules)
    if (each.error == error) return each.rule;
  return {};
}

BlameRule RuleOfHttp(int status, std::string_view code) {
  for (const HttpRule& each : kHttpRules)
    if (status >= each.first && status <= each.last &&
        (each.code.empty() || each.code == code))
      return each.rule;
  return {};
}

absl::Status Judged(absl::Status status) {
  const Blame blame = BlameOfUnmarked(status.code());
  return WithDefaultBlame(std::move(status), blame);
}

}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/source/faults/fault_rules.h"

#include <cerrno>
#include <utility>

namespace leat::worker {
namespace {

using Code = absl::StatusCode;

struct ErrnoRule {
  int error;
  FaultRule rule;
};

constexpr ErrnoRule kErrnoRules[] = {
    // The file is missing, or has been replaced.
    {ENOENT, {Code::kNotFound, Fault::kObject}},
    {ENOTDIR, {Code::kNotFound, Fault::kObject}},
    {ESTALE, {Code::kNotFound, Fault::kObject}},
    {ELOOP, {Code::kFailedPrecondition, Fault::kObject}},
    {ENAMETOOLONG, {Code::kFailedPrecondition, Fault::kObject}},
    {EISDIR, {Code::kFailedPrecondition, Fault::kObject}},
    // This worker may not, or cannot, read it.
    {EACCES, {Code::kPermissionDenied, Fault::kWorker}},
    {EPERM, {Code::kPermissionDenied, Fault::kWorker}},
    {EIO, {Code::kUnavailable, Fault::kWorker}},
    {ENXIO, {Code::kUnavailable, Fault::kWorker}},
    {ENODEV, {Code::kUnavailable, Fault::kWorker}},
    {ENOTCONN, {Code::kUnavailable, Fault::kWorker}},
    {ESHUTDOWN, {Code::kUnavailable, Fault::kWorker}},
    {EHOSTDOWN, {Code::kUnavailable, Fault::kWorker}},
    {EHOSTUNREACH, {Code::kUnavailable, Fault::kWorker}},
    {ENETUNREACH, {Code::kUnavailable, Fault::kWorker}},
    {EMFILE, {Code::kUnavailable, Fault::kWorker}},
    {ENFILE, {Code::kUnavailable, Fault::kWorker}},
    {ENOMEM, {Code::kUnavailable, Fault::kWorker}},
    // Another try may help.
    {EINTR, {Code::kUnavailable, Fault::kTransient}},
    {EAGAIN, {Code::kUnavailable, Fault::kTransient}},
    {EBUSY, {Code::kUnavailable, Fault::kTransient}},
    {ETIMEDOUT, {Code::kUnavailable, Fault::kTransient}},
    {ECONNRESET, {Code::kUnavailable, Fault::kTransient}},
    {ECONNABORTED, {Code::kUnavailable, Fault::kTransient}},
};

struct HttpRule {
  int first, last;        // statuses
  std::string_view code;  // empty: any
  FaultRule rule;
};

// The first rule that matches applies.
constexpr HttpRule kHttpRules[] = {
    // A missing bucket is like a missing mount.
    {404, 404, "NoSuchBucket", {Code::kNotFound, Fault::kWorker}},
    {404, 404, "", {Code::kNotFound, Fault::kObject}},
    {410, 410, "", {Code::kNotFound, Fault::kObject}},
    // Keys, rights, clock, region, or a server that serves no objects.
    {300, 499, "ExpiredToken", {Code::kUnauthenticated, Fault::kWorker}},
    {300, 499, "InvalidToken", {Code::kUnauthenticated, Fault::kWorker}},
    {300,
     499,
     "TokenRefreshRequired",
     {Code::kUnauthenticated, Fault::kWorker}},
    {300,
     499,
     "RequestTimeTooSkewed",
     {Code::kFailedPrecondition, Fault::kWorker}},
    {400, 400, "RequestTimeout", {Code::kUnavailable, Fault::kTransient}},
    {400, 400, "", {Code::kInvalidArgument, Fault::kWorker}},
    {401, 401, "", {Code::kUnauthenticated, Fault::kWorker}},
    {403, 403, "", {Code::kPermissionDenied, Fault::kWorker}},
    {405, 405, "", {Code::kUnimplemented, Fault::kWorker}},
    {407, 407, "", {Code::kUnauthenticated, Fault::kWorker}},
    {501, 501, "", {Code::kUnimplemented, Fault::kWorker}},
    {505, 505, "", {Code::kUnknown, Fault::kWorker}},
    // Another version, or another length, than the one that was indexed.
    {412, 412, "", {Code::kFailedPrecondition, Fault::kObject}},
    {416, 416, "", {Code::kOutOfRange, Fault::kObject}},
    // Another try may help.
    {408, 408, "", {Code::kUnavailable, Fault::kTransient}},
    {425, 425, "", {Code::kUnavailable, Fault::kTransient}},
    {429, 429, "", {Code::kUnavailable, Fault::kTransient}},
    {500, 599, "", {Code::kUnavailable, Fault::kTransient}},
};

Fault FaultOfUnmarked(Code code) {
  switch (code) {
    case Code::kCancelled:
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kAborted:
      return Fault::kTransient;
    case Code::kUnknown:
    case Code::kInternal:
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
      return Fault::kWorker;
    default:
      return Fault::kSample;
  }
}

}  // namespace

FaultRule RuleOfErrno(int error) {
  for (const ErrnoRule& each : kErrnoRules)
    if (each.error == error) return each.rule;
  return {};
}

FaultRule RuleOfHttp(int status, std::string_view code) {
  for (const HttpRule& each : kHttpRules)
    if (status >= each.first && status <= each.last &&
        (each.code.empty() || each.code == code))
      return each.rule;
  return {};
}

absl::Status Judged(absl::Status status) {
  const Fault fault = FaultOfUnmarked(status.code());
  return WithDefaultFault(std::move(status), fault);
}

}  // namespace leat::worker

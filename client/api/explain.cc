// SPDX-License-Identifier: Apache-2.0
#include "client/api/explain.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "core/status.h"
#include "leat/v1/explain.grpc.pb.h"
#include "rpc/call/call_set.h"
#include "rpc/call/channel.h"
#include "rpc/call/grpc_status.h"
#include "rpc/tls/tls_probe.h"

namespace leat::client {
namespace {

// Time to probe one unreached worker; at most kMaxWorkersAsked are probed.
constexpr Duration kUnreachedPatience = std::chrono::milliseconds(500);
constexpr int kRowsAtOnce = 1024, kRowsReadAtOnce = 64;  // explain.proto

template <class Request, class Response>
using ExplainMethod = grpc::Status (v1::ExplainService::Stub::*)(
    grpc::ClientContext*, const Request&, Response*);

// Returns whether another worker may succeed.
bool WorthAnother(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnimplemented(status) ||
         absl::IsResourceExhausted(status) || absl::IsCancelled(status) ||
         absl::IsDeadlineExceeded(status);
}

template <class Request, class Response>
absl::Status Ask(const JobData& job, const std::vector<v1::WorkerRef>& workers,
                 ExplainMethod<Request, Response> method,
                 const Request& request, absl::Time deadline,
                 Response* response) {
  const rpc::Security security = job.connection()->control.security();
  const auto ask = [&](const std::string& address, bool last) {
    const auto stub =
        v1::ExplainService::NewStub(rpc::MakeChannel(address, security));
    grpc::ClientContext context;
    // If a worker hangs, there is time left for the next one.
    const absl::Duration left =
        std::min(deadline - absl::Now(), absl::Hours(24)) / (last ? 1 : 2);
    rpc::PrepareCall(security, absl::ToChronoNanoseconds(left), &context);
    return rpc::FromGrpc((*stub.*method)(&context, request, response));
  };
  return AskInTurn(workers, ask, LookAt(security));
}

absl::Status CheckStored(const JobData& job) {
  const JobInfo& info = job.info();
  if (!IsExternal(info.spec)) return absl::OkStatus();
  return FailedPrecondition(
      "job \"{}\": its samples are in no storage, its consumers supply them",
      info.spec.name);
}

}  // namespace

absl::StatusOr<std::vector<v1::WorkerRef>> LiveWorkers(Control& control,
                                                       size_t most) {
  std::vector<v1::WorkerRef> live;
  v1::ListWorkersRequest request;
  do {
    v1::ListWorkersResponse page;
    RETURN_IF_ERROR(
        control.Call(&v1::AdminService::Stub::ListWorkers, request, &page));
    for (const v1::WorkerInfo& worker : page.workers()) {
      if (worker.state() == v1::WORKER_STATE_LOST || live.size() >= most)
        continue;
      v1::WorkerRef& ref = live.emplace_back();
      ref.set_name(worker.name());
      ref.set_address(worker.address());
    }
    if (page.next_page_token() == request.page_token()) break;
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty() && live.size() < most);
  return live;
}

WhyUnreached LookAt(const rpc::Security& security) {
  return [security](const std::string& address) {
    return rpc::WhatHinders(address, security, kUnreachedPatience).what;
  };
}

absl::Status WorkerError(const v1::WorkerRef& worker,
                         const absl::Status& status, const WhyUnreached& why) {
  std::string cause(Message(status));
  if (absl::IsUnimplemented(status))
    cause = "it is of another version, which does not know the call";
  const bool silent =
      absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  if (const std::string found = silent ? why(worker.address()) : "";
      !found.empty())
    cause = found;
  return absl::Status(status.code(),
                      fmt::format("worker {} at {}: {}", worker.name(),
                                  worker.address(), cause));
}

absl::Status AskInTurn(
    const std::vector<v1::WorkerRef>& workers,
    const std::function<absl::Status(const std::string& address, bool last)>&
        ask,
    const WhyUnreached& why) {
  std::vector<std::pair<v1::WorkerRef, absl::Status>> failed;
  for (const v1::WorkerRef& worker : workers) {
    const absl::Status status =
        ask(worker.address(), &worker == &workers.back());
    if (!WorthAnother(status)) return status;
    failed.emplace_back(worker, status);
  }
  if (failed.empty())
    return Unavailable(
        "no worker is ready: \"leat get workers\" shows what there is");
  // Probes run only after all workers were asked, since a probe may take
  // seconds.
  std::string causes;
  for (const auto& [worker, status] : failed)
    causes += fmt::format("{}{}", causes.empty() ? "" : "; ",
                          Message(WorkerError(worker, status, why)));
  return Unavailable("no worker answers: {}. \"leat doctor\" says more",
                     causes);
}

absl::StatusOr<v1::StoredRecord> LocateSample(const JobData& job,
                                              uint64_t sample,
                                              uint64_t first_document,
                                              absl::Time deadline) {
  RETURN_IF_ERROR(CheckStored(job));
  const JobInfo& info = job.info();
  if (sample >= NumSamples(info))
    return OutOfRange("sample {}: the dataset has {} samples", sample,
                      NumSamples(info));
  ASSIGN_OR_RETURN(const std::vector<v1::WorkerRef> workers,
                   LiveWorkers(job.connection()->control, kMaxWorkersAsked));
  v1::LocateSamplesRequest request;
  request.set_plan_hash(info.plan_hash.data(), info.plan_hash.size());
  request.add_samples(sample);
  request.set_first_document(first_document);
  request.set_documents(kMaxDocuments);
  v1::LocateSamplesResponse response;
  RETURN_IF_ERROR(Ask(job, workers, &v1::ExplainService::Stub::LocateSamples,
                      request, deadline, &response));
  if (response.records_size() != 1 || response.records(0).sample() != sample)
    return Internal("sample {}: a worker answered with {} other records",
                    sample, response.records_size());
  return response.records(0);
}

absl::StatusOr<std::vector<v1::ExplainedRow>> ExplainRows(
    const JobData& job, uint64_t epoch, uint64_t step,
    const std::vector<uint32_t>& rows, bool read_records, absl::Time deadline) {
  RETURN_IF_ERROR(CheckStored(job));
  const JobInfo& info = job.info();
  if (step >= job.plan().steps_per_epoch())
    return OutOfRange("step {}: job \"{}\" has {} steps an epoch", step,
                      info.spec.name, job.plan().steps_per_epoch());
  RETURN_IF_ERROR(job.CheckEpoch(epoch));
  ASSIGN_OR_RETURN(const std::vector<v1::WorkerRef> workers,
                   LiveWorkers(job.connection()->control, kMaxWorkersAsked));
  std::vector<v1::ExplainedRow> explained;
  const size_t at_once = read_records ? kRowsReadAtOnce : kRowsAtOnce;
  for (size_t begin = 0; begin < rows.size(); begin += at_once) {
    const size_t end = std::min(begin + at_once, rows.size());
    v1::ExplainRowsRequest request;
    request.set_plan_hash(info.plan_hash.data(), info.plan_hash.size());
    request.set_epoch(epoch);
    request.set_step(step);
    request.mutable_rows()->Add(rows.begin() + static_cast<ptrdiff_t>(begin),
                                rows.begin() + static_cast<ptrdiff_t>(end));
    request.set_read_records(read_records);
    request.set_documents(static_cast<uint32_t>(kMaxDocuments / (end - begin)));
    v1::ExplainRowsResponse response;
    RETURN_IF_ERROR(Ask(job, workers, &v1::ExplainService::Stub::ExplainRows,
                        request, deadline, &response));
    if (!std::ranges::equal(request.rows(), response.rows(), {}, {},
                            &v1::ExplainedRow::row))
      return Internal("step {}: a worker answered with other rows", step);
    for (v1::ExplainedRow& row : *response.mutable_rows())
      explained.push_back(std::move(row));
  }
  return explained;
}

}  // namespace leat::client

// SPDX-License-Identifier: Apache-2.0
//
// Explains samples and rows of a job by asking workers (leat/v1/explain.proto).
// Any ready worker can answer; they are asked one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/api/job_data.h"
#include "leat/v1/explain.pb.h"
#include "rpc/call/auth.h"

namespace leat::client {

inline constexpr size_t kMaxWorkersAsked = 8;

// Returns the first workers, at most `most`, that are not lost.
absl::StatusOr<std::vector<v1::WorkerRef>> LiveWorkers(Control& control,
                                                       size_t most);

// Returns, for people, why an address is not reached; an empty text if it does
// not know.
using WhyUnreached = std::function<std::string(const std::string& address)>;
// Returns a function that performs a handshake: rpc::WhatHinders.
WhyUnreached LookAt(const rpc::Security& security);

// Returns the error of a call to a worker: "worker NAME at ADDRESS: " and the
// cause. If the worker was not reached, the cause from `why` replaces gRPC's
// own text, unless it is empty.
absl::Status WorkerError(const v1::WorkerRef& worker,
                         const absl::Status& status, const WhyUnreached& why);

// Calls `ask` with each address, until one returns OK or an error that another
// worker would return, too. kUnavailable: none does, or there is none; it names
// each worker that was asked, and why it failed.
absl::Status AskInTurn(
    const std::vector<v1::WorkerRef>& workers,
    const std::function<absl::Status(const std::string& address, bool last)>&
        ask,
    const WhyUnreached& why);

// The most documents of packed rows in an answer (explain.proto).
inline constexpr uint64_t kMaxDocuments = 1024;

// Lists the documents of a packed row after the first `first_document`, at most
// kMaxDocuments. kOutOfRange: no such sample. kFailedPrecondition: samples are
// in no storage.
absl::StatusOr<v1::StoredRecord> LocateSample(const JobData& job,
                                              uint64_t sample,
                                              uint64_t first_document,
                                              absl::Time deadline);
// `rows`: in this order. Lists the first documents of packed rows: kMaxDocuments
// of one row, and of each of n rows an n-th as many. kOutOfRange: no such step. Others as LocateSample.
absl::StatusOr<std::vector<v1::ExplainedRow>> ExplainRows(
    const JobData& job, uint64_t epoch, uint64_t step,
    const std::vector<uint32_t>& rows, bool read_records, absl::Time deadline);

}  // namespace leat::client

// SPDX-License-Identifier: Apache-2.0
//
// What workers say about samples and rows of a job (leat/v1/explain.proto). Any
// worker that is ready can answer; they are asked one after the other.
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

// The first workers, at most `most`, that the coordinator does not call lost.
absl::StatusOr<std::vector<v1::WorkerRef>> LiveWorkers(Control& control,
                                                       size_t most);

// Says in words for people why nobody is reached at an address; returns an
// empty text if it does not know.
using WhyUnreached = std::function<std::string(const std::string& address)>;
// What a handshake with the daemon shows: rpc::WhatHinders.
WhyUnreached LookAt(const rpc::Security& security);

// The error of a call of a worker: "worker NAME at ADDRESS: " and the cause. If
// the worker was not reached, `why` says the cause, and gRPC's own words are
// left out where it does.
absl::Status WorkerError(const v1::WorkerRef& worker,
                         const absl::Status& status, const WhyUnreached& why);

// Calls `request` with the address of each, until one gives an answer or an error
// that another would give, too. kUnavailable: none does, or there is none; it
// names each that was asked, and why.
absl::Status AskInTurn(
    const std::vector<v1::WorkerRef>& workers,
    const std::function<absl::Status(const std::string& address, bool last)>&
        ask,
    const WhyUnreached& why);

// kOutOfRange: no such sample. kFailedPrecondition: samples are in no storage.
absl::StatusOr<v1::StoredRecord> LocateSample(const JobData& job,
                                              uint64_t sample,
                                              absl::Time deadline);
// `rows`: in the order wanted. kOutOfRange: no such step. The others as above.
absl::StatusOr<std::vector<v1::ExplainedRow>> ExplainRows(
    const JobData& job, uint64_t epoch, uint64_t step,
    const std::vector<uint32_t>& rows, bool read_records, absl::Time deadline);

}  // namespace leat::client

// SPDX-License-Identifier: Apache-2.0
//
// Decoders: how the workers of a class decode, and who decodes unlike a job.
//
// The bytes of a batch depend on the libraries that its worker decodes with, so
// a plan keeps the decoders that it began with: those of its first workers
// (State), as a digest of what they make of known images. A worker of another
// digest owns none of its shards (TableBuilder), and does not serve it.
//
//   plan P begins with 1a2b        workers a, b: 1a2b ─► owners of P
//   plan Q begins, c has more      worker c: 3c4d     ─► owner of Q, not of P
//   threads than a and b: 3c4d     worker d: none     ─► owner of both
//
// A worker of a release that does not tell its digest is believed to decode
// like all others.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/plan/job.h"
#include "server/state/types.h"

namespace leat::server {

// Plans that began with the same decoders.
struct DecoderGroup {
  Decoders decoders;
  size_t plans = 0;
};

// Whether it may serve a job that began with `digest`. Zero: the job has not
// begun, and is for workers that do not tell their own.
bool DecodesAs(const WorkerRegistration& worker, DecoderClass decoder_class,
               const Digest& digest);

// "1a2b3c4d5e6f (libjpeg-turbo 2.1.5)".
std::string Text(const Decoders& decoders);

// Which of the groups the worker decodes unlike, for people; empty: none.
std::string DecodersDiffer(const WorkerRegistration& worker,
                           std::span<const DecoderGroup> groups);

}  // namespace leat::server

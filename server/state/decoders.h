// SPDX-License-Identifier: Apache-2.0
//
// Decoders: how the workers of a class decode, and which decode unlike a job.
//
// The bytes of a batch depend on the libraries that its worker decodes with. A
// plan therefore keeps the decoders that it began with: those of its first
// workers (State), as a digest of their output for known images. A worker with
// another digest owns none of the plan's shards (TableBuilder), and does not
// serve it.
//   plan P begins with 1a2b        workers a, b: 1a2b ─► owners of P
//   plan Q begins, c has more      worker c: 3c4d     ─► owner of Q, not of P
//   threads than a and b: 3c4d     worker d: none     ─► owner of both
//
// A worker of a release that does not report its digest is assumed to decode
// like all others.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/plan/job.h"
#include "server/state/types.h"

namespace leat::server {

// DecoderGroup: the plans that began with the same decoders.
struct DecoderGroup {
  Decoders decoders;
  size_t plans = 0;
};

// True if `worker` may serve a job that began with `digest`. Zero: the job has
// not begun; then only workers that report no digest may serve it.
bool DecodesAs(const WorkerRegistration& worker, DecoderClass decoder_class,
               const Digest& digest);

// Returns "1a2b3c4d5e6f (libjpeg-turbo 2.1.5)".
std::string Text(const Decoders& decoders);

// Returns, for people, the groups that the worker decodes unlike; empty: none.
std::string DecodersDiffer(const WorkerRegistration& worker,
                           std::span<const DecoderGroup> groups);

}  // namespace leat::server

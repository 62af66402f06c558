// SPDX-License-Identifier: Apache-2.0
//
// OperatorKernel: computes an operator of a pipeline on the CPU, one sample at
// a time.
//
// There is one class per operator; all.cc has the table of all. Operators that
// are fused with a decode (crop, resize, ...) are not among them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "core/random/philox.h"
#include "worker/image/base/formats.h"
#include "worker/image/loops/tensor.h"
#include "worker/image/operators/device_form.h"

namespace leat::worker {

// The inputs of one computation. Borrowed during the call.
struct OperatorCall {
  std::span<const Tensor* const> inputs;  // dense; an encoded image: uint8 (n,)
  // Values of the arguments that are per sample and given by a node, in the
  // order of OperatorInfo::args; nullptr: it is a constant of the kernel.
  std::span<const Tensor* const> args;
  SampleRng rng;         // the same in Shape and Run
  ImageFormats formats;  // formats whose headers may be read
};

// Immutable; thread-safe.
class OperatorKernel {
 public:
  virtual ~OperatorKernel() = default;
  // Sets rank and dims of the result, whose dtype is already set. An error is a
  // fault of the sample (kDataLoss, kInvalidArgument), without the operator's
  // name. By default they are those of the first input.
  virtual absl::Status Shape(const OperatorCall& call, Tensor* result) const {
    result->rank = call.inputs[0]->rank;
    result->dims = call.inputs[0]->dims;
    return absl::OkStatus();
  }
  // Writes the result's elements to result.data, dense.
  virtual absl::Status Run(const OperatorCall& call,
                           const Tensor& result) const = 0;
  // Returns Run's effect as a form that a device can compute; monostate: only
  // Run can. The kind of form depends on the node alone. Elements of the call's
  // inputs are not read. Errors: as for Run.
  virtual absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const {
    return DeviceForm();
  }
  // For people: returns the draws from call.rng alone, where the result does
  // not show them; empty: nothing is drawn, or each element has its own draw.
  // Inputs and arguments of the call are not read.
  virtual std::string Drawn(const OperatorCall& call) const { return ""; }
};

// Returns the kernel of a node; nullptr: it has none here. Arguments are
// constants of the node or, if per sample, values of the call.
absl::StatusOr<std::shared_ptr<const OperatorKernel>> MakeOperatorKernel(
    const CheckedGraph& graph, uint32_t node);

}  // namespace leat::worker

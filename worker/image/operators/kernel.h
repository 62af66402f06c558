// SPDX-License-Identifier: Apache-2.0
//
// OperatorKernel: an operator of a pipeline on the CPU, one sample at a time.
//
// One class an operator; the table of all is in all.cc. Operators
// that are fused with a decode (crop, resize, ...) are not among them.
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

// What an operator computes from. Borrowed during the call.
struct OperatorCall {
  std::span<const Tensor* const> inputs;  // dense; an encoded image: uint8 (n,)
  // Values of the arguments that are per sample and given by a node, in the
  // order of OperatorInfo::args; null: it is a constant of the kernel.
  std::span<const Tensor* const> args;
  SampleRng rng;         // the same in Shape and Run
  ImageFormats formats;  // those of which headers may be read
};

// Immutable; thread-safe.
class OperatorKernel {
 public:
  virtual ~OperatorKernel() = default;
  // Sets rank and dims of the result; its dtype is set. An error is the
  // sample's (kDataLoss, kInvalidArgument), without the operator's name.
  virtual absl::Status Shape(const OperatorCall& call,
                             Tensor* result) const = 0;
  // Writes the result's elements to result.data, dense.
  virtual absl::Status Run(const OperatorCall& call,
                           const Tensor& result) const = 0;
  // What Run would do, for a device that does it; of monostate: only Run can.
  // Which form it is depends on the node alone. Elements of the call's inputs
  // are not looked at. Errors: Run's.
  virtual absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const {
    return DeviceForm();
  }
  // For people: what is drawn of call.rng alone, where the result does not say
  // it; empty: nothing is, or each element has a draw of its own. Inputs and
  // arguments of the call are not looked at.
  virtual std::string Drawn(const OperatorCall& call) const { return ""; }
};

// The kernel of a node; null: it has none here. Arguments are constants of the
// node or, per sample, values of the call.
absl::StatusOr<std::shared_ptr<const OperatorKernel>> MakeOperatorKernel(
    const CheckedGraph& graph, uint32_t node);

}  // namespace leat::worker

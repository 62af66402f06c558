// SPDX-License-Identifier: Apache-2.0
//
// Which pipelines a GPU computes after the decoder in one launch: one decode,
// to RGB or gray; behind it geometric operators, of which on any path at most
// one resamples (by rule "pillow"), and none after a flip; behind those
// normalize, cast and transpose; and scalars beside it, which the host
// computes.
//
// Decoder class nvjpeg is for these. The executor (worker/gpu) has bounds of
// its own beyond them: of views, and of tables.
#pragma once

#include "absl/status/status.h"
#include "core/operators.h"

namespace leat {

// kUnimplemented: names the node and its operator, and why not.
absl::Status CheckFusable(const CheckedGraph& graph);

}  // namespace leat

// SPDX-License-Identifier: Apache-2.0
//
// Reduction decides which pipelines may decode an image at a smaller scale.
//
// A decode with reduce="auto" chooses a scale by the size to which one resize
// brings the image. So its image may go only to that resize, by way of crop,
// random_crop and window: these select pixels by position relative to the whole
// image, and the smaller image has the same positions. Any other operator's
// result would depend on the scale.
#pragma once

#include "absl/status/status.h"
#include "core/pipeline/graph.h"

namespace leat {

// REQUIRES: `decode` is a decode whose arguments are complete.
bool IsReduced(const Node& decode);

// kInvalidArgument: a reduced decode's image goes elsewhere; the message names
// the decode, the other user, and the remedy. Nodes that no output needs are
// ignored. REQUIRES: references are to earlier nodes; arguments are complete.
absl::Status CheckReductions(const Graph& graph);

}  // namespace leat

// SPDX-License-Identifier: Apache-2.0
//
// Reduction: which pipelines may decode an image smaller than it is stored.
//
// A decode with reduce="auto" chooses a scale by what one resize makes of the
// image. So its image goes to that resize alone, by way of crop, random_crop
// and window: these choose pixels of the whole image by place, and the smaller
// one has these places, too. Whatever else looks at the image would see which
// scale it has.
#pragma once

#include "absl/status/status.h"
#include "core/pipeline/graph.h"

namespace leat {

// REQUIRES: a decode whose arguments are complete.
bool IsReduced(const Node& decode);

// kInvalidArgument: a reduced decode's image goes elsewhere; names the decode,
// where it goes, and what to do. Nodes that no output needs count as none.
// REQUIRES: references are to earlier nodes; arguments are complete.
absl::Status CheckReductions(const Graph& graph);

}  // namespace leat

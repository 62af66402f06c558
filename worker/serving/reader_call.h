// SPDX-License-Identifier: Apache-2.0
//
// ReaderCall: a reader node as a training script writes it.
#pragma once

#include <string>

#include "core/pipeline/graph.h"

namespace leat::worker {

// `fn.readers.webdataset(paths="/d/a.tar", ext=["jpg"], types=["encoded"])`:
// without arguments that have their defaults, and without the secrets of URIs.
// Of a long list its first values, and "...".
std::string ReaderCall(const Node& node);

}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
//
// ReaderCall: formats a reader node as a training script would write it.
#pragma once

#include <string>

#include "core/pipeline/graph.h"

namespace leat::worker {

// Returns for example `fn.readers.webdataset(paths="/d/a.tar", ext=["jpg"],
// types=["encoded"])`: without arguments that have their defaults, and without
// the secrets of URIs. Shows the first values of a long list, and "...".
std::string ReaderCall(const Node& node);

}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
//
// RemoteSource: sources of readers whose files RemoteStorage's server has.
#pragma once

#include <memory>
#include <utility>

#include "core/status.h"
#include "tests/worker/source/storage/remote/fixture.h"
#include "worker/source/source.h"

namespace leat::worker {

class RemoteSource : public RemoteStorage {
 protected:
  // Returns null, and fails the test, where the reader has no source.
  std::unique_ptr<Source> Open(const Node& reader) {
    limits_.storage = storage_.get();
    const auto index = BuildIndex(reader, limits_);
    EXPECT_TRUE(index.ok()) << index.status();
    if (!index.ok()) return nullptr;
    auto source = OpenSource(reader, index->blob, limits_);
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? *std::move(source) : nullptr;
  }

  SourceLimits limits_;
};

}  // namespace leat::worker

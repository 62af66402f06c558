// SPDX-License-Identifier: Apache-2.0
//
// RangeTask: one range of one version of an object.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/source/storage/base/identity.h"
#include "worker/source/storage/base/storage_file.h"
#include "worker/source/storage/remote/calls.h"
#include "worker/source/storage/remote/target.h"

namespace leat::worker {

class Remote;

// Parses "bytes 0-9/100", "bytes */100", "bytes 0-9/*"; nullopt: missing.
struct ContentRange {
  std::optional<uint64_t> first;
  std::optional<uint64_t> total;

  static ContentRange Parse(std::string_view text);
};

// A try that breaks off is continued where it ended: the received bytes are of
// the pinned version, since its headers said so.
class RangeTask : public HttpTask {
 public:
  // Fills `wanted`, which are in order of their offsets and lie in [offset,
  // offset + size). One of exactly that size is filled in place; others get a
  // buffer, made when the task begins. Everything referred to must outlive the
  // task.
  RangeTask(const Remote& remote, const Target& target,
            const Identity& identity, uint64_t offset, uint64_t size,
            std::span<const ReadRange> wanted);
  // Does the same for one range.
  RangeTask(const Remote& remote, const Target& target,
            const Identity& identity, ReadRange wanted);

  std::string Describe() const override;
  HttpRequest Next(std::span<std::byte> other) override;
  size_t hedge_bytes() const override { return into_.size() - done_; }
  Verdict Take(const HttpResponse& response,
               std::span<const std::byte> other) override;
  bool Refresh() override;

 private:
  // Checks that the headers are those of the pinned version and of the range
  // from `first` on.
  Verdict CheckHeaders(const HttpResponse& response, uint64_t first) const;
  void Scatter();

  const Remote& remote_;
  const Target& target_;
  const Identity& identity_;
  const uint64_t offset_;
  const uint64_t size_;
  const std::span<const ReadRange> wanted_;  // empty: into_ is the caller's
  std::vector<std::byte> buffer_;
  std::span<std::byte> into_;
  uint64_t done_ = 0;        // bytes of into_
  uint64_t other_from_ = 0;  // done_ when the second request began
};

}  // namespace leat::worker

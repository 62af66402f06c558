// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/later_seek_file.h"

#include <utility>

#include "absl/status/statusor.h"
#include "core/log.h"
#include "core/status.h"

namespace leat::worker {

void LaterSeekFile::Look() const {
  if (looked_.load(std::memory_order_relaxed) || looked_.exchange(true)) return;
  const std::string path =
      SeekFilePath(options_.folder, options_.fingerprint, options_.allowed);
  if (path.empty()) return;
  absl::StatusOr<std::shared_ptr<const SeekFile>> file =
      SeekFile::Open(path, options_.fingerprint, *options_.codec,
                     options_.allowed, options_.budget);
  if (!file.ok()) {
    if (!absl::IsNotFound(file.status()))
      LOG_WARN("seek_index.refused job={} error=\"{}\"", options_.job,
               Message(file.status()));
    return;
  }
  LOG_INFO("seek_index.opened job={} path=\"{}\" records={}", options_.job,
           path, (*file)->records());
  file_ = *std::move(file);
  found_.store(file_.get(), std::memory_order_release);
}

}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
//
// CoordinatorClient: the worker's unary and upload calls to the coordinator.
// They block, each within `call_timeout` (for a whole index: `index_timeout`).
//
// The certificate and the token that it presents can be replaced: calls that
// begin later use a new connection. Existing calls and streams keep theirs.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/mutex.h"
#include "leat/v1/coordinator.grpc.pb.h"
#include "rpc/call/auth.h"
#include "rpc/call/call_set.h"
#include "worker/job/job_table.h"
#include "worker/source/arranged/listing_trail.h"
#include "worker/source/dataset_look.h"
#include "worker/source/source.h"

namespace leat::worker {

struct CoordinatorClientOptions {
  std::string address;
  Duration call_timeout = std::chrono::seconds(10);
  Duration index_timeout = std::chrono::seconds(120);
  Duration block_timeout = std::chrono::seconds(30);
  // This worker's decoders: it serves no job that began with others.
  std::vector<v1::Decoders> decoders;
};

// The parts of a listing apart from the index itself. Blocks have been
// uploaded.
struct ListedIndex {
  std::vector<IndexBlock> blocks;    // that the index consists of
  std::optional<IndexBlock> look;    // the listing's DatasetLook
  std::vector<std::string> changes;  // since the previous listing, for people
};

class CoordinatorClient final : public JobFetcher {
 public:
  CoordinatorClient(CoordinatorClientOptions options, rpc::Security security);
  ~CoordinatorClient() override;

  // Also kUnavailable, with fault kWorker: its decoders differ from the job's.
  absl::StatusOr<JobInfo> FetchJob(const std::string& plan_hash) override;
  std::vector<absl::StatusOr<FetchedBlocks>> FetchBlocks(
      std::span<const DatasetInfo* const> datasets) override;
  absl::StatusOr<std::string> FetchBlock(const IndexBlock& block,
                                         const std::string& unusable,
                                         MonotonicTime deadline) override;
  // Uploads a block of a listing, unless the coordinator has it.
  absl::Status PutBlock(const v1::IndexDataset& directive,
                        const IndexBlock& block, std::string_view bytes);
  // Answers a directive with the index, or the reason why there is none.
  absl::Status UploadIndex(const v1::IndexDataset& directive,
                           const absl::StatusOr<BuiltIndex>& index,
                           const ListedIndex& listed);
  // Answers a directive with the result of a look. An error: it found nothing
  // out. `lists`: the dataset is being listed now, and UploadIndex will follow.
  absl::Status SendLooked(const v1::IndexDataset& directive,
                          const absl::StatusOr<Looked>& looked, uint64_t total,
                          bool lists);

  // Says how far the listing is. A part of its trail has been uploaded.
  absl::Status SendProgress(const v1::IndexDataset& directive,
                            const ListingProgress& progress,
                            const std::optional<IndexBlock>& trail,
                            uint32_t part);

  // Ends calls in progress, and all later ones, with kCancelled.
  void Shutdown();

  // Applies to calls that begin from now on. REQUIRES: `security` was checked.
  void ReplaceSecurity(rpc::Security security);

  // A connection to the coordinator. Shared by the calls that still use it.
  struct Connection {
    explicit Connection(const std::string& address, rpc::Security its_security);
    const rpc::Security security;
    const std::unique_ptr<v1::CoordinatorService::Stub> stub;
  };
  std::shared_ptr<Connection> connection() const;
  const std::string& address() const { return options_.address; }

 private:
  class Call;
  static void FillHeader(const v1::IndexDataset& directive,
                         const BuiltIndex& index, const ListedIndex& listed,
                         v1::IndexHeader* header);
  absl::Status Upload(const v1::UploadIndexRequest& request, Duration timeout);
  absl::Status SendBlock(const v1::IndexDataset& directive,
                         const IndexBlock& block, std::string_view bytes);

  const CoordinatorClientOptions options_;
  mutable Mutex mu_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mu_);
  rpc::CallSet calls_;
};

}  // namespace leat::worker

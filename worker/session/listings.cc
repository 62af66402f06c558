// SPDX-License-Identifier: Apache-2.0
#include "worker/session/listings.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"
#include "rpc/wire/block_messages.h"
#include "rpc/wire/messages.h"
#include "worker/image/operators/image_size.h"
#include "worker/job/index_opener.h"
#include "worker/job/long_lists.h"
#include "worker/session/coordinator_client.h"
#include "worker/session/directive_queue.h"
#include "worker/session/listings_under_way.h"
#include "worker/source/arranged/arrange.h"
#include "worker/source/look_recorder.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

constexpr uint64_t kWalkedIndexBytes = 64 << 20;

}  // namespace

struct Listings::State {
  class BlockSender;
  class TrailSender;

  State(ListingOptions o, CoordinatorClient* c)
      : options(std::move(o)),
        client(c),
        looks(options.max_directives),
        listings(options.max_directives) {
    options.source_limits.cancelled = &cancelled;
  }

  absl::Status Retry(std::string_view event, const v1::IndexDataset& directive,
                     const std::function<absl::Status()>& call);
  bool Pause(Duration duration);
  void LogDropped(const WantedListing& wanted) const;
  absl::StatusOr<Looked> Look(const v1::IndexDataset& directive,
                              uint64_t* total);
  void LookOrList(WantedListing wanted);
  absl::StatusOr<BuiltIndex> Build(const v1::IndexDataset& directive,
                                   LookRecorder* recorder, BlockSender* sender);
  absl::StatusOr<BuiltIndex> Arranged(const v1::IndexDataset& directive,
                                      const Node& reader,
                                      const SourceLimits& limits,
                                      BlockSender* sender);
  absl::StatusOr<std::optional<IndexBlock>> PutLook(
      const v1::IndexDataset& directive, LookRecorder* recorder);
  void List(const WantedListing& wanted);
  // A thread's loop: calls `work` with the queue's directives, until Stop.
  void Run(DirectiveQueue* queue,
           const std::function<void(WantedListing)>& work);

  ListingOptions options;
  CoordinatorClient* const client;
  DirectiveQueue looks, listings;

  std::atomic<bool> cancelled{false};
  Mutex mu;
  CondVar stop_changed;
  ListingsUnderWay under_way;

  std::vector<std::thread> threads;
};

void Listings::State::LogDropped(const WantedListing& wanted) const {
  if (!cancelled)
    LOG_WARN("session.directive_dropped dataset={}",
             wanted.directive.dataset_id());
}

// Returns false if it is stopping.
bool Listings::State::Pause(Duration duration) {
  const MonotonicTime until = Clock::Real().Now() + duration;
  MutexLock lock(&mu);
  while (!cancelled && stop_changed.WaitUntil(&mu, until)) {
  }
  return !cancelled;
}

// Tries again while the coordinator is out of reach, for `upload_patience`.
absl::Status Listings::State::Retry(std::string_view event,
                                    const v1::IndexDataset& directive,
                                    const std::function<absl::Status()>& call) {
  std::minstd_rand random{std::random_device{}()};
  std::uniform_real_distribution<> jitter(0.5, 1.0);
  const MonotonicTime deadline = Clock::Real().Now() + options.upload_patience;
  Duration backoff = options.first_backoff;
  for (int attempt = 1;; ++attempt) {
    absl::Status status = call();
    if (status.ok()) return status;
    LOG_WARN("{} dataset={} attempt={} error=\"{}\"", event,
             directive.dataset_id(), attempt, Message(status));
    const bool again =
        absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
    if (!again || Clock::Real().Now() + backoff >= deadline) return status;
    if (!Pause(std::chrono::duration_cast<Duration>(backoff * jitter(random))))
      return Cancelled("the worker stops");
    backoff = std::min(backoff * 2, options.max_backoff);
  }
}

// Sends an index to the coordinator as it is made, holding one block at a time.
// While the coordinator is out of reach the listing waits for it.
class Listings::State::BlockSender final : public IndexSink {
 public:
  BlockSender(State* state, const v1::IndexDataset* directive)
      : state_(state), directive_(directive) {}

  absl::Status Add(std::string bytes, uint64_t samples) override {
    const IndexBlock block{
        .sha256 = HashOf(bytes), .bytes = bytes.size(), .samples = samples};
    if (blocks_.size() >= kMaxIndexBlocks)
      return ResourceExhausted("an index of more than {} blocks: the limit",
                               kMaxIndexBlocks);
    blocks_.push_back(block);
    RETURN_IF_ERROR(state_->Retry("index.block_not_sent", *directive_, [&] {
      return state_->client->PutBlock(*directive_, block, bytes);
    }));
    samples_ += samples;
    return absl::OkStatus();
  }
  std::vector<IndexBlock> Take() { return std::move(blocks_); }
  const std::atomic<uint64_t>& samples() const { return samples_; }  // sent

 private:
  State* const state_;
  const v1::IndexDataset* const directive_;
  std::vector<IndexBlock> blocks_;
  std::atomic<uint64_t> samples_{0};
};

// Keeps a listing's trail at the coordinator, as blocks of no index.
class Listings::State::TrailSender final : public TrailKeeper {
 public:
  TrailSender(State* state, const v1::IndexDataset* directive)
      : state_(state), directive_(directive) {}

  absl::StatusOr<std::optional<std::string>> Fetch(size_t part) override {
    if (part >= static_cast<size_t>(directive_->trail_size()))
      return std::nullopt;
    ASSIGN_OR_RETURN(const IndexBlock block,
                     rpc::FromProto(directive_->trail(static_cast<int>(part))));
    absl::StatusOr<std::string> bytes = state_->client->FetchBlock(
        block, {}, Clock::Real().Now() + state_->options.upload_patience);
    if (bytes.ok() && HashOf(*bytes) == block.sha256) return *std::move(bytes);
    LOG_WARN("arrangement.trail_lost dataset={} part={} error=\"{}\"",
             directive_->dataset_id(), part, Message(bytes.status()));
    return std::nullopt;
  }
  absl::Status Keep(size_t part, std::string bytes,
                    const ListingProgress& progress) override {
    std::optional<IndexBlock> block;
    if (!bytes.empty()) {
      block = {.sha256 = HashOf(bytes), .bytes = bytes.size(), .samples = 0};
      RETURN_IF_ERROR(state_->Retry("index.trail_not_sent", *directive_, [&] {
        return state_->client->PutBlock(*directive_, *block, bytes);
      }));
    }
    return state_->Retry("index.progress_not_sent", *directive_, [&] {
      return state_->client->SendProgress(*directive_, progress, block,
                                          static_cast<uint32_t>(part));
    });
  }

 private:
  State* const state_;
  const v1::IndexDataset* const directive_;
};

absl::StatusOr<Looked> Listings::State::Look(const v1::IndexDataset& directive,
                                             uint64_t* total) {
  const StageScope listing(Stage::kList);
  ASSIGN_OR_RETURN(const IndexBlock block, rpc::FromProto(directive.look()));
  ASSIGN_OR_RETURN(
      const std::string bytes,
      client->FetchBlock(block, {},
                         Clock::Real().Now() + options.upload_patience));
  if (HashOf(bytes) != block.sha256)
    return DataLoss("block {} arrived damaged", ToHex(block.sha256));
  ASSIGN_OR_RETURN(const DatasetLook look, DatasetLook::Parse(bytes));
  *total = std::max<uint64_t>(look.total, look.entries.size());
  return LookAgain(look, StorageOf(options.source_limits), options.look);
}

void Listings::State::LookOrList(WantedListing wanted) {
  const v1::IndexDataset& directive = wanted.directive;
  const MonotonicTime start = Clock::Real().Now();
  uint64_t total = 0;
  const absl::StatusOr<Looked> looked = Look(directive, &total);
  if (cancelled) return;
  LOG_INFO(
      "index.looked dataset={} entries={} of={} changes={} ms={} error=\"{}\"",
      directive.dataset_id(), looked.ok() ? looked->entries : 0, total,
      looked.ok() ? looked->changes.size() : 0,
      (Clock::Real().Now() - start).count() / 1'000'000,
      Message(looked.status()));
  const bool same = looked.ok() && looked->changes.empty() && !looked->unsure;
  const bool lists = !directive.look_only() && !same;
  const absl::Status sent = Retry("index.not_uploaded", directive, [&] {
    return client->SendLooked(directive, looked, total, lists);
  });
  if (!lists || !sent.ok()) return;  // or another worker lists it by now
  if (looked.ok()) wanted.changes = looked->changes;
  if (!listings.Add(std::move(wanted))) LogDropped(wanted);
}

// An index that the coordinator would refuse is an error here: uploading it
// would only take time.
absl::StatusOr<BuiltIndex> Listings::State::Build(
    const v1::IndexDataset& directive, LookRecorder* recorder,
    BlockSender* sender) {
  const StageScope listing(Stage::kList);
  ASSIGN_OR_RETURN(Node reader, rpc::FromProto(directive.reader()));
  // An index is opened by a reader whose lists are digests.
  if (!directive.has_base())
    RETURN_IF_ERROR(FetchLongLists(
        client, options.upload_patience,
        [this](Duration duration) { return Pause(duration); }, &reader));
  SourceLimits limits = options.source_limits;
  const auto watched = StorageOf(limits).Watched(recorder);
  limits.storage = watched.get();
  if (directive.index_block_bytes() == 0)
    return InvalidArgument(
        "dataset {}: index_block_bytes 0: want the size of a block",
        directive.dataset_id());
  limits.max_blocks_bytes = directive.max_index_bytes();
  limits.block_bytes =
      std::min(directive.index_block_bytes(), kMaxIndexBlockBytes);
  return directive.has_base() ? Arranged(directive, reader, limits, sender)
                              : BuildIndexInto(reader, limits, sender);
}

// Storage below the base is not watched: a look at the base is one at all that
// is read there. `limits`: those of the listing, whose storage is watched.
absl::StatusOr<BuiltIndex> Listings::State::Arranged(
    const v1::IndexDataset& directive, const Node& reader,
    const SourceLimits& limits, BlockSender* sender) {
  ASSIGN_OR_RETURN(Arrangement arrangement,
                   rpc::ArrangementFrom(directive.arrangement()));
  if (directive.has_packing()) {
    ASSIGN_OR_RETURN(arrangement.pack, rpc::FromProto(directive.packing()));
  }
  ASSIGN_OR_RETURN(const DatasetInfo base, rpc::FromProto(directive.base()));
  // Blocks are walked from the first to the last.
  const auto cache = std::make_shared<IndexCache>(
      IndexCacheOptions{.max_bytes = kWalkedIndexBytes,
                        .wait = options.upload_patience},
      client);
  const IndexOpener opener(
      {.fetcher = client, .cache = cache, .limits = options.source_limits},
      [this](Duration duration) { return Pause(duration); });
  ASSIGN_OR_RETURN(const std::shared_ptr<const Source> source,
                   opener.Open(base, reader));
  SourceLimits own = limits;
  own.blocks = sender;
  TrailSender trail(this, &directive);
  return Arrange(arrangement,
                 {.base = base,
                  .reader = reader,
                  .source = *source,
                  .image_size = &SizeOfImage,
                  .keeper = &trail},
                 own);
}

// Returns nullopt if there is nothing to look at.
absl::StatusOr<std::optional<IndexBlock>> Listings::State::PutLook(
    const v1::IndexDataset& directive, LookRecorder* recorder) {
  const DatasetLook look = recorder->Take();
  if (look.entries.empty()) return std::nullopt;
  const std::string bytes = look.Serialize();
  const IndexBlock block{
      .sha256 = HashOf(bytes), .bytes = bytes.size(), .samples = 0};
  RETURN_IF_ERROR(Retry("index.look_not_sent", directive, [&] {
    return client->PutBlock(directive, block, bytes);
  }));
  return block;
}

void Listings::State::List(const WantedListing& wanted) {
  const v1::IndexDataset& directive = wanted.directive;
  const MonotonicTime start = Clock::Real().Now();
  LookRecorder recorder(&StorageOf(options.source_limits), &Clock::Real());
  BlockSender sender(this, &directive);
  absl::StatusOr<BuiltIndex> index = [&] {
    const auto mine = under_way.Begin(
        directive, {.files = &recorder.files(), .samples = &sender.samples()});
    return Build(directive, &recorder, &sender);
  }();
  ListedIndex listed;
  if (index.ok()) {
    if (auto look = PutLook(directive, &recorder); look.ok())
      listed.look = *look;
    else
      index = look.status();
  }
  if (cancelled) return;  // cut short: no result about the dataset
  listed.blocks = sender.Take();
  listed.changes = wanted.changes;
  LOG_INFO("index.built dataset={} samples={} blocks={} ms={} error=\"{}\"",
           directive.dataset_id(), index.ok() ? index->shards.num_samples() : 0,
           listed.blocks.size(),
           (Clock::Real().Now() - start).count() / 1'000'000,
           Message(index.status()));
  Retry("index.not_uploaded", directive, [&] {
    return client->UploadIndex(directive, index, listed);
  }).IgnoreError();
}

void Listings::State::Run(DirectiveQueue* queue,
                          const std::function<void(WantedListing)>& work) {
  std::optional<StageThread> enrolled;
  if (options.stages != nullptr) enrolled.emplace(options.stages);
  while (std::optional<WantedListing> wanted = queue->Pop()) {
    const std::string dataset_id = wanted->directive.dataset_id();
    work(*std::move(wanted));
    queue->Done(dataset_id);
  }
}

Listings::Listings(ListingOptions options, CoordinatorClient* client)
    : state_(std::make_unique<State>(std::move(options), client)) {
  State* const state = state_.get();
  const auto start = [&](const char* name, std::function<void()> body) {
    if (started_.ok())
      started_ =
          StartThread(name, std::move(body), &state->threads.emplace_back());
  };
  for (int i = 0; i < std::max(state->options.threads, 1); ++i) {
    start("look-again", [state] {
      state->Run(&state->looks, [state](WantedListing wanted) {
        state->LookOrList(std::move(wanted));
      });
    });
    start("index", [state] {
      state->Run(&state->listings,
                 [state](const WantedListing& wanted) { state->List(wanted); });
    });
  }
}

Listings::~Listings() {
  Stop();
  for (std::thread& thread : state_->threads)
    if (thread.joinable()) thread.join();
}

void Listings::Add(v1::IndexDataset directive) {
  DirectiveQueue& queue =
      directive.has_look() ? state_->looks : state_->listings;
  WantedListing wanted = {.directive = std::move(directive)};
  if (!queue.AddNewer(std::move(wanted))) state_->LogDropped(wanted);
}

void Listings::AddUnderWay(v1::Heartbeat* heartbeat) const {
  state_->under_way.AddTo(heartbeat);
}

void Listings::Stop() {
  {
    MutexLock lock(&state_->mu);
    state_->cancelled = true;
    state_->stop_changed.NotifyAll();
  }
  state_->looks.Close();
  state_->listings.Close();
}

}  // namespace leat::worker

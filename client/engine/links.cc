// SPDX-License-Identifier: Apache-2.0
//
// The streams: sending and receiving. The memory sockets are in
// client/engine/links_sharing.cc.
#include "client/engine/links.h"

#include <optional>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "rpc/access/worker_key.h"

namespace leat::client {
namespace {

// Streams end within microseconds of Cancel; this only bounds a broken one.
constexpr Duration kStopTimeout = std::chrono::seconds(5);

MonotonicTime LinkNow() { return Clock::Real().Now(); }

void AddTo(v1::RequestRows* request, const Supplied::Fields& fields) {
  v1::SuppliedSample* sample = request->add_supplied();
  for (const SampleField& field : fields) {
    v1::SuppliedField* to = sample->add_fields();
    to->set_data(field.bytes);
    to->mutable_shape()->Add(field.shape.begin(), field.shape.end());
  }
}

v1::RowsRequest RequestFor(const StreamMessage& action) {
  v1::RowsRequest message;
  if (action.rows.empty()) {
    message.mutable_cancel()->set_request_id(action.request_id);
    return message;
  }
  v1::RequestRows* request = message.mutable_request();
  request->set_request_id(action.request_id);
  request->set_epoch(action.epoch);
  request->set_step(action.step);
  request->mutable_rows()->Add(action.rows.begin(), action.rows.end());
  request->mutable_samples()->Add(action.samples.begin(), action.samples.end());
  request->mutable_absent()->Add(action.absent.begin(), action.absent.end());
  request->set_memory_id(action.memory_id);
  request->mutable_slots()->Add(action.slots.begin(), action.slots.end());
  if (action.supplied)
    for (const uint64_t sample : action.samples)
      AddTo(request, action.supplied->Of(sample));
  return message;
}

}  // namespace

// Handler of one stream's link: copies received rows into the steps' buffers,
// once the peer has proved to be the worker.
class Links::Handler : public LinkHandler {
 public:
  Handler(std::shared_ptr<Links> links, std::shared_ptr<WorkerStream> stream,
          AssignmentTable::Worker worker, v1::OpenRows open)
      : links_(std::move(links)),
        state_(links_->state_),
        stream_(std::move(stream)),
        worker_(std::move(worker)),
        open_(std::move(open)),
        proven_(worker_.public_key.empty()) {}

  absl::Status OnRows(const rpc::RowsFrame& frame) override {
    if (!proven_) RETURN_IF_ERROR(TakeProof(frame.header));
    if (frame.header.has_opened()) return OnOpened(frame.header.opened());
    Deliveries::Arrival arrival;
    {
      MutexLock lock(&state_.mu);
      if (state_.cancelled) return Cancelled("the iterator has ended");
      absl::StatusOr<Deliveries::Arrival> begun =
          state_.fetcher.deliveries().Begin(*stream_, frame.header,
                                            frame.data_bytes, LinkNow());
      state_.Settle();
      if (!begun.ok())
        return Annotate(begun.status(), "the worker broke the protocol");
      arrival = *std::move(begun);
    }
    if (arrival.frame) arrival.move = Scatter(frame, *arrival.frame);
    if (arrival.move) state_.Move(*arrival.move);
    return absl::OkStatus();
  }

  void OnClosed(const absl::Status& status) override {
    Links& links = *links_;
    // Memory that the worker may still write to is released when the socket
    // ends.
    if (!links.EndStream(*stream_, status)) links.sharer_.Close(stream_);
    stream_.reset();
    links.Detach(std::move(links_));
  }

 private:
  // Copies the frame's rows into place. Returns those that have to be moved.
  std::optional<MovePiece> Scatter(const rpc::RowsFrame& frame,
                                   const FramePiece& piece) {
    const FrameGroup& group = *piece.group;
    const MonotonicTime begin = LinkNow();
    frame.ForEach([&](size_t offset, std::span<const std::byte> bytes) {
      group.step->Scatter(*group.memory, group.indices, group.mine,
                          piece.offset + offset, bytes);
    });
    const MonotonicTime end = LinkNow();
    TraceReceive(*group.step, group.request_id, group.indices.size(), begin,
                 end);
    MutexLock lock(&state_.mu);
    state_.receiving += end - begin;
    std::optional<MovePiece> move =
        state_.fetcher.deliveries().End(*stream_, piece, LinkNow());
    state_.Settle();
    return move;
  }

  // Checks a signature, so it runs without the lock.
  absl::Status TakeProof(const v1::RowsResponse& first) {
    const absl::Status proof =
        first.has_opened()
            ? rpc::CheckProof(worker_.public_key, open_, first.opened().proof())
            : Unauthenticated("it sends rows before a proof");
    proven_ = proof.ok();
    if (proven_) return absl::OkStatus();
    {
      MutexLock lock(&state_.mu);
      stream_->unproven = true;
    }
    return Unavailable(
        "what answers at {} is not worker {} as the coordinator knows it: {}; "
        "nothing of it is used",
        worker_.address, worker_.name, Message(proof));
  }

  absl::Status OnOpened(const v1::Opened& opened) {
    absl::StatusOr<bool> share = false;
    {
      MutexLock lock(&state_.mu);
      if (state_.cancelled) return Cancelled("the iterator has ended");
      share = state_.fetcher.leases().Opened(*stream_, opened, LinkNow());
      state_.Settle();
    }
    if (!share.ok())
      return Annotate(share.status(), "the worker broke the protocol");
    if (!*share) return absl::OkStatus();
    const absl::Status opening = links_->sharer_.Open(
        stream_, opened.memory_address(), opened.memory_secret());
    if (!opening.ok()) {  // the rows come as bytes
      links_->OnSharingFailed(*stream_, opening);
      links_->OnSharingClosed(*stream_);
    }
    return absl::OkStatus();
  }

  std::shared_ptr<Links> links_;
  EngineState& state_;  // lives as long as *links_
  std::shared_ptr<WorkerStream> stream_;
  const AssignmentTable::Worker worker_;
  const v1::OpenRows open_;
  bool proven_;
};

Links::Links(std::shared_ptr<EngineState> state)
    : shared_(std::move(state)),
      state_(*shared_),
      sharer_(state_.options.share, state_.options.layout, SharerEvents()) {}

bool Links::EndStream(WorkerStream& stream, const absl::Status& status) {
  std::shared_ptr<Link> link;  // dropped without the lock
  std::string worker;
  bool has_leases = false, unproven = false;
  {
    MutexLock lock(&state_.mu);
    if (!state_.cancelled)
      worker = state_.fetcher.table().WorkerOf(stream).name;
    state_.fetcher.Closed(stream, status, LinkNow());
    link = std::move(stream.link);
    state_.Settle();
    has_leases = Leases::HasLeases(stream);
    unproven = stream.unproven;
  }
  if (!worker.empty() && unproven)
    LOG_WARN(
        "link.unproven worker={} reason=\"{}\" note=\"see what listens there; "
        "a "
        "worker that was started again is asked once the coordinator has told "
        "of it\"",
        worker, Message(status));
  else if (!worker.empty() && absl::IsDataLoss(status))
    LOG_WARN("link.damaged worker={} reason=\"{}\"", worker, Message(status));
  else if (!worker.empty())
    LOG_DEBUG("link.closed worker={} reason=\"{}\"", worker, Message(status));
  return has_leases;
}

void Links::Detach(std::shared_ptr<Links> self) {
  MutexLock lock(&state_.mu);
  if (!stopped_) self_ = std::move(self);
  --open_links_;
  closed_.NotifyAll();
}

void Links::Send(const std::vector<StreamMessage>& messages) {
  for (const StreamMessage& action : messages) {
    const std::shared_ptr<Link> link = LinkOf(action.stream);
    // No link: the stream has ended, and its rows are pending again. No
    // request: it only had to be opened.
    if (!link || action.request_id == 0) continue;
    const v1::RowsRequest request = RequestFor(action);
    if (link->Send(request).ok()) continue;
    {
      MutexLock lock(&state_.mu);
      state_.fetcher.Break(*action.stream);
    }
    link->Cancel();
  }
}

v1::OpenRows Links::OpenFor(const AssignmentTable::Worker& worker) const {
  const EngineOptions& options = state_.options;
  v1::OpenRows open;
  open.set_plan_hash(options.open.plan_hash());
  open.set_consumer(options.open.consumer());
  open.set_epilogue(static_cast<v1::Epilogue>(options.epilogue));
  open.set_end_epoch(options.end_epoch);
  open.set_rows(static_cast<uint32_t>(options.map->rows().size()));
  // Without a nonce there is no proof, and no rows are accepted.
  if (!worker.public_key.empty()) open.set_nonce(rpc::MakeNonce().value_or(""));
  return open;
}

// Returns the stream's link, opened if it has none. nullptr: the stream has
// ended.
std::shared_ptr<Link> Links::LinkOf(
    const std::shared_ptr<WorkerStream>& stream) {
  AssignmentTable::Worker worker;
  {
    MutexLock lock(&state_.mu);
    if (state_.cancelled || stream->closed || stream->broken) return nullptr;
    if (stream->link) return stream->link;
    worker = state_.fetcher.table().WorkerOf(*stream);
    ++open_links_;
  }
  v1::RowsRequest request;
  v1::OpenRows& open = *request.mutable_open();
  open = OpenFor(worker);
  std::shared_ptr<Link> link = state_.options.links(
      worker.address,
      std::make_shared<Handler>(shared_from_this(), stream, worker, open));
  const bool sent = link->Send(request).ok();
  {
    MutexLock lock(&state_.mu);
    if (stream->closed) return nullptr;
    stream->link = link;
    if (!sent) state_.fetcher.Break(*stream);
  }
  if (sent) return link;
  link->Cancel();
  return nullptr;
}

void Links::EndIdle(const std::vector<std::shared_ptr<WorkerStream>>& streams) {
  for (const std::shared_ptr<WorkerStream>& stream : streams) {
    std::shared_ptr<Link> link;
    {
      MutexLock lock(&state_.mu);
      link = stream->link;
    }
    if (link) link->Cancel();
  }
}

void Links::Cancel() {
  std::vector<std::shared_ptr<Link>> links;
  {
    MutexLock lock(&state_.mu);
    for (const WorkerEndpoint& endpoint : state_.fetcher.table().endpoints())
      if (endpoint.stream && endpoint.stream->link)
        links.push_back(endpoint.stream->link);
  }
  for (const std::shared_ptr<Link>& link : links) link->Cancel();
}

void Links::Stop() {
  const MonotonicTime deadline = LinkNow() + kStopTimeout;
  std::shared_ptr<Links> self;  // the caller has another reference
  MutexLock lock(&state_.mu);
  while (open_links_ > 0 && closed_.WaitUntil(&state_.mu, deadline)) {
  }
  stopped_ = true;
  self = std::move(self_);
}

}  // namespace leat::client

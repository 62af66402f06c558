// SPDX-License-Identifier: Apache-2.0
//
// An Engine's links to workers: what is sent, and what comes.
#include <string>
#include <utility>

#include "client/engine/engine.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/access/worker_key.h"

namespace leat::client {
namespace {

MonotonicTime LinkNow() { return Clock::Real().Now(); }

void AddTo(v1::AskRows* ask, const Brought::Fields& fields) {
  v1::BroughtSample* sample = ask->add_brought();
  for (const SampleField& field : fields) {
    v1::BroughtField* to = sample->add_fields();
    to->set_data(field.bytes);
    to->mutable_shape()->Add(field.shape.begin(), field.shape.end());
  }
}

v1::RowsRequest RequestFor(const LaneMessage& action) {
  v1::RowsRequest request;
  if (action.rows.empty()) {
    request.mutable_cancel()->set_ask_id(action.ask_id);
    return request;
  }
  v1::AskRows* ask = request.mutable_ask();
  ask->set_ask_id(action.ask_id);
  ask->set_epoch(action.epoch);
  ask->set_step(action.step);
  ask->mutable_rows()->Add(action.rows.begin(), action.rows.end());
  ask->mutable_samples()->Add(action.samples.begin(), action.samples.end());
  ask->mutable_absent()->Add(action.absent.begin(), action.absent.end());
  ask->set_memory_id(action.memory_id);
  ask->mutable_places()->Add(action.places.begin(), action.places.end());
  if (action.brought)
    for (const uint64_t sample : action.samples)
      AddTo(ask, action.brought->Of(sample));
  return request;
}

void TraceReceive(const Step& step, uint64_t ask_id, size_t rows,
                  MonotonicTime begin, MonotonicTime end) {
  const TracedStep& trace = *step.trace;
  trace.Record({.of = nullptr,
                .kind = SpanKind::kReceive,
                .thread = ThreadNumber(),
                .parent = trace.AskId(ask_id),
                .begin_ns = trace.Unix(begin),
                .end_ns = trace.Unix(end),
                .rows = rows});
}

}  // namespace

// One lane's link: copies what comes into the steps' buffers, once who sends it
// has proved to be the worker.
class Engine::Handler : public LinkHandler {
 public:
  Handler(std::shared_ptr<Engine> engine, std::shared_ptr<Lane> lane,
          AssignmentTable::Worker worker, v1::OpenRows open)
      : engine_(std::move(engine)),
        lane_(std::move(lane)),
        worker_(std::move(worker)),
        open_(std::move(open)),
        proven_(worker_.public_key.empty()) {}

  absl::Status OnRows(const rpc::RowsFrame& frame) override {
    if (!proven_) RETURN_IF_ERROR(TakeProof(frame.header));
    if (frame.header.has_opened()) return OnOpened(frame.header.opened());
    Deliveries::Arrival arrival;
    {
      MutexLock lock(&engine_->mu_);
      if (engine_->cancelled_) return Cancelled("the iterator has ended");
      absl::StatusOr<Deliveries::Arrival> begun =
          engine_->fetcher_.deliveries().Begin(*lane_, frame.header,
                                               frame.data_bytes, LinkNow());
      engine_->Settle();
      if (!begun.ok())
        return Annotate(begun.status(), "the worker broke the protocol");
      arrival = *std::move(begun);
    }
    if (arrival.frame) arrival.move = Scatter(frame, *arrival.frame);
    if (arrival.move) engine_->Move(*arrival.move);
    return absl::OkStatus();
  }

  void OnClosed(const absl::Status& status) override {
    Engine& engine = *engine_;
    // Memory that the worker may still write to comes back with the socket's
    // end.
    if (!engine.EndLane(*lane_, status)) engine.lender_->Close(lane_);
    lane_.reset();
    engine.Detach(std::move(engine_));
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
    if (group.step->trace)
      TraceReceive(*group.step, group.ask_id, group.indices.size(), begin, end);
    MutexLock lock(&engine_->mu_);
    engine_->receiving_ += end - begin;
    std::optional<MovePiece> move =
        engine_->fetcher_.deliveries().End(*lane_, piece, LinkNow());
    engine_->Settle();
    return move;
  }

  // Without the lock: it is a signature to compare.
  absl::Status TakeProof(const v1::RowsResponse& first) {
    const absl::Status proof =
        first.has_opened()
            ? rpc::CheckProof(worker_.public_key, open_, first.opened().proof())
            : Unauthenticated("it sends rows before a proof");
    proven_ = proof.ok();
    if (proven_) return absl::OkStatus();
    {
      MutexLock lock(&engine_->mu_);
      lane_->unproven = true;
    }
    return Unavailable(
        "what answers at {} is not worker {} as the coordinator knows it: {}; "
        "nothing of it is used",
        worker_.address, worker_.name, Message(proof));
  }

  absl::Status OnOpened(const v1::Opened& opened) {
    absl::StatusOr<bool> lend = false;
    {
      MutexLock lock(&engine_->mu_);
      if (engine_->cancelled_) return Cancelled("the iterator has ended");
      lend = engine_->fetcher_.leases().Opened(*lane_, opened, LinkNow());
      engine_->Settle();
    }
    if (!lend.ok())
      return Annotate(lend.status(), "the worker broke the protocol");
    if (!*lend) return absl::OkStatus();
    const absl::Status opening = engine_->lender_->Open(
        lane_, opened.lending_address(), opened.lending_secret());
    if (!opening.ok()) {  // the rows come by bytes
      engine_->OnLendingFailed(*lane_, opening);
      engine_->OnLendingClosed(*lane_);
    }
    return absl::OkStatus();
  }

  std::shared_ptr<Engine> engine_;
  std::shared_ptr<Lane> lane_;
  const AssignmentTable::Worker worker_;
  const v1::OpenRows open_;
  bool proven_;
};

void Engine::Move(MovePiece& piece) {
  for (bool moved = false; !moved;) {
    const MonotonicTime begin = LinkNow();
    piece.step->CopyRows(*piece.from, *piece.to, piece.indices, piece.mine);
    const MonotonicTime end = LinkNow();
    if (piece.step->trace && piece.ask_id != 0)
      TraceReceive(*piece.step, piece.ask_id, piece.indices.size(), begin, end);
    MutexLock lock(&mu_);
    receiving_ += end - begin;
    moved = fetcher_.deliveries().FinishMove(piece, LinkNow());
    Settle();
  }
}

bool Engine::EndLane(Lane& lane, const absl::Status& status) {
  std::shared_ptr<Link> link;  // dropped without the lock
  std::string worker;
  bool has_leases = false, unproven = false;
  {
    MutexLock lock(&mu_);
    if (!cancelled_) worker = fetcher_.table().WorkerOf(lane).name;
    fetcher_.Closed(lane, status, LinkNow());
    link = std::move(lane.link);
    Settle();
    has_leases = Leases::HasLeases(lane);
    unproven = lane.unproven;
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

void Engine::Detach(std::shared_ptr<Engine> self) {
  MutexLock lock(&mu_);
  if (!stopped_) self_ = std::move(self);
  --open_links_;
  closed_.NotifyAll();
}

void Engine::Perform(const std::vector<LaneMessage>& messages) {
  for (const LaneMessage& action : messages) {
    const std::shared_ptr<Link> link = LinkOf(action.lane);
    // None: it has ended, its rows are pending again. Or it was to be opened.
    if (!link || action.ask_id == 0) continue;
    const v1::RowsRequest request = RequestFor(action);
    if (link->Send(request).ok()) continue;
    {
      MutexLock lock(&mu_);
      fetcher_.Break(*action.lane);
    }
    link->Cancel();
  }
}

// The lane's link, opened if it has none. nullptr: the lane has ended.
std::shared_ptr<Link> Engine::LinkOf(const std::shared_ptr<Lane>& lane) {
  AssignmentTable::Worker worker;
  {
    MutexLock lock(&mu_);
    if (cancelled_ || lane->closed || lane->broken) return nullptr;
    if (lane->link) return lane->link;
    worker = fetcher_.table().WorkerOf(*lane);
    ++open_links_;
  }
  v1::RowsRequest request;
  v1::OpenRows& open = *request.mutable_open();
  open.set_plan_hash(options_.open.plan_hash());
  open.set_consumer(options_.open.consumer());
  open.set_finish(static_cast<v1::Finish>(options_.finish));
  open.set_end_epoch(options_.end_epoch);
  open.set_rows(static_cast<uint32_t>(options_.map->rows().size()));
  // Without a nonce there is no proof, and nothing is taken.
  if (!worker.public_key.empty()) open.set_nonce(rpc::MakeNonce().value_or(""));
  std::shared_ptr<Link> link = options_.links(
      worker.address,
      std::make_shared<Handler>(shared_from_this(), lane, worker, open));
  const bool sent = link->Send(request).ok();
  {
    MutexLock lock(&mu_);
    if (lane->closed) return nullptr;
    lane->link = link;
    if (!sent) fetcher_.Break(*lane);
  }
  if (sent) return link;
  link->Cancel();
  return nullptr;
}

void Engine::EndIdle(const std::vector<std::shared_ptr<Lane>>& lanes) {
  for (const std::shared_ptr<Lane>& lane : lanes) {
    std::shared_ptr<Link> link;
    {
      MutexLock lock(&mu_);
      link = lane->link;
    }
    if (link) link->Cancel();
  }
}

}  // namespace leat::client

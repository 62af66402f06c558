// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/read_ahead.h"

#include <algorithm>

namespace leat::worker {
namespace {

// A thread takes as many rows as it reads in this time: small records that are
// in memory already are not worth a change of threads each.
constexpr double kReadAtOnceNs = 200e3;
// The moving average covers about this many rows.
constexpr double kMeanOfRows = 32;

uint64_t BytesOf(const RowRecords& records) {
  uint64_t bytes = 0;
  for (const ReadRecord& record : records)
    if (record.stored.ok()) bytes += record.stored->bytes();
  return bytes;
}

}  // namespace

void ReadAhead::Open(Stream* stream, const std::string& name) {
  std::shared_ptr<Job>& job = jobs_[name];
  if (job == nullptr) {
    job = std::make_shared<Job>();
    job->name = name;
  }
  ++job->streams;
  ++streams_;
  stream->job_ = job;
  stream->number_ = next_number_++;
}

void ReadAhead::Close(Stream* stream) {
  Remove(stream);
  --streams_;
  const std::shared_ptr<Job> job = std::move(stream->job_);
  if (--job->streams == 0) jobs_.erase(job->name);
}

void ReadAhead::Put(Stream* stream, const Step& first) {
  const Stream::Place place(stream->rows_ahead_, first, stream->number_);
  if (stream->to_read_ == place) return;
  auto& to_read = stream->job_->to_read;
  if (stream->to_read_) {
    auto node = to_read.extract(*stream->to_read_);
    node.key() = place;
    to_read.insert(std::move(node));
  } else {
    to_read.emplace(place, stream);
  }
  stream->to_read_ = place;
}

void ReadAhead::Remove(Stream* stream) {
  if (!stream->to_read_) return;
  stream->job_->to_read.erase(*stream->to_read_);
  stream->to_read_.reset();
}

double ReadAhead::BytesLeft() const {
  return static_cast<double>(bytes_) - static_cast<double>(bytes_ahead_);
}

bool ReadAhead::HasBytesLeft(const Job& job) const {
  return job.bytes == 0 ||
         static_cast<double>(job.bytes) + job.mean_bytes <= BytesLeft();
}

bool ReadAhead::HasBytesLeft(const Stream& stream) const {
  return HasBytesLeft(*stream.job_);
}

bool ReadAhead::IsShortOfBytes() const {
  return std::any_of(jobs_.begin(), jobs_.end(), [this](const auto& each) {
    return !HasBytesLeft(*each.second);
  });
}

bool ReadAhead::MayRead(const Job& job) const {
  return job.threads < threads_ - threads_reading_ && HasBytesLeft(job);
}

ReadAhead::Stream* ReadAhead::Choose(LookAt look) const {
  using Rank = std::pair<int, Stream::Place>;
  Stream* chosen = nullptr;
  Rank best;
  for (const auto& [name, job] : jobs_) {
    if (!MayRead(*job)) continue;
    for (const auto& [place, stream] : job->to_read) {
      const Rank rank(job->threads, place);
      if (chosen != nullptr && rank >= best) break;
      if (!look(*stream)) continue;
      chosen = stream;
      best = rank;
      break;
    }
  }
  return chosen;
}

ReadAhead::Read ReadAhead::Begin(const std::shared_ptr<GroupReads>& group,
                                 size_t together) {
  Job& job = *group->job_;
  const double room = BytesLeft() - static_cast<double>(job.bytes);
  const double wanted =
      std::max(kReadAtOnceNs / job.mean_ns, static_cast<double>(together));
  const double rows =
      std::clamp(std::min(wanted, room / std::max(job.mean_bytes, 1.0)), 1.0,
                 double{kMaxRowsAtOnce});
  Read read{.group = group, .first = group->begun_};
  read.rows = std::min(group->records_.size() - group->begun_,
                       static_cast<size_t>(rows));
  read.reserved =
      static_cast<uint64_t>(job.mean_bytes * static_cast<double>(read.rows));
  group->begun_ += read.rows;
  group->stream_->rows_ahead_ += read.rows;
  job.bytes += read.reserved;
  bytes_ahead_ += read.reserved;
  ++job.threads;
  ++threads_reading_;
  return read;
}

void ReadAhead::End(const Read& read, std::vector<RowRecords>& records,
                    Duration spent) {
  GroupReads& group = *read.group;
  Job& job = *group.job_;
  uint64_t bytes = 0;
  for (const RowRecords& each : records) bytes += BytesOf(each);
  if (!records.empty()) {
    const auto rows = static_cast<double>(records.size());
    job.mean_bytes +=
        (static_cast<double>(bytes) / rows - job.mean_bytes) / kMeanOfRows;
    job.mean_ns +=
        (static_cast<double>(spent.count()) / rows - job.mean_ns) / kMeanOfRows;
  }
  --job.threads;
  --threads_reading_;
  Release(job, read.reserved);
  if (group.dropped_) return;
  job.bytes += bytes;
  bytes_ahead_ += bytes;
  for (size_t i = 0; i < records.size(); ++i) {
    group.records_[read.first + i] = std::move(records[i]);
    group.ready_.insert(group.ready_.end(), read.first + i);
  }
  group.stream_->rows_ready_ += records.size();
  job.rows_ready += records.size();
}

void ReadAhead::Release(Job& job, uint64_t bytes) {
  job.bytes -= bytes;
  bytes_ahead_ -= bytes;
}

ReadAhead::Taken ReadAhead::Take(GroupReads& group) {
  const size_t row = *group.ready_.begin();
  group.ready_.erase(group.ready_.begin());
  ++group.taken_;
  --group.stream_->rows_ready_;
  --group.job_->rows_ready;
  --group.stream_->rows_ahead_;
  Taken taken{.index = row, .records = std::move(group.records_[row])};
  Release(*group.job_, BytesOf(taken.records));
  return taken;
}

std::vector<RowRecords> ReadAhead::Drop(GroupReads& group) {
  group.dropped_ = true;
  group.stream_->rows_ready_ -= group.ready_.size();
  group.job_->rows_ready -= group.ready_.size();
  group.stream_->rows_ahead_ -= group.begun_ - group.taken_;
  for (const size_t row : group.ready_)
    Release(*group.job_, BytesOf(group.records_[row]));
  group.ready_.clear();
  return std::exchange(group.records_, {});
}

}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/scheduler/thread_waits.h"

#include <algorithm>
#include <utility>

namespace leat::worker {

void ThreadWaits::Note(MonotonicTime now, const Standing& standing,
                       const ReadAhead& read_ahead,
                       std::map<std::string, Job>& jobs) {
  if (now <= at_) return;
  const auto spent =
      static_cast<uint64_t>(Duration(now - std::exchange(at_, now)).count());
  const auto threads = static_cast<size_t>(standing.decode_threads);
  const auto at_work = static_cast<size_t>(std::max<int64_t>(
      0,
      static_cast<int64_t>(standing.tasks_in_work) - standing.tasks_waiting));
  const uint64_t decoders = spent * (threads - std::min(threads, at_work));
  for (auto& [name, job] : jobs) NoteJob(job, spent, standing, read_ahead);
  const int reading = read_ahead.threads_reading();
  const uint64_t readers = spent * static_cast<uint64_t>(std::max(
                                       0, standing.read_threads - reading));
  if (standing.rows_queued == 0) {
    decode_.idle_ns += decoders;
    read_.idle_ns += readers;
    return;
  }
  (reading > 0 ? decode_.input_ns : decode_.output_ns) += decoders;
  // Rows that no reader is given have been read, or lack room.
  (read_ahead.streams() == 0 ? read_.idle_ns : read_.output_ns) += readers;
}

// A record that no thread reads yet counts as waiting for input as long as all
// reading threads are busy with other records.
void ThreadWaits::NoteJob(Job& job, uint64_t spent, const Standing& standing,
                          const ReadAhead& read_ahead) {
  const StreamState& any = *job.streams.begin()->second;
  const ReadAhead::Load load =
      any.ahead ? read_ahead.LoadOf(any) : ReadAhead::Load();
  job.told.fetch_ns += spent * static_cast<uint64_t>(load.threads);
  if (job.rows_queued == 0) return;
  const bool may_begin = any.ahead ? load.rows_ready > 0 : job.eligible;
  const bool reads =
      any.ahead && (load.threads > 0 ||
                    read_ahead.threads_reading() >= standing.read_threads);
  (may_begin ? job.told.thread_ns
   : reads   ? job.told.input_ns
             : job.told.output_ns) += spent;
}

}  // namespace leat::worker

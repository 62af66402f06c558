// SPDX-License-Identifier: Apache-2.0
#include "server/jobs/job_creation.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/counted.h"
#include "core/plan/abilities.h"
#include "core/plan/checked_job.h"
#include "core/redaction.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "server/jobs/dataset_looks.h"
#include "server/membership/ability_gap.h"

namespace leat::server {
namespace {

// A caller that is bounded is a trainer, who may not delete jobs.
JobCreation::Answer Attach(const JobRecord& existing, const PreparedJob& wanted,
                           const JobCreator& by) {
  ASSIGN_OR_RETURN(const PreparedJob job,
                   Complete(wanted, existing.info->datasets));
  const std::string difference = Difference(existing.info->spec, job.spec);
  if (!difference.empty())
    return AlreadyExists(
        "job {} exists with another spec: {}; use another name, {}",
        job.spec.name, difference,
        by.bounded ? "or have it deleted by an operator: a caller of role "
                     "trainer may not replace jobs"
                   : "replace=True, or delete it");
  return CreatedJob{existing.info, /*attached=*/true};
}

// Returns the decoder class of a new job with this spec. Without any worker the
// requested class is accepted, since the workers to come are unknown.
absl::StatusOr<DecoderClass> ResolveClass(const PreparedJob& job,
                                          const Membership& membership) {
  const JobSpec& spec = job.spec;
  const size_t ready = membership.num_ready();
  if (spec.decoder_class == DecoderClass::kAuto)
    return job.may_be_nvjpeg && ready > 0 &&
                   membership.num_ready_with_engines() == ready
               ? DecoderClass::kNvjpeg
               : DecoderClass::kExact;
  if (ready > 0 && membership.num_ready(spec.decoder_class) == 0)
    return FailedPrecondition(
        "job {} wants decoder class {}, which none of {} ready worker{} has: "
        "start a leat-worker on a machine with {}, or ask for class auto",
        spec.name, Name(spec.decoder_class), ready, ready == 1 ? "" : "s",
        NeedsDevices(spec.decoder_class) ? "an NVIDIA GPU and nvJPEG" : "it");
  return spec.decoder_class;
}

// kFailedPrecondition: none of the ready workers has what the job needs. Without
// any worker the job is accepted, since the workers to come are unknown.
absl::Status CheckAbilities(const JobSpec& spec, const Membership& membership) {
  const size_t ready = membership.num_ready();
  if (ready == 0) return absl::OkStatus();
  const std::optional<AbilityGap> gap =
      GapOf(membership,
            NeedsDevices(spec.decoder_class) ? spec.decoder_class
                                             : DecoderClass::kExact,
            AbilitiesFor(spec));
  if (!gap) return absl::OkStatus();
  return FailedPrecondition(
      "job {} needs {}, which none of {} ready worker{} has{}: {}", spec.name,
      gap->Names(), ready, ready == 1 ? "" : "s",
      gap->why.empty() ? "" : fmt::format(" ({})", gap->why), gap->Remedy());
}

// Returns the paths and addresses in a reader's text, each up to the start of a
// pattern. Returns none if the text names them by a digest.
std::vector<std::string> PlacesIn(std::string_view text) {
  std::vector<std::string> places;
  for (size_t begin; (begin = text.find('"')) != text.npos;) {
    text.remove_prefix(begin + 1);
    const size_t end = text.find('"');
    const std::string_view quoted = text.substr(0, end);
    if (quoted.starts_with('/') || quoted.find("://") != quoted.npos)
      places.emplace_back(quoted.substr(0, quoted.find_first_of("*?[{")));
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
  }
  return places;
}

}  // namespace

std::string StorageWaitOf(const Membership& membership,
                          const std::string& worker,
                          const std::string& reader_text) {
  const auto it = membership.workers().find(worker);
  if (it == membership.workers().end() || it->second.report.stats == nullptr)
    return "";
  const std::vector<std::string> places = PlacesIn(Redacted(reader_text));
  std::vector<std::string_view> own;
  for (const std::string& wait : it->second.report.stats->storage_waits())
    if (places.empty() ||
        std::ranges::any_of(places, [&](const std::string& place) {
          return std::string_view(wait).starts_with(place);
        }))
      own.push_back(wait);
  return fmt::format("{}", fmt::join(own, "; "));
}

JobCreation::JobCreation(PreparedJob job, JobCreator by, Relist relist,
                         MonotonicTime deadline, Now now, Done done, Tell tell)
    : job_(std::make_shared<PreparedJob>(std::move(job))),
      by_(std::move(by)),
      relist_(relist),
      deadline_(deadline),
      started_(now.mono),
      done_(std::move(done)),
      tell_(std::move(tell)),
      next_told_(now.mono + kFirstTold) {
  for (const PreparedSource& source : job_->sources)
    waits_for_[source.reader_id] = &source;
}

std::optional<JobCreation::Answer> JobCreation::Begin(
    const State& state, const Membership& membership) {
  if (const JobRecord* existing = state.FindJob(job_->spec.name)) {
    Answer answer = Attach(*existing, *job_, by_);
    if (!answer.ok()) return answer;
    if (relist_ == Relist::kNever) return answer;
    waits_for_.clear();
    for (size_t i = 0; i < job_->sources.size(); ++i) {
      const DatasetInfo& own = existing->info->datasets[i];
      const DatasetRecord& dataset = *state.FindDataset(StoredDataset(own).id);
      if (!dataset.look) continue;
      if (!state.IsCurrent(dataset) ||
          !state.IsCurrent(*state.FindDataset(own.id)))
        return AttachedTo(
            state, IsMixture(job_->spec)
                       ? fmt::format("{}: {}", dataset.info->name, kListedAgain)
                       : std::string(kListedAgain));
      waits_for_[job_->sources[i].reader_id] = &job_->sources[i];
    }
    // There is no worker to look, and the job need not wait for one.
    if (waits_for_.empty() || membership.num_ready() == 0 ||
        !CheckAbilities(job_->spec, membership).ok())
      return answer;
    phase_ = Phase::kAttaching;
    return std::nullopt;
  }
  if (absl::Status status = ResolveClass(*job_, membership).status();
      !status.ok())
    return status;
  if (absl::Status status = CheckAbilities(job_->spec, membership);
      !status.ok())
    return status;
  waits_for_.clear();
  for (const PreparedSource& source : job_->sources)
    if (!TakesAsItIs(state, source.reader_id))
      waits_for_[source.reader_id] = &source;
  if (waits_for_.empty()) WaitForArrangements(state);
  phase_ = waits_for_.empty() ? Phase::kWriting : Phase::kListing;
  return std::nullopt;
}

void JobCreation::WaitForArrangements(const State& state) {
  arranges_ = true;
  for (const PreparedSource& source : job_->sources)
    if (!source.arranged_id.empty() && !TakesAsItIs(state, source.arranged_id))
      waits_for_[source.arranged_id] = &source;
}

// An arrangement is that of the base's current listing.
bool JobCreation::TakesAsItIs(const State& state,
                              std::string_view reader_id) const {
  const DatasetRecord* known = state.CurrentListing(reader_id);
  return known != nullptr &&
         (known->info->base == nullptr ||
          state.IsCurrent(*state.FindDataset(known->info->base->id))) &&
         (relist_ == Relist::kNever ||
          (relist_ == Relist::kAuto && !known->look.has_value()));
}

bool JobCreation::Listed(const State& state, std::string_view reader_id) {
  waits_for_.erase(std::string(reader_id));
  if (waits_for_.empty() && !arranges_ && phase_ == Phase::kListing)
    WaitForArrangements(state);
  return waits_for_.empty();
}

absl::StatusOr<Indexing::Over> JobCreation::OverOf(const State& state,
                                                   std::string_view id) const {
  const PreparedSource& source = *waits_for_.at(std::string(id));
  if (id != source.arranged_id) return Indexing::Over();
  const DatasetRecord* const base = state.CurrentListing(source.reader_id);
  if (base == nullptr)
    return Aborted("a dataset of job {} was deleted meanwhile; try again",
                   job_->spec.name);
  return Indexing::Over{.arrangement = source.arrangement, .base = base->info};
}

Indexing::Want JobCreation::Wanted(const State& state,
                                   std::string_view reader_id) const {
  const DatasetRecord* known = state.CurrentListing(reader_id);
  // An existing job keeps its listing: there is nothing to list for it.
  const bool attaching = phase_ == Phase::kAttaching;
  const bool look =
      known != nullptr && known->look &&
      (attaching || relist_ != Relist::kAlways) &&
      (known->info->base == nullptr ||
       state.IsCurrent(*state.FindDataset(known->info->base->id)));
  return {.look = look ? known->look : std::nullopt,
          .look_only = attaching && look};
}

bool JobCreation::IsCoveredBy(const Indexing::Request& request,
                              uint64_t id) const {
  if (phase_ == Phase::kAttaching) return true;
  return id < request.covers && !request.look_only &&
         (relist_ != Relist::kAlways || !request.look);
}

JobCreation::Answer JobCreation::AttachedTo(const State& state,
                                            std::string changed) const {
  const JobRecord* existing = state.FindJob(job_->spec.name);
  if (existing == nullptr)
    return Aborted("job {} was deleted meanwhile; try again", job_->spec.name);
  ASSIGN_OR_RETURN(CreatedJob attached, Attach(*existing, *job_, by_));
  attached.dataset_changed = std::move(changed);
  return attached;
}

JobCreation::Decision JobCreation::Decide(const State& state,
                                          const Membership& membership,
                                          const JobLimits& limits) const {
  if (const JobRecord* existing = state.FindJob(job_->spec.name))
    return {std::nullopt, Attach(*existing, *job_, by_)};
  absl::StatusOr<Event> event = Make(state, membership, limits);
  if (!event.ok()) return {std::nullopt, event.status()};
  return {*std::move(event), std::nullopt};
}

absl::StatusOr<Event> JobCreation::Make(const State& state,
                                        const Membership& membership,
                                        const JobLimits& limits) const {
  if (state.jobs().size() >= limits.all)
    return ResourceExhausted("{} jobs exist, the limit: delete some",
                             state.jobs().size());
  if (by_.bounded && state.NumJobsOf(by_.identity) >= limits.of_one)
    return ResourceExhausted(
        "{} has created {} jobs, the bound of one caller of role trainer: have "
        "an operator delete some (leat delete job)",
        by_.identity, limits.of_one);
  std::vector<DatasetInfo> datasets;
  std::vector<std::string> ids;
  for (const PreparedSource& source : job_->sources) {
    const DatasetRecord* dataset = state.CurrentListing(source.listing_id());
    if (dataset == nullptr)
      return Aborted("a dataset of job {} was deleted meanwhile; try again",
                     job_->spec.name);
    datasets.push_back(*dataset->info);
    ids.push_back(dataset->info->id);
  }
  ASSIGN_OR_RETURN(const PreparedJob job, Complete(*job_, datasets));
  JobSpec spec = job.spec;
  ASSIGN_OR_RETURN(spec.decoder_class, ResolveClass(job, membership));
  RETURN_IF_ERROR(CheckAbilities(spec, membership));
  RETURN_IF_ERROR(CheckAgainst(spec, datasets));
  const Digest plan_hash = PlanHash(spec, datasets);
  return Event{{},
               JobCreated{std::move(spec), std::move(ids), job.schema,
                          plan_hash, job.not_on_gpu, by_.identity},
               {}};
}

absl::Status JobCreation::OfSource(std::string_view reader_id,
                                   absl::Status status) const {
  if (!IsMixture(job_->spec)) return status;
  const auto source =
      std::ranges::find_if(job_->sources, [&](const PreparedSource& each) {
        return each.reader_id == reader_id || each.arranged_id == reader_id;
      });
  const auto number = static_cast<size_t>(source - job_->sources.begin());
  return Annotate(
      status, fmt::format("source \"{}\"", job_->spec.sources[number].name));
}

JobCreation::Waited JobCreation::FirstWaited(const Indexing& indexing) const {
  Waited waited;
  for (const auto& [id, source] : waits_for_) {
    const auto it = indexing.requests().find(id);
    const bool listed =
        it != indexing.requests().end() && !it->second.worker.empty();
    if (waited.source != nullptr && !listed) continue;
    waited = {id, source, listed ? &it->second : nullptr};
    if (listed) break;
  }
  return waited;
}

namespace {

// Returns the reader, or the arrangement of it, that `id` stands for.
std::string ListedText(const PreparedSource& source, std::string_view id) {
  const std::string reader = ShownReader(source.reader_text);
  return id == source.arranged_id
             ? fmt::format("{} of {}", ShownText(source.arrangement), reader)
             : reader;
}

}  // namespace

std::string JobCreation::WaitingText(const Indexing& indexing,
                                     const Membership& membership,
                                     Now now) const {
  const Waited waited = FirstWaited(indexing);
  if (waited.source == nullptr) return "";
  const std::string what = ListedText(*waited.source, waited.id);
  const std::string more =
      waits_for_.size() == 1
          ? ""
          : fmt::format("; {} more after it",
                        Counted(waits_for_.size() - 1, "dataset"));
  const auto seconds =
      std::chrono::duration<double>(now.mono - started_).count();
  if (waited.request == nullptr)
    return fmt::format(
        "no worker is ready to list {} ({} known, {} ready), after {:.0f} s{}",
        what, membership.workers().size(), membership.num_ready(), seconds,
        more);
  const Indexing::Request& request = *waited.request;
  const std::string found = Indexing::FoundText(request);
  const std::string wait =
      StorageWaitOf(membership, request.worker, waited.source->reader_text);
  return fmt::format("worker {} {} {}: {}, after {:.0f} s{}{}{}",
                     request.worker,
                     request.look ? "looks for changes of" : "lists", what,
                     found.empty() ? "nothing found so far" : found, seconds,
                     wait.empty() ? "" : "; its storage: ", wait, more);
}

JobCreation::Answer JobCreation::Late(const State& state,
                                      const Indexing& indexing,
                                      const Membership& membership,
                                      Now now) const {
  if (phase_ == Phase::kAttaching) return AttachedTo(state, "");
  const auto seconds =
      std::chrono::duration<double>(now.mono - started_).count();
  const Waited waited = FirstWaited(indexing);
  const PreparedSource& source = *waited.source;
  if (waited.request == nullptr) {
    RETURN_IF_ERROR(CheckAbilities(job_->spec, membership));
    return OfSource(
        source.reader_id,
        Unavailable("no worker was ready within {:.1f} s to list {}: start a "
                    "leat-worker ({} known, {} ready)",
                    seconds, ShownReader(source.reader_text),
                    membership.workers().size(), membership.num_ready()));
  }
  const std::string& worker = waited.request->worker;
  const std::string found = Indexing::FoundText(*waited.request);
  const std::string wait =
      StorageWaitOf(membership, worker, source.reader_text);
  return OfSource(
      source.reader_id,
      DeadlineExceeded("worker {} still lists {} after {:.1f} s{}{}; it goes "
                       "on: call again{}{}",
                       worker, ListedText(source, waited.id), seconds,
                       found.empty() ? "" : ": ", found,
                       wait.empty() ? "" : "; its storage: ", wait));
}

}  // namespace leat::server

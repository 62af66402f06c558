// SPDX-License-Identifier: Apache-2.0
#include "worker/source/webdataset/samples.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>

#include "core/status.h"
#include "fmt/ranges.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxOthers = 8;      // in messages
constexpr uint64_t kSpotChecks = 64;  // of headers against an index

std::string_view TakeLine(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Returns the next word; empty at the end.
std::string_view TakeWord(std::string_view* line) {
  const size_t begin = std::min(line->find_first_not_of(" \t"), line->size());
  line->remove_prefix(begin);
  const size_t end = std::min(line->find_first_of(" \t"), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end);
  return word;
}

std::optional<uint64_t> IndexNumber(std::string_view word) {
  uint64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

// Compares an index's entry with the header before its bytes.
absl::Status CheckHeader(const StorageFile& file, uint64_t line,
                         uint64_t offset, uint64_t size) {
  std::array<std::byte, kTarBlock> block;
  RETURN_IF_ERROR(file.ReadAt(offset - kTarBlock, block));
  const absl::StatusOr<TarHeader> header = ParseTarHeader(block);
  const std::string what =
      !header.ok() ? std::string(Message(header.status()))
      : !header->is_file()
          ? fmt::format("its header is of type \"{}\"", header->type)
      : header->size != size ? fmt::format("it has {}", header->size)
                             : "";
  if (what.empty()) return absl::OkStatus();
  return FailedPrecondition(
      "line {} says that a component of {} bytes is at {}, but {}", line, size,
      offset, what);
}

}  // namespace

ComponentName ComponentNameOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  const size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = path.find('.', name);
  if (dot == std::string_view::npos || dot == name) return {};
  return {path.substr(0, dot), path.substr(dot + 1)};
}

SampleCollector::SampleCollector(const std::vector<std::string>& ext,
                                 MissingComponent missing, uint64_t max_samples)
    : ext_(ext),
      missing_(missing),
      max_samples_(max_samples),
      blocks_(ext.size()),
      sizes_(ext.size()) {
  for (size_t i = 0; i < ext.size(); ++i) {
    std::string_view rest = ext[i];
    while (true) {
      const size_t end = std::min(rest.find(';'), rest.size());
      if (end > 0) {
        std::vector<size_t>& outputs =
            outputs_[std::string(rest.substr(0, end))];
        if (outputs.empty() || outputs.back() != i) outputs.push_back(i);
      }
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
  }
}

absl::Status SampleCollector::Add(std::string_view sample,
                                  std::string_view extension, uint64_t offset,
                                  uint64_t size) {
  if (!begun_ || sample != sample_) {
    RETURN_IF_ERROR(Finish());
    begun_ = true;
    sample_ = sample;
    seen_.clear();
    others_.clear();
    first_ = offset;
  }
  const auto wanted = outputs_.find(extension);
  if (wanted == outputs_.end()) {
    if (others_.size() < kMaxOthers) others_.emplace_back(extension);
    return absl::OkStatus();
  }
  constexpr uint64_t kMost = std::numeric_limits<uint32_t>::max();
  if (size > kMost || offset / kTarBlock > kMost)
    return Unimplemented(
        "component \"{}\" of sample \"{}\" has {} bytes at {}: want less than "
        "4 GiB, and within 2 TiB",
        extension, sample, size, offset);
  const auto twice = std::find_if(
      seen_.begin(), seen_.end(),
      [&](const auto& before) { return before.first == extension; });
  if (twice != seen_.end()) {
    if (missing_ == MissingComponent::kError)
      return FailedPrecondition(
          "sample \"{}\" has the component \"{}\" twice, at {} and at {}: "
          "two samples of one name, one behind the other? (missing = \"skip\" "
          "takes the first, and counts the others)",
          sample, extension, twice->second, offset);
    places_.passed_over.Add("components that their sample has already",
                            fmt::format("{}.{}", sample, extension));
    return absl::OkStatus();
  }
  seen_.emplace_back(extension, offset);
  for (const size_t output : wanted->second) {
    if (blocks_[output] != 0) continue;
    blocks_[output] = static_cast<uint32_t>(offset / kTarBlock);
    sizes_[output] = static_cast<uint32_t>(size);
  }
  return absl::OkStatus();
}

absl::Status SampleCollector::Finish() {
  if (!begun_) return absl::OkStatus();
  begun_ = false;
  const auto missing = std::find(blocks_.begin(), blocks_.end(), 0u);
  const bool whole = missing == blocks_.end();
  if (!whole && missing_ == MissingComponent::kError) {
    const std::string& ext =
        ext_[static_cast<size_t>(missing - blocks_.begin())];
    const std::string instead =
        others_.empty()
            ? std::string()
            : fmt::format("it has \"{}\", and \"{};{}\" takes either; ",
                          fmt::join(others_, "\", \""), ext, others_.front());
    return FailedPrecondition(
        "sample \"{}\" at {} has no component \"{}\" ({}missing = \"skip\" "
        "passes over such samples)",
        sample_, first_, ext, instead);
  }
  if (whole || missing_ == MissingComponent::kEmpty) {
    if (++samples_ > max_samples_)
      return ResourceExhausted("more than {} samples: the limit", max_samples_);
    places_.blocks.insert(places_.blocks.end(), blocks_.begin(), blocks_.end());
    places_.sizes.insert(places_.sizes.end(), sizes_.begin(), sizes_.end());
  } else {
    places_.passed_over.Add(
        fmt::format("samples without a component \"{}\"",
                    ext_[static_cast<size_t>(missing - blocks_.begin())]),
        sample_);
  }
  std::fill(blocks_.begin(), blocks_.end(), 0);
  std::fill(sizes_.begin(), sizes_.end(), 0);
  return absl::OkStatus();
}

absl::StatusOr<ComponentPlaces> SamplesOfTar(
    const StorageFile& file, const std::vector<std::string>& ext,
    MissingComponent missing, uint64_t max_samples,
    const std::atomic<bool>* cancelled) {
  SampleCollector collector(ext, missing, max_samples);
  PassedOverCounts nameless;
  RETURN_IF_ERROR(WalkTar(file, cancelled, [&](const TarMember& member) {
    const ComponentName name = ComponentNameOf(member.name);
    if (name.sample.empty()) {
      const std::string_view path = member.name;
      if (!path.substr(path.rfind('/') + 1).starts_with('.'))
        nameless.Add("files without an extension", member.name);
      return absl::OkStatus();
    }
    return Annotate(
        collector.Add(name.sample, name.extension, member.offset, member.size),
        file.name());
  }));
  if (const absl::Status status = collector.Finish(); !status.ok())
    return Annotate(status, file.name());
  ComponentPlaces places = collector.Take();
  places.passed_over.Add(nameless);
  return places;
}

absl::StatusOr<ComponentPlaces> SamplesOfDaliIndex(
    std::string_view text, const StorageFile& file,
    const std::vector<std::string>& ext, MissingComponent missing,
    uint64_t max_samples) {
  std::string_view head = TakeLine(&text);
  const std::string_view version = TakeWord(&head);
  const auto count = IndexNumber(TakeWord(&head));
  const bool named = version == "v1.2";
  if ((!named && version != "v1.1") || !count || !TakeWord(&head).empty())
    return InvalidArgument(
        "line 0 is not \"v1.2\" or \"v1.1\" and a number of samples, as "
        "wds2idx writes it");
  SampleCollector collector(ext, missing, max_samples);
  const uint64_t step = std::max<uint64_t>(1, *count / kSpotChecks);
  for (uint64_t line = 1; line <= *count; ++line) {
    if (text.empty())
      return InvalidArgument("it ends after line {} of {}", line - 1, *count);
    std::string_view rest = TakeLine(&text);
    const bool look = (line - 1) % step == 0 || line == *count;
    uint64_t components = 0;
    for (std::string_view extension = TakeWord(&rest); !extension.empty();
         extension = TakeWord(&rest), ++components) {
      const auto offset = IndexNumber(TakeWord(&rest));
      const auto size = IndexNumber(TakeWord(&rest));
      if (!offset || !size || (named && TakeWord(&rest).empty()))
        return InvalidArgument(
            "line {} is not a sequence of extension, offset, size{}", line,
            named ? ", name" : "");
      if (*offset % kTarBlock != 0 || *offset < kTarBlock ||
          *offset > file.size() || *size > file.size() - *offset)
        return FailedPrecondition(
            "line {} has a component of {} bytes at {}: want a multiple of {}, "
            "within the {} bytes of the archive",
            line, *size, *offset, kTarBlock, file.size());
      if (look) RETURN_IF_ERROR(CheckHeader(file, line, *offset, *size));
      RETURN_IF_ERROR(
          collector.Add(std::to_string(line), extension, *offset, *size));
    }
    if (components == 0)
      return InvalidArgument("line {} has no components", line);
  }
  if (text.find_first_not_of(" \t\r\n") != std::string_view::npos)
    return InvalidArgument("it goes on after {} samples", *count);
  RETURN_IF_ERROR(collector.Finish());
  return collector.Take();
}

}  // namespace leat::worker

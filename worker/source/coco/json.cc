// SPDX-License-Identifier: Apache-2.0
//
// The JSON is parsed as events, since the tree of a large file would be many
// times its size.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/status.h"
#include "worker/source/coco/coco.h"
#include "worker/source/coco/records.h"
#include "worker/source/record_file.h"

namespace leat::worker {
namespace {

using Place = CocoPlace;

constexpr size_t kWindow = size_t{1} << 20;

// The file's bytes, one after the other.
class Feed {
 public:
  Feed(const StorageFile& file, const SourceLimits& limits)
      : file_(file), limits_(limits), window_(kWindow) {}

  bool done() { return at_ == end_ && !Fill(); }
  char Next() { return window_[at_++]; }
  const absl::Status& status() const { return status_; }

 private:
  bool Fill() {
    if (!status_.ok() || offset_ == file_.size()) return false;
    const auto size = std::min<uint64_t>(kWindow, file_.size() - offset_);
    status_ = CheckCancelled(limits_, file_.name());
    if (status_.ok())
      status_ = file_.ReadAt(
          offset_, std::as_writable_bytes(std::span(window_.data(), size)));
    if (!status_.ok()) return false;
    offset_ += size;
    at_ = 0;
    end_ = size;
    return true;
  }

  const StorageFile& file_;
  const SourceLimits& limits_;
  std::vector<char> window_;
  size_t at_ = 0, end_ = 0;
  uint64_t offset_ = 0;
  absl::Status status_;
};

// The parser's iterator: reads each byte once. One without a feed is the end.
class FeedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit FeedIterator(Feed* feed = nullptr) : feed_(feed) {}
  char operator*() const { return feed_->Next(); }
  FeedIterator& operator++() { return *this; }  // Next() did it
  bool operator==(const FeedIterator& end) const {
    return (feed_ == nullptr || feed_->done()) == (end.feed_ == nullptr);
  }
  bool operator!=(const FeedIterator& end) const { return !(*this == end); }

 private:
  Feed* feed_;
};

struct Nesting {
  Place outer;
  std::string_view key;  // in outer; empty: an entry of a list
  bool object;
  Place inner;
};

// All lists and objects that are parsed; any other one is skipped.
constexpr Nesting kNestings[] = {
    {Place::kFile, "", true, Place::kRoot},
    {Place::kRoot, "images", false, Place::kImages},
    {Place::kRoot, "categories", false, Place::kCategories},
    {Place::kRoot, "annotations", false, Place::kAnnotations},
    {Place::kImages, "", true, Place::kImage},
    {Place::kCategories, "", true, Place::kCategory},
    {Place::kAnnotations, "", true, Place::kAnnotation},
    {Place::kAnnotation, "bbox", false, Place::kBox},
    {Place::kAnnotation, "segmentation", false, Place::kPolygons},
    {Place::kAnnotation, "segmentation", true, Place::kRuns},
    {Place::kPolygons, "", false, Place::kPolygon},
    {Place::kRuns, "size", false, Place::kRunSize},
    {Place::kRuns, "counts", false, Place::kRunCounts},
};

bool HasKeys(Place place) {
  return place == Place::kRoot ||
         (place >= Place::kImage && place <= Place::kRuns);
}

class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(const CocoOptions& options, uint64_t max_bytes)
      : polygons_(options.WantsPolygons()),
        runs_(options.Wants(CocoOutput::kMask)),
        records_(options, max_bytes) {}

  absl::StatusOr<CocoFile> Finish() {
    RETURN_IF_ERROR(records_.status());
    RETURN_IF_ERROR(status_);
    for (const auto& [list, place] :
         {std::pair("images", Place::kImages),
          std::pair("annotations", Place::kAnnotations)})
      if (!Has(place)) return DataLoss("it has no list \"{}\"", list);
    CocoFile file = records_.Take();
    file.has_categories = Has(Place::kCategories);
    return file;
  }

  bool null() override { return OnScalar({}); }
  bool boolean(bool value) override {
    JsonScalar scalar;
    scalar.flag = value;
    return OnScalar(scalar);
  }
  bool number_integer(int64_t value) override {
    JsonScalar scalar;
    scalar.whole = value;
    scalar.number = static_cast<double>(value);
    return OnScalar(scalar);
  }
  bool number_unsigned(uint64_t value) override {
    if (value > INT64_MAX) return number_float(static_cast<double>(value), {});
    return number_integer(static_cast<int64_t>(value));
  }
  bool number_float(double value, const std::string&) override {
    JsonScalar scalar;
    scalar.number = value;
    // pandas writes 10.0 for 10 if a column had a gap. Above 2^53 it may stand
    // for another number.
    if (std::fabs(value) <= 0x1p53 && value == std::trunc(value))
      scalar.whole = static_cast<int64_t>(value);
    return OnScalar(scalar);
  }
  bool string(std::string& value) override {
    JsonScalar scalar;
    scalar.text = &value;
    return OnScalar(scalar);
  }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool key(std::string& value) override {
    if (passed_over_ == 0) key_ = std::move(value);
    return true;
  }
  bool start_object(size_t) override { return Start(true); }
  bool start_array(size_t) override { return Start(false); }
  bool end_object() override { return End(); }
  bool end_array() override { return End(); }
  // The parser's message is not used, because it quotes the file.
  bool parse_error(size_t byte, const std::string&,
                   const nlohmann::json::exception&) override {
    status_ = DataLoss("{}no JSON at byte {}", records_.Context(place_), byte);
    return false;
  }

 private:
  bool Has(Place list) const {
    return (lists_ >> static_cast<int>(list) & 1) != 0;
  }
  bool OnScalar(const JsonScalar& value) {
    if (passed_over_ > 0) return true;
    if (place_ >= Place::kImage) return records_.Add(place_, key_, value);
    if (place_ == Place::kRoot) {
      for (const Nesting& each : kNestings)
        if (each.outer == place_ && each.key == key_)
          return records_.Bad(
              place_, fmt::format("{}: {}, want a list", key_, value.Shown()));
      return true;
    }
    return records_.Bad(place_,
                        fmt::format("{}, want an object", value.Shown()));
  }
  // Continues in `inner`.
  bool Enter(Place inner) {
    if (place_ == Place::kRoot) {
      if (Has(inner))
        return records_.Bad(place_, fmt::format("two lists \"{}\"", key_));
      lists_ |= 1u << static_cast<int>(inner);
    }
    place_ = inner;
    return records_.Begin(inner);
  }
  bool Start(bool object) {
    if (passed_over_ > 0) {
      ++passed_over_;
      return true;
    }
    const bool by_key = HasKeys(place_);
    const std::string_view key = by_key ? std::string_view(key_) : "";
    bool other = false;  // the place has an entry of the other kind there
    for (const Nesting& each : kNestings) {
      if (each.outer != place_ || each.key != key) continue;
      other = each.object != object;
      if (other) continue;
      if (each.inner == Place::kPolygons ? polygons_
          : each.inner == Place::kRuns   ? runs_
                                         : true)
        return Enter(each.inner);
      break;
    }
    ++passed_over_;
    if (place_ == Place::kAnnotation && key == "segmentation")
      records_.PassSegmentation();
    const char* const kind = object ? "an object" : "a list";
    if (place_ > Place::kRuns)
      return records_.Bad(place_, fmt::format("{} among numbers", kind));
    if (!other || place_ >= Place::kImage) return true;
    return records_.Bad(
        place_, fmt::format("{}{}{}, want {}", key, key.empty() ? "" : ": ",
                            kind, object ? "a list" : "an object"));
  }
  bool End() {
    if (passed_over_ > 0) {
      --passed_over_;
      return true;
    }
    if (!records_.End(place_)) return false;
    const auto* const nesting =
        std::find_if(std::begin(kNestings), std::end(kNestings),
                     [&](const Nesting& each) { return each.inner == place_; });
    if (nesting != std::end(kNestings)) place_ = nesting->outer;
    return true;
  }

  const bool polygons_, runs_;
  CocoRecords records_;
  absl::Status status_;
  Place place_ = Place::kFile;
  std::string key_;
  size_t passed_over_ = 0;  // lists and objects that are open
  uint32_t lists_ = 0;      // found in the file; one bit per place
};

}  // namespace

absl::StatusOr<CocoFile> ParseCoco(const StorageFile& file,
                                   const CocoOptions& options,
                                   const SourceLimits& limits) {
  if (file.size() > limits.max_index_bytes)
    return ResourceExhausted("{} bytes: the limit is {}", file.size(),
                             limits.max_index_bytes);
  Feed feed(file, limits);
  Handler handler(options, limits.max_index_bytes);
  nlohmann::json::sax_parse(FeedIterator(&feed), FeedIterator(), &handler);
  RETURN_IF_ERROR(feed.status());
  return handler.Finish();
}

}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
//
// IdleFormsFixture: a dataset in a cache whose account has only its advance,
// rows that decode the dataset, and a maker of forms.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/image/base/stored_image.h"
#include "worker/cache/idle_forms.h"
#include "worker/cache/sample_cache.h"
#include "worker/cache/sample_forms.h"

namespace leat::worker {

inline KeptForm FormThatIsNoForm(JpegFormKind kind, size_t bytes) {
  const auto owner = std::make_shared<const int>(1);
  return {std::shared_ptr<const JpegForm>(
              owner, reinterpret_cast<const JpegForm*>(owner.get())),
          kind, bytes};
}

// Reads all of each file.
class FakeMaker final : public FormMaker {
 public:
  explicit FakeMaker(FakeClock* clock, size_t bytes)
      : form_bytes(bytes), clock_(clock) {}

  absl::StatusOr<KeptForm> Make(const FormOrder& order,
                                const std::atomic<uint32_t>& give_up) override {
    begun.push_back(order.file.data());
    for (const std::byte each : order.file) EXPECT_EQ(each, order.file[0]);
    if (on_make) on_make(order);
    if (clock_ != nullptr) clock_->Advance(std::chrono::milliseconds(20));
    if (give_up != 0) return Cancelled("given up");
    for (const std::byte each : order.file) EXPECT_EQ(each, order.file[0]);
    RETURN_IF_ERROR(result);
    made.push_back(order.file.data());
    return FormThatIsNoForm(order.kind, form_bytes);
  }

  std::function<void(const FormOrder&)> on_make;
  absl::Status result;
  size_t form_bytes;
  std::vector<const std::byte*> begun, made;

 private:
  FakeClock* const clock_;  // nullptr: the time is real
};

class IdleFormsFixture : public testing::Test {
 protected:
  static constexpr uint64_t kRecords = 200, kFileBytes = 1000;
  static constexpr size_t kFormBytes = 2000;
  static constexpr uint64_t kPlenty = 4 << 20;

  explicit IdleFormsFixture(uint64_t limit)
      : cache_(limit, nullptr, clock_, {.pixels = true}) {
    for (uint64_t record = 0; record < kRecords; ++record) {
      files_.emplace_back(kFileBytes, static_cast<std::byte>(record));
      EXPECT_TRUE(cache_.Put(kept_, {.number = record}, Stored(record)));
    }
    BeginReading(0);
  }

  // Its bytes are freed with the last reference to them.
  static StoredSample Stored(
      const std::shared_ptr<std::vector<std::byte>>& of) {
    StoredSample stored = StoredImage(*of, 1);
    stored.owner =
        std::make_shared<const std::pair<std::shared_ptr<const void>,
                                         std::shared_ptr<const void>>>(
            stored.owner, of);
    return stored;
  }
  StoredSample Stored(uint64_t record) const {
    return StoredImage(files_[record], 1);
  }
  void BeginReading(uint64_t end_epoch) {
    epoch_ = 0;
    reading_ = std::make_unique<FormHorizon::Reading>(
        SampleCache::HorizonOf(kept_),
        FormHorizon::Iterator{
            .job = job_, .end_epoch = end_epoch, .steps_per_epoch = 10});
  }
  void EndReading() { reading_.reset(); }

  // Decodes plainly in 10 ms, by pixels in 1 ms; to make pixels takes 12 ms
  // more.
  void Decode(uint64_t record, uint64_t epoch) {
    const auto sample = cache_.Find(kept_, record);
    if (!sample) return;
    SampleForms forms(&cache_, &kept_, record, {},
                      {.job = &job_, .epoch = epoch, .idle = &work_});
    const FormWish wish = forms.Begin(sample->fields[0].bytes, decode_);
    FormAnswer answer{.pixel_halvings = pixel_halvings_};
    if (wish.use.form != nullptr) answer.used = wish.use.kind;
    if (wish.make.pixels)
      answer.made.push_back(
          FormThatIsNoForm(JpegFormKind::kPixels, kFormBytes));
    clock_.Advance(std::chrono::milliseconds(answer.used       ? 1
                                             : wish.make.any() ? 22
                                                               : 10));
    forms.End(std::move(answer));
  }
  void ReadEpochs(int count) {
    for (; count > 0; --count, ++epoch_) {
      if (reading_ != nullptr) reading_->At(epoch_, 0);
      for (uint64_t record = 0; record < kRecords; ++record)
        Decode(record, epoch_);
    }
  }
  uint64_t CountForms() const {
    uint64_t count = 0;
    for (uint64_t record = 0; record < kRecords; ++record)
      count += cache_.forms().HasForm(kept_, record);
    return count;
  }
  // Removes all records of the dataset.
  void PushOut() {
    cache_.SetOwned("photos", {false});
    const auto other = cache_.Open(HashOf("other"), "other", "other", 100);
    for (uint64_t record = 0; record < 100; ++record)
      cache_.Put(other, {.number = record},
                 Stored(std::make_shared<std::vector<std::byte>>(100'000)));
  }

  FakeClock clock_;
  IdleWork work_;
  std::vector<std::vector<std::byte>> files_;
  SampleCache cache_;
  const SampleCache::DatasetPtr kept_ =
      cache_.Open(HashOf("photos"), "photos", "photos", kRecords);
  const Digest job_ = HashOf("job");
  std::unique_ptr<FormHorizon::Reading> reading_;
  uint64_t epoch_ = 0;
  // The class of the next decodes.
  DecodeClass decode_ = DecodeClass::kFull;
  int pixel_halvings_ = 0;
  FakeMaker maker_{&clock_, kFormBytes};
};

}  // namespace leat::worker

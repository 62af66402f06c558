// SPDX-License-Identifier: Apache-2.0
//
// A cache that keeps forms is never slower than one that keeps none, and not
// much slower than the best choice that could have been made with what is known
// at the end. Time is a fake clock's; decodes take the time that a model of
// photos gives.
#include "worker/cache/form_account.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/image/base/stored_image.h"
#include "worker/cache/sample_cache.h"
#include "worker/cache/sample_forms.h"

namespace leat::worker {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// As fractions of a plain decode's time: a decode by a form, and the additional
// time of making one. Sizes are fractions of the file's bytes.
struct Photos {
  std::array<double, kDecodeWays> takes = {1, 0.66, 0.34, 0.055};
  std::array<double, kDecodeWays> making = {0, 0, 0.43, 0.8};
  std::array<double, kDecodeWays> size = {0, 1.0 / 64, 1.9, 5.1};
  double grows = 0.93;  // a decode that notes where MCUs begin, from nothing
  // Pixels serve this share of reduced decodes; the others take what those by a
  // seek index take. And the size of these pixels.
  double served = 0.8, smaller = 0.25;
  // The additional time of keeping the pixels of files of other formats, and the
  // size of these pixels.
  double others_making = 0.04, others_size = 2;
};

// The decodes of a worker, in any order, with the time that they take and would
// have taken without forms.
class Worker {
 public:
  explicit Worker(uint64_t limit, Photos photos, uint32_t seed,
                  FormKinds kinds = {.seek_index = true,
                                     .coefficients = true,
                                     .pixels = true})
      : photos_(photos), random_(seed), cache_(limit, &uses_, clock_, kinds) {}

  struct Dataset {
    SampleCache::DatasetPtr kept;
    std::shared_ptr<const void> use;
    std::vector<size_t> bytes;  // of each record
    double ns_of_byte = 8;
    DecodeClass decode = DecodeClass::kFull;
  };
  Dataset Open(const std::string& name, uint64_t records) {
    Dataset dataset{.kept = cache_.Open(HashOf(name), name, name, records),
                    .use = uses_.Begin(HashOf(name))};
    std::lognormal_distribution<double> bytes(std::log(9000), 0.5);
    for (uint64_t i = 0; i < records; ++i)
      dataset.bytes.push_back(1000 + static_cast<size_t>(bytes(random_)));
    return dataset;
  }

  void Decode(const Dataset& dataset, uint64_t record) {
    const size_t bytes = dataset.bytes[record];
    const auto sample = cache_.Get(
        dataset.kept, {.number = record}, true,
        [&]() -> absl::StatusOr<StoredSample> {
          const auto file = std::make_shared<std::vector<std::byte>>(bytes);
          StoredSample stored = StoredImage(*file, 1);
          stored.owner =
              std::make_shared<const std::pair<std::shared_ptr<const void>,
                                               std::shared_ptr<const void>>>(
                  stored.owner, file);
          return stored;
        });
    SampleForms forms(&cache_, &dataset.kept, record);
    const FormWish wish = forms.Begin(sample->fields[0].bytes, dataset.decode);
    FormAnswer answer;
    if (wish.use.form != nullptr) answer.used = wish.use.kind;
    const double window = std::uniform_real_distribution<>(0.4, 1.6)(random_);
    const double plain =
        static_cast<double>(bytes) * dataset.ns_of_byte * window;
    double factor = photos_.takes[answer.used ? WayOf(*answer.used) : 0];
    if (answer.used == JpegFormKind::kPixels && !AreServed(dataset))
      factor = photos_.takes[WayOf(JpegFormKind::kSeekIndex)];
    for (const JpegFormKind kind : kJpegFormKinds) {
      if (!wish.make.Has(kind)) continue;
      if (dataset.decode == DecodeClass::kOtherFormat) {
        factor += photos_.others_making;
        answer.making =
            nanoseconds(static_cast<int64_t>(plain * photos_.others_making));
      } else {
        factor += photos_.making[WayOf(kind)];
      }
      answer.made.push_back(FormOf(kind, bytes, dataset.decode));
    }
    if (wish.grow) {
      if (!answer.used) factor = photos_.grows;
      answer.made.push_back(
          FormOf(JpegFormKind::kSeekIndex, bytes, dataset.decode));
    }
    const nanoseconds took(static_cast<int64_t>(plain * factor));
    clock_.Advance(took);
    forms.End(std::move(answer));
    took_ += static_cast<double>(took.count());
    plain_ += plain;
    least_ = std::min(least_, plain_ / took_);
  }
  void Epoch(const Dataset& dataset) {
    std::vector<uint64_t> order(dataset.bytes.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const uint64_t record : order) Decode(dataset, record);
  }

  double took() const { return took_; }
  double plain() const { return plain_; }
  // The rows that were delivered, as a fraction of those that a worker without
  // forms would have delivered, at the worst moment.
  double least() const { return least_; }
  SampleCache& cache() { return cache_; }
  std::mt19937& random() { return random_; }

 private:
  bool AreServed(const Dataset& dataset) {
    return dataset.decode != DecodeClass::kReduced ||
           std::bernoulli_distribution(photos_.served)(random_);
  }
  KeptForm FormOf(JpegFormKind kind, size_t file_bytes,
                  DecodeClass decode) const {
    double size = photos_.size[WayOf(kind)];
    if (kind == JpegFormKind::kPixels && decode == DecodeClass::kReduced)
      size = photos_.smaller;
    if (decode == DecodeClass::kOtherFormat) size = photos_.others_size;
    const auto owner = std::make_shared<const int>(1);
    const auto* const form = reinterpret_cast<const JpegForm*>(owner.get());
    return {std::shared_ptr<const JpegForm>(owner, form), kind,
            static_cast<size_t>(static_cast<double>(file_bytes) * size)};
  }

  const Photos photos_;
  std::mt19937 random_;
  FakeClock clock_;
  DatasetUses uses_{clock_};
  SampleCache cache_;
  double took_ = 0, plain_ = 0, least_ = 1;
};

TEST(FormAccount, PaysOutOfWhatWasSavedAndLent) {
  FormAccount account;
  EXPECT_FALSE(account.Pay(nanoseconds(1)));
  account.Lend(microseconds(100));
  EXPECT_EQ(account.balance(), microseconds(2));
  account.Save(microseconds(5));
  EXPECT_FALSE(account.Pay(microseconds(8)));
  EXPECT_TRUE(account.Pay(microseconds(6)));
  EXPECT_EQ(account.balance(), microseconds(1));
  account.Return(microseconds(6));
  account.Spend(microseconds(9));
  EXPECT_EQ(account.balance(), microseconds(-2));
  EXPECT_FALSE(account.Pay(nanoseconds(0)));
  EXPECT_EQ(account.totals().saved, microseconds(5));
  EXPECT_EQ(account.totals().lent, microseconds(2));
  EXPECT_EQ(account.totals().spent, microseconds(9));
}

TEST(FormAccount, ManyThreadsSpendNothingTwice) {
  FormAccount account;
  account.Save(microseconds(1000));
  std::atomic<int> paid = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) paid += account.Pay(microseconds(1));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(paid, 1000);
  EXPECT_EQ(account.balance(), nanoseconds(0));
}

TEST(TimeOfBytes, IsTheMeanOfAllAndFollowsWhatChanges) {
  TimeOfBytes time;
  for (int i = 1; i < 8; ++i) {
    time.Add(1000, microseconds(i));
    EXPECT_EQ(time.Of(1000), std::nullopt);
    EXPECT_EQ(time.AtLeast(1000), std::nullopt);
  }
  time.Add(1000, microseconds(8));
  EXPECT_EQ(time.Of(2000), nanoseconds(9000));
  // The standard deviation of 1 … 8 is 2.291.
  EXPECT_NEAR(static_cast<double>(time.AtLeast(1000)->count()),
              4500 - 2 * 2291 / std::sqrt(8), 2);
  for (int i = 0; i < 40'000; ++i) time.Add(1000, microseconds(100));
  EXPECT_NEAR(static_cast<double>(time.Of(1000)->count()), 100'000, 500);
  EXPECT_NEAR(static_cast<double>(time.AtLeast(1000)->count()), 100'000, 500);
  time.Add(0, microseconds(1));  // is ignored
}

// Jobs come and go, with datasets of all sizes, in caches of all sizes, on
// machines where making forms is cheap and where it is expensive.
TEST(FormPromise, NoWorkerIsEverBehindOneWithoutForms) {
  double worst = 1, best = 1;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto among = [&](double low, double high) {
      return std::uniform_real_distribution<>(low, high)(random);
    };
    Photos photos;
    photos.making = {0, 0, among(0.2, 1), among(0.3, 3)};
    photos.takes = {1, among(0.5, 0.95), among(0.25, 0.6), among(0.03, 0.3)};
    photos.grows = among(0.9, 1);
    photos.served = among(0, 1);
    photos.smaller = among(0.05, 5);
    photos.others_making = among(0, 1);
    photos.others_size = std::exp(among(0, 4));
    Worker worker(static_cast<uint64_t>(among(5e5, 2e7)), photos, seed);
    std::vector<Worker::Dataset> datasets;
    for (int i = 0; i < 3; ++i) {
      datasets.push_back(worker.Open(std::to_string(i), 30 + random() % 400));
      datasets.back().ns_of_byte = among(4, 16);
      datasets.back().decode =
          static_cast<DecodeClass>(random() % kDecodeClasses);
    }
    for (int job = 0; job < 12; ++job) {
      const Worker::Dataset& dataset = datasets[random() % 3];
      if (random() % 4 == 0) {  // one that ends early
        for (int i = 0; i < 50; ++i)
          worker.Decode(dataset, random() % dataset.bytes.size());
        continue;
      }
      for (uint64_t epoch = random() % 6; epoch > 0; --epoch)
        worker.Epoch(dataset);
    }
    EXPECT_GE(worker.least(), 0.97) << "seed " << seed;
    worst = std::min(worst, worker.least());
    best = std::max(best, worker.plain() / worker.took());
  }
  EXPECT_LT(worst, 0.999) << "something was lent";
  EXPECT_GT(best, 1.5) << "and much was saved";
}

// Returns the time of all epochs by the account if records were a fluid, in
// plain decodes of a record: in a small part of an epoch the decodes that can
// be paid for make pixels, and the others note where MCUs begin. The time of
// these counts as a plain decode's.
std::vector<double> FluidEpochs(const Photos& photos, int epochs) {
  constexpr int kParts = 1000;
  const double pixels = photos.takes[3], making = photos.making[3];
  std::vector<double> so_far;
  double share = 0, balance = 0, took = 0;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const double without = epoch == 0 ? photos.grows : photos.takes[1];
    const double had = share;
    for (int part = 0; part < kParts; ++part) {
      const double rest = (1 - had) / kParts;
      const double made =
          std::min(rest, std::max(0.0, balance / (1 + making - photos.grows)));
      const double cost =
          had / kParts * pixels + made * (1 + making) + (rest - made) * without;
      balance += photos.grows / kParts - cost + FormAccount::kLent * cost;
      share += made;
      took += cost;
    }
    so_far.push_back(took);
  }
  return so_far;
}

// The best of keeping nothing, seek indexes, or pixels made in the first epoch.
TEST(FormPromise, IsNotFarFromTheModelNorFromTheBestChoiceInHindsight) {
  const Photos photos;
  constexpr int kEpochs = 12;
  Worker worker(1'000'000'000, photos, 3);
  const Worker::Dataset dataset = worker.Open("one", 2000);
  const std::vector<double> fluid = FluidEpochs(photos, kEpochs);
  for (int epochs = 1; epochs <= kEpochs; ++epochs) {
    worker.Epoch(dataset);
    const double took = worker.took() / worker.plain() * epochs;
    EXPECT_LE(took, 1.1 * fluid[static_cast<size_t>(epochs) - 1])
        << epochs << " epochs";
    const double more = epochs - 1;
    const double choice =
        std::min({1 + more, photos.grows + more * photos.takes[1],
                  1 + photos.making[3] + more * photos.takes[3]});
    EXPECT_LE(took, 1.8 * choice) << epochs << " epochs";
  }
}

}  // namespace
}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
#include "core/observe/bottleneck.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two workers without work.
std::vector<WorkerStatistics> Idle() {
  WorkerStatistics worker;
  worker.threads = 8;
  worker.rows_per_s = 1000;
  worker.reading = 0.02;
  worker.decoding = 0.1;
  std::vector<WorkerStatistics> workers(2, worker);
  workers[0].name = "w0";
  workers[1].name = "w1";
  return workers;
}

// Both workers, changed by `change`.
std::vector<WorkerStatistics> Both(void (*change)(WorkerStatistics&)) {
  std::vector<WorkerStatistics> workers = Idle();
  for (WorkerStatistics& worker : workers) change(worker);
  return workers;
}

// A trainer that waits for both workers equally.
std::vector<ConsumerStatistics> Waiting(double waiting = 0.4) {
  return {{.name = "c",
           .rows_per_s = 2000,
           .waiting = waiting,
           .ready = 0.1,
           .waited_for = "w0",
           .waited_for_share = 0.55}};
}

Limit LimitOf(const std::vector<WorkerStatistics>& workers,
              const std::vector<ConsumerStatistics>& consumers) {
  return FindBottleneck(workers, consumers).limit;
}

// Rows of this job wait for their records while the threads decode another
// job's rows; and the reverse.
TEST(FindBottleneck, WhatTheJobsOwnRowsWaitForWhereThreadsWorkForOthers) {
  const std::vector<WorkerStatistics> busy = Both([](WorkerStatistics& w) {
    w.decoding = 0.9;
    w.reading = 0;
  });
  const auto of = [&](double input, double thread, double output,
                      double sending, double decoding = 0.1) {
    const WorkerStatistics own{.decoding = decoding,
                               .for_input = input,
                               .for_output = output,
                               .for_thread = thread,
                               .sending = sending};
    return FindBottleneck(busy, Waiting(), &own).limit;
  };
  EXPECT_EQ(of(0.8, 0.1, 0, 0), Limit::kStorage);
  EXPECT_EQ(of(0.1, 0.8, 0, 0), Limit::kDecodeCpu);
  EXPECT_EQ(of(0.1, 0.1, 0.7, 0.9), Limit::kNetwork);
  EXPECT_EQ(of(0.1, 0.1, 0, 0), Limit::kDecodeCpu) << "none of its waits";
  EXPECT_EQ(of(0.8, 0.1, 0, 0, 0.85), Limit::kDecodeCpu) << "it is alone";
}

TEST(FindBottleneck, AVerdictStandsUnlessFiguresHaveClearlyChanged) {
  const std::vector<WorkerStatistics> busy =
      Both([](WorkerStatistics& w) { w.decoding = 0.9; });
  const auto after = [&](Limit before, double waiting) {
    return FindBottleneck(busy, Waiting(waiting), nullptr, before).limit;
  };
  for (const double waiting : {0.041, 0.049, 0.051, 0.059})
    for (const Limit before : {Limit::kTrainer, Limit::kDecodeCpu})
      EXPECT_EQ(after(before, waiting), before) << waiting;
  EXPECT_EQ(after(Limit::kDecodeCpu, 0.039), Limit::kTrainer);
  EXPECT_EQ(after(Limit::kTrainer, 0.061), Limit::kDecodeCpu);
  EXPECT_EQ(after(Limit::kStorage, 0.4), Limit::kDecodeCpu);
  // Its figures are the measured ones.
  EXPECT_EQ(FindBottleneck(busy, Waiting(0.045), nullptr, Limit::kDecodeCpu)
                .figures[0]
                .value,
            4.5);
}

// A busy stage does not matter if no stage waits for it.
TEST(FindBottleneck, TheTrainerWhileItDoesNotWait) {
  EXPECT_EQ(LimitOf(Idle(), Waiting(0.01)), Limit::kTrainer);
  EXPECT_EQ(LimitOf(Both([](WorkerStatistics& w) { w.decoding = 0.97; }),
                    Waiting(0.01)),
            Limit::kTrainer);
}

TEST(FindBottleneck, DecodeWhoseThreadsAreBusyAndHaveTheirRecords) {
  EXPECT_EQ(
      LimitOf(Both([](WorkerStatistics& w) { w.decoding = 0.9; }), Waiting()),
      Limit::kDecodeCpu);
}

TEST(FindBottleneck, TheGpusThatAreBusierThanTheThreads) {
  EXPECT_EQ(LimitOf(Both([](WorkerStatistics& w) {
                      w.device = 0.95;
                      w.decoding = 0.75;
                      w.for_output = 0.2;
                    }),
                    Waiting()),
            Limit::kDecodeGpu);
  EXPECT_EQ(LimitOf(Both([](WorkerStatistics& w) {
                      w.device = 0.2;
                      w.decoding = 0.95;
                    }),
                    Waiting()),
            Limit::kDecodeCpu);
}

TEST(FindBottleneck, StorageThatThreadsWaitForOrReadThemselves) {
  const Bottleneck remote = FindBottleneck(Both([](WorkerStatistics& w) {
                                             w.decoding = 0.2;
                                             w.for_input = 0.75;
                                             w.fetching = 40;
                                           }),
                                           Waiting());
  EXPECT_EQ(remote.limit, Limit::kStorage);
  EXPECT_THAT(remote.advice, HasSubstr("--read-threads"));
  const Bottleneck local = FindBottleneck(Both([](WorkerStatistics& w) {
                                            w.reading = 0.8;
                                            w.decoding = 0.15;
                                          }),
                                          Waiting());
  EXPECT_EQ(local.limit, Limit::kStorage);
  EXPECT_THAT(local.advice, HasSubstr("--read-ahead-of"));
}

// An object store that throttles: more requests at a time would make it refuse
// more.
TEST(FindBottleneck, StorageThatRefusesRequestsIsNotAskedForMore) {
  const auto of = [](void (*change)(WorkerStatistics&)) {
    std::vector<WorkerStatistics> workers = Both(change);
    for (WorkerStatistics& worker : workers) worker.for_input = 0.9;
    return FindBottleneck(workers, Waiting());
  };
  const Bottleneck refused = of([](WorkerStatistics& w) { w.repeated = 0.4; });
  EXPECT_EQ(refused.limit, Limit::kStorage);
  EXPECT_THAT(refused.advice, HasSubstr("fewer --read-threads"));
  ASSERT_EQ(refused.figures.size(), 3);
  EXPECT_NEAR(refused.figures[2].value, 40, 0.01);
  EXPECT_EQ(of([](WorkerStatistics& w) { w.repeated = 0.02; }).advice,
            of([](WorkerStatistics&) {}).advice);
}

TEST(FindBottleneck, ATrainerThatTakesNothingIsNotAFastOne) {
  std::vector<ConsumerStatistics> stands = Waiting(0);
  EXPECT_THAT(FindBottleneck(Idle(), stands).advice, HasSubstr("step faster"));
  stands[0].rows_per_s = 0;
  const Bottleneck found = FindBottleneck(Idle(), stands);
  EXPECT_EQ(found.limit, Limit::kTrainer);
  EXPECT_THAT(found.summary, HasSubstr("takes no batches"));
  EXPECT_THAT(found.advice, Not(HasSubstr("faster")));
}

// Observed with two workers and a trainer that share two cores: rows also wait
// for the processor before they are sent.
TEST(FindBottleneck, StreamsThatSendForLessThanThreadsWorkAreNoSlowNetwork) {
  const auto of = [](double sending, double decoding, Limit before) {
    std::vector<WorkerStatistics> workers = Idle();
    for (WorkerStatistics& worker : workers) {
      worker.reading = 0;
      worker.decoding = decoding;
      worker.sending = sending;
      worker.for_output = 0.04;
    }
    return FindBottleneck(workers, Waiting(), nullptr, before).limit;
  };
  EXPECT_EQ(of(0.44, 0.6, Limit::kUnknown), Limit::kDecodeCpu);
  EXPECT_EQ(of(0.9, 0.6, Limit::kUnknown), Limit::kNetwork);
  EXPECT_EQ(of(0.62, 0.6, Limit::kDecodeCpu), Limit::kDecodeCpu);
  EXPECT_EQ(of(0.55, 0.6, Limit::kNetwork), Limit::kNetwork);
}

TEST(FindBottleneck, TheNetworkThatFinishedRowsWaitFor) {
  EXPECT_EQ(LimitOf(Both([](WorkerStatistics& w) {
                      w.decoding = 0.3;
                      w.for_output = 0.65;
                      w.sending = 0.95;
                    }),
                    Waiting()),
            Limit::kNetwork);
  // Rows that are sent while records are awaited are not a queue.
  EXPECT_EQ(LimitOf(Both([](WorkerStatistics& w) {
                      w.decoding = 0.2;
                      w.for_input = 0.7;
                      w.sending = 0.35;
                    }),
                    Waiting()),
            Limit::kStorage);
}

TEST(FindBottleneck, OneStragglerWhileTheOthersHaveTime) {
  std::vector<ConsumerStatistics> consumers = Waiting();
  consumers[0].waited_for_share = 0.95;
  std::vector<WorkerStatistics> workers = Idle();
  workers[0].rows_per_s = 300;
  const Bottleneck found = FindBottleneck(workers, consumers);
  EXPECT_EQ(found.limit, Limit::kStraggler);
  EXPECT_EQ(found.subject, "w0");
  EXPECT_THAT(found.advice, HasSubstr("leat drain w0"));
  // The worker no longer serves, and is still asked for rows.
  EXPECT_EQ(LimitOf({workers[1], workers[1]}, consumers), Limit::kStraggler);
  // It causes most waits because it delivers most rows.
  workers[0].rows_per_s = 30'000;
  EXPECT_THAT(LimitOf(workers, consumers), Not(Limit::kStraggler));
  // The other workers are busy, too: more workers are needed.
  workers = Both([](WorkerStatistics& w) { w.decoding = 0.95; });
  workers[0].rows_per_s = 300;
  EXPECT_EQ(LimitOf(workers, consumers), Limit::kDecodeCpu);
}

// A worker that is last by a little causes all waits, and the others could not
// do its part: two workers that decode a cold epoch.
TEST(FindBottleneck, NoStragglerWithoutWhichThereWouldBeLess) {
  std::vector<ConsumerStatistics> consumers = Waiting();
  consumers[0].waited_for_share = 0.95;
  std::vector<WorkerStatistics> workers = Idle();
  workers[0].decoding = 0.85;
  workers[1].decoding = 0.65;
  EXPECT_EQ(LimitOf(workers, consumers), Limit::kDecodeCpu);
  // Three other workers could.
  workers.resize(4, workers[1]);
  EXPECT_EQ(LimitOf(workers, consumers), Limit::kStraggler);
}

// Slow storage, a narrow network and busy GPUs of all workers: the one that is
// served last causes all waits, and the others have no time either.
TEST(FindBottleneck, NoStragglerWhereAllWaitForTheSame) {
  std::vector<ConsumerStatistics> consumers = Waiting(1);
  consumers[0].waited_for_share = 1;
  const auto of = [&](void (*change)(WorkerStatistics&)) {
    std::vector<WorkerStatistics> workers = Both(change);
    workers[0].rows_per_s = 300;
    return LimitOf(workers, consumers);
  };
  EXPECT_EQ(of([](WorkerStatistics& w) { w.for_input = 0.85; }),
            Limit::kStorage);
  EXPECT_EQ(of([](WorkerStatistics& w) { w.sending = 0.95; }), Limit::kNetwork);
  EXPECT_EQ(of([](WorkerStatistics& w) { w.device = 0.95; }),
            Limit::kDecodeGpu);
  // Only the others' rows wait to be sent, as on a host that is busy.
  std::vector<WorkerStatistics> workers = Idle();
  workers[0].rows_per_s = 300;
  workers[1].sending = 0.6;
  EXPECT_EQ(LimitOf(workers, consumers), Limit::kStraggler);
}

// Workers are idle, since nothing is requested of them.
TEST(FindBottleneck, TheScriptsOwnSourceThatIsMostlyWaitedFor) {
  std::vector<ConsumerStatistics> consumers = Waiting();
  consumers[0].for_source = 0.8;
  const Bottleneck found = FindBottleneck(Idle(), consumers);
  EXPECT_EQ(found.limit, Limit::kSource);
  EXPECT_EQ(found.subject, "c");
  EXPECT_EQ(found.figures[1].value, 80);
  consumers[0].for_source = 0.3;
  EXPECT_EQ(LimitOf(Idle(), consumers), Limit::kWindow);
  consumers[0].waiting = 0.01;
  consumers[0].for_source = 1;
  EXPECT_EQ(LimitOf(Idle(), consumers), Limit::kTrainer);
}

TEST(FindBottleneck, TheWindowWhileNobodyIsBusy) {
  const Bottleneck found = FindBottleneck(Idle(), Waiting());
  EXPECT_EQ(found.limit, Limit::kWindow);
  // A link that has little to spare looks the same.
  EXPECT_THAT(found.advice, HasSubstr("the network is the limit"));
}

// The sockets' buffers hold all rows of the window, so no group waits to be sent.
TEST(FindBottleneck, TheNetworkWhereAnswersWaitForEachOtherOnIt) {
  std::vector<ConsumerStatistics> consumers = Waiting();
  const auto of = [&](double queued, Limit before = Limit::kUnknown) {
    consumers[0].queued = queued;
    return FindBottleneck(Idle(), consumers, nullptr, before).limit;
  };
  EXPECT_EQ(of(0.9), Limit::kNetwork);
  EXPECT_EQ(of(0.3), Limit::kWindow);
  EXPECT_EQ(of(0.35, Limit::kNetwork), Limit::kNetwork);
  EXPECT_EQ(of(0.45, Limit::kWindow), Limit::kWindow);
  // Threads that work for other jobs are not its limit.
  const WorkerStatistics own{.decoding = 0.02};
  consumers[0].queued = 0.9;
  EXPECT_EQ(FindBottleneck(Both([](WorkerStatistics& w) { w.decoding = 0.9; }),
                           consumers, &own)
                .limit,
            Limit::kNetwork);
  // A stage that is busy is the limit, as late as its rows may be.
  EXPECT_EQ(
      LimitOf(Both([](WorkerStatistics& w) { w.decoding = 0.9; }), consumers),
      Limit::kDecodeCpu);
  // One link of all workers is not fair to them.
  std::vector<WorkerStatistics> workers = Idle();
  workers[0].rows_per_s = 300;
  consumers[0].waited_for_share = 0.95;
  consumers[0].others_queued = 0.9;
  EXPECT_EQ(LimitOf(workers, consumers), Limit::kNetwork);
  consumers[0].others_queued = 0.1;
  EXPECT_EQ(LimitOf(workers, consumers), Limit::kStraggler);
}

// The requested rows are not produced: a larger window would not help.
TEST(FindBottleneck, NotTheWindowWhileTheWorkersMakeNothing) {
  std::vector<ConsumerStatistics> consumers = Waiting(1);
  consumers[0].waited_for_share = 0.4;
  const Bottleneck found = FindBottleneck(
      Both([](WorkerStatistics& w) { w.rows_per_s = w.decoding = 0; }),
      consumers);
  EXPECT_EQ(found.limit, Limit::kUnknown);
  EXPECT_THAT(found.advice, HasSubstr("leat doctor"));
}

// Several workers as one: their means, and the sums of threads and rows.
TEST(FindBottleneck, AMeanOfSeveralWorkersCountsAsThem) {
  std::vector<WorkerStatistics> workers = Idle();
  workers[0].device = 0.1;
  workers[1].device = 0.9;
  workers[1].workers = 9;
  workers[1].threads = 72;
  EXPECT_EQ(LimitOf(workers, Waiting()), Limit::kDecodeGpu);
}

TEST(FindBottleneck, WhoeverOfTheConsumersWaitsMostCounts) {
  std::vector<ConsumerStatistics> consumers = {
      Waiting(0.01)[0], Waiting(0.5)[0], Waiting(0.02)[0]};
  consumers[1].name = "slow";
  const Bottleneck found = FindBottleneck(Idle(), consumers);
  EXPECT_EQ(found.limit, Limit::kWindow);
  EXPECT_EQ(found.subject, "slow");
}

TEST(FindBottleneck, WithoutWorkersOrConsumersItSaysSo) {
  EXPECT_EQ(LimitOf({}, Waiting()), Limit::kWorkers);
  EXPECT_EQ(LimitOf(Idle(), {}), Limit::kUnknown);
  EXPECT_EQ(LimitOf({}, {}), Limit::kUnknown);
}

// For any figures there is a verdict, with three figures and advice.
TEST(FindBottleneck, EveryVerdictHasThreeFiguresAndAnAdvice) {
  std::set<Limit> seen;
  for (int bits = 0; bits < 1 << 9; ++bits) {
    const auto high = [bits](int bit) { return (bits >> bit & 1) != 0; };
    std::vector<WorkerStatistics> workers = Idle();
    for (WorkerStatistics& worker : workers) {
      worker.decoding = high(0) ? 0.8 : 0.1;
      worker.reading = high(1) ? 0.9 : 0.01;
      worker.for_input = high(2) ? 0.8 : 0;
      worker.for_output = high(3) ? 0.8 : 0;
      worker.sending = high(4) ? 0.9 : 0;
      worker.device = high(5) ? (high(6) ? 0.95 : 0.1) : -1;
    }
    std::vector<ConsumerStatistics> consumers = Waiting(high(7) ? 0.4 : 0);
    consumers[0].waited_for_share = high(8) ? 0.9 : 0.5;
    const Bottleneck found = FindBottleneck(workers, consumers);
    seen.insert(found.limit);
    EXPECT_EQ(found.figures.size(), 3u) << bits;
    EXPECT_NE(found.summary, "") << bits;
    EXPECT_NE(found.advice, "") << bits;
    // A script has no flags of a private service.
    if (found.advice.find("leat-worker --") != std::string::npos)
      EXPECT_THAT(found.advice, HasSubstr("leat.connect(")) << bits;
  }
  EXPECT_EQ(seen.size(), 7u);
}

}  // namespace
}  // namespace leat

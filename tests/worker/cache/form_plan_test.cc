// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/form_plan.h"

#include "gtest/gtest.h"

namespace leat::worker {
namespace {

constexpr FormKinds kBoth = {.seek_index = true, .coefficients = true};
constexpr FormKinds kAllKinds = {
    .seek_index = true, .coefficients = true, .pixels = true};

FormDemand PhotoDemand() {
  return {.files = 1000,
          .decodes = 1000,
          .plain_ns = 1.0e6,
          .seek_index = {.bytes = 2000, .ns = 0.7e6},
          .coefficients = {.bytes = 202'000, .ns = 0.4e6},
          .pixels = {.bytes = 602'000, .ns = 0.1e6}};
}

FormShare PlanOne(const FormDemand& demand, FormKinds kinds, double room) {
  return PlanForms({&demand, 1}, kinds, room)[0];
}

TEST(FormPlan, SeekIndexesComeFirstAndCoefficientsHaveTheRest) {
  const FormShare share = PlanOne(PhotoDemand(), kBoth, 102e6);
  EXPECT_DOUBLE_EQ(share.any(), 1);
  EXPECT_DOUBLE_EQ(share.coefficients(), 0.5);
  const FormShare little = PlanOne(PhotoDemand(), kBoth, 0.5e6);
  EXPECT_DOUBLE_EQ(little.any(), 0.25);
  EXPECT_DOUBLE_EQ(little.coefficients(), 0);
  const FormShare all = PlanOne(PhotoDemand(), kBoth, 1e12);
  EXPECT_DOUBLE_EQ(all.any(), 1);
  EXPECT_DOUBLE_EQ(all.coefficients(), 1);
  EXPECT_DOUBLE_EQ(PlanOne(PhotoDemand(), kBoth, 0).any(), 0);
}

TEST(FormPlan, WhatMayNotBeKeptIsNotPlanned) {
  const FormShare seek = PlanOne(PhotoDemand(), {.seek_index = true}, 1e12);
  EXPECT_DOUBLE_EQ(seek.any(), 1);
  EXPECT_DOUBLE_EQ(seek.coefficients(), 0);
  const FormShare coefficients =
      PlanOne(PhotoDemand(), {.coefficients = true}, 101e6);
  EXPECT_DOUBLE_EQ(coefficients.any(), 0.5);
  EXPECT_DOUBLE_EQ(coefficients.coefficients(), 0.5);
  EXPECT_DOUBLE_EQ(PlanOne(PhotoDemand(), {}, 1e12).any(), 0);
}

TEST(FormPlan, PixelsComeLast) {
  const FormShare share = PlanOne(PhotoDemand(), kAllKinds, 502e6);
  EXPECT_DOUBLE_EQ(share.any(), 1);
  EXPECT_DOUBLE_EQ(share.coefficients(), 1);
  EXPECT_DOUBLE_EQ(share.pixels(), 0.75);
  EXPECT_DOUBLE_EQ(PlanOne(PhotoDemand(), kAllKinds, 102e6).pixels(), 0);
  EXPECT_DOUBLE_EQ(PlanOne(PhotoDemand(), kBoth, 1e12).pixels(), 0);
}

// Per byte they may save more than coefficients do, which are then never made.
TEST(FormPlan, PixelsMayComeInPlaceOfCoefficients) {
  FormDemand small = PhotoDemand();
  small.pixels.bytes = 302'000;
  const FormShare share = PlanOne(small, kAllKinds, 152e6);
  EXPECT_DOUBLE_EQ(share.any(), 1);
  EXPECT_DOUBLE_EQ(share.coefficients(), 0.5);
  EXPECT_DOUBLE_EQ(share.pixels(), 0.5);
}

// Whole images are decoded no faster by a seek index.
TEST(FormPlan, WhatSavesNothingIsNotPlanned) {
  FormDemand whole = PhotoDemand();
  whole.seek_index.ns = 1.1e6;
  const FormShare share = PlanOne(whole, kBoth, 101e6);
  EXPECT_DOUBLE_EQ(share.any(), 0.5);
  EXPECT_DOUBLE_EQ(share.coefficients(), 0.5);
  whole.coefficients.ns = 1.2e6;
  EXPECT_DOUBLE_EQ(PlanOne(whole, kBoth, 101e6).any(), 0);
  FormDemand slower = PhotoDemand();
  slower.coefficients.ns = 0.8e6;
  EXPECT_DOUBLE_EQ(PlanOne(slower, kBoth, 1e12).any(), 1);
  EXPECT_DOUBLE_EQ(PlanOne(slower, kBoth, 1e12).coefficients(), 0);
}

TEST(FormPlan, ASeekIndexThatIsWorthLessForEachByteIsLeftOut) {
  FormDemand small = PhotoDemand();
  small.seek_index.bytes = 150'000;
  const FormShare share = PlanOne(small, kBoth, 101e6);
  EXPECT_DOUBLE_EQ(share.any(), 0.5);
  EXPECT_DOUBLE_EQ(share.coefficients(), 0.5);
}

TEST(FormPlan, TheDatasetThatIsDecodedMoreOftenComesFirst) {
  FormDemand often = PhotoDemand();
  often.decodes = 3000;
  const FormDemand demands[] = {PhotoDemand(), often, FormDemand{}};
  const auto shares = PlanForms(demands, kBoth, 4e6 + 100e6);
  EXPECT_DOUBLE_EQ(shares[0].any(), 1);
  EXPECT_DOUBLE_EQ(shares[0].coefficients(), 0);
  EXPECT_DOUBLE_EQ(shares[1].any(), 1);
  EXPECT_DOUBLE_EQ(shares[1].coefficients(), 0.5);
  EXPECT_DOUBLE_EQ(shares[2].any(), 0);
}

TEST(FormPlan, WhatIsNotDecodedIsNotPlanned) {
  FormDemand idle = PhotoDemand();
  idle.decodes = 0;
  EXPECT_DOUBLE_EQ(PlanOne(idle, kBoth, 1e12).any(), 0);
}

}  // namespace
}  // namespace leat::worker

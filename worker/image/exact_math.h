// SPDX-License-Identifier: Apache-2.0
//
// exp, log and sin(πx) of +, -, ×, / alone: the C library's differ in the last
// bit between versions and between processors, ours never do. Errors are a few
// units in the last place, which matters to nobody.
#pragma once

namespace leat::worker {

// REQUIRES: |x| ≤ 60.
double ExactExp(double x);
// REQUIRES: 1e-18 ≤ x ≤ 1e9.
double ExactLog(double x);
// sin(πx). REQUIRES: |x| ≤ 1e6.
double ExactSinPi(double x);
// sin(πx) / (πx), and 1 at 0. REQUIRES: |x| ≤ 1e6.
double ExactSinc(double x);

}  // namespace leat::worker

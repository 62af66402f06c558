// SPDX-License-Identifier: Apache-2.0
//
// The linear maps of RGB that change hue and saturation.
#pragma once

#include "worker/image/formulas/color.h"

namespace leat::worker {

// Returns factor · YIQ→RGB · R(hue) · diag(1, saturation, saturation) ·
// RGB→YIQ, plus `constant`, as in color.h; hue is in degrees. The matrix is
// exactly the factor if hue and saturation change nothing. REQUIRES: |hue| ≤
// 1e6.
ColorMatrix TwistMatrix(double hue, double saturation, double factor,
                        double constant);

}  // namespace leat::worker

// SPDX-License-Identifier: Apache-2.0
//
// The linear maps of RGB by which hue and saturation are changed.
#pragma once

#include "worker/image/formulas/color.h"

namespace leat::worker {

// factor · YIQ→RGB · R(hue) · diag(1, saturation, saturation) · RGB→YIQ, plus
// `constant`, as color.h has it; hue in degrees. Exactly the factor, if hue and
// saturation change nothing. REQUIRES: |hue| ≤ 1e6.
ColorMatrix TwistMatrix(double hue, double saturation, double factor,
                        double constant);

}  // namespace leat::worker

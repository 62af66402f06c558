// SPDX-License-Identifier: Apache-2.0
//
// libleat.so contains the whole client library; this file only gives the target
// a source.
#include "client/leat/leat.h"

static_assert(LEAT_ABI_VERSION == 5);

// SPDX-License-Identifier: Apache-2.0
//
// The fake libnvcuvid: that it can be loaded is all that is asked of it.
extern "C" int cuvidGetDecoderCaps(void*) { return 0; }

// SPDX-License-Identifier: Apache-2.0
//
// The fake libnvcuvid: it only has to be loadable.
extern "C" int cuvidGetDecoderCaps(void*) { return 0; }

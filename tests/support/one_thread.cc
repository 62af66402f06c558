// SPDX-License-Identifier: Apache-2.0
//
// Linked into tests of ONE_THREAD (leat_test in the root's CMakeLists.txt),
// which ThreadSanitizer does not run. Ends the process when a thread is
// started, so that a test that needs ThreadSanitizer cannot be marked so.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

extern "C" int pthread_create(pthread_t*, const pthread_attr_t*,
                              void* (*)(void*), void*) noexcept {
  std::fputs("a test of ONE_THREAD starts a thread: take the word away\n",
             stderr);
  std::abort();
}

// SPDX-License-Identifier: Apache-2.0
//
// Freed is the deleter of objects that a C library frees by a function.
//
//     using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
#pragma once

namespace leat {

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

}  // namespace leat

// SPDX-License-Identifier: Apache-2.0
//
// DeviceAddress: the address of a byte in a device's memory. The host does not
// dereference it. Kernels read addresses as the plain numbers that number()
// returns.
#pragma once

#include <cstdint>

namespace leat::worker {

class DeviceAddress {
 public:
  constexpr DeviceAddress() = default;  // no address
  constexpr explicit DeviceAddress(uint64_t number) : number_(number) {}
  // Returns the address of memory that has the same address on the device and
  // on the host.
  static DeviceAddress Of(const void* memory) {
    return DeviceAddress(reinterpret_cast<uintptr_t>(memory));
  }

  constexpr uint64_t number() const { return number_; }
  constexpr explicit operator bool() const { return number_ != 0; }

  constexpr DeviceAddress& operator+=(uint64_t bytes) {
    number_ += bytes;
    return *this;
  }
  friend constexpr DeviceAddress operator+(DeviceAddress address,
                                           uint64_t bytes) {
    return address += bytes;
  }
  friend constexpr uint64_t operator-(DeviceAddress a, DeviceAddress b) {
    return a.number_ - b.number_;
  }
  friend constexpr bool operator==(DeviceAddress, DeviceAddress) = default;

 private:
  uint64_t number_ = 0;
};

}  // namespace leat::worker

// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "call_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "host.h"

namespace mig::conformance {
namespace {

constexpr uint8_t kPattern = 0xa5;

struct Name {
  int32_t status;
  const char* text;
};

constexpr Name kNames[] = {
    {MIG_OK, "MIG_OK"},
    {MIG_AGAIN, "MIG_AGAIN"},
    {MIG_BUSY, "MIG_BUSY"},
    {MIG_E_ARGUMENT, "MIG_E_ARGUMENT"},
    {MIG_E_STRUCT_SIZE, "MIG_E_STRUCT_SIZE"},
    {MIG_E_RANGE, "MIG_E_RANGE"},
    {MIG_E_OPTION, "MIG_E_OPTION"},
    {MIG_E_URI, "MIG_E_URI"},
    {MIG_E_BLOCK, "MIG_E_BLOCK"},
    {MIG_E_STATE, "MIG_E_STATE"},
    {MIG_E_UNSUPPORTED, "MIG_E_UNSUPPORTED"},
    {MIG_E_VERSION, "MIG_E_VERSION"},
    {MIG_E_STRICT, "MIG_E_STRICT"},
    {MIG_E_PEER_UNREACHABLE, "MIG_E_PEER_UNREACHABLE"},
    {MIG_E_PEER_LOST, "MIG_E_PEER_LOST"},
    {MIG_E_PEER_TIMEOUT, "MIG_E_PEER_TIMEOUT"},
    {MIG_E_PEER_CLOSED, "MIG_E_PEER_CLOSED"},
    {MIG_E_PEER_CANCELLED, "MIG_E_PEER_CANCELLED"},
    {MIG_E_PEER_FAILED, "MIG_E_PEER_FAILED"},
    {MIG_E_PEER_MISMATCH, "MIG_E_PEER_MISMATCH"},
    {MIG_E_PEER_PROTOCOL, "MIG_E_PEER_PROTOCOL"},
    {MIG_E_PEER_AUTH, "MIG_E_PEER_AUTH"},
    {MIG_E_CANCELLED, "MIG_E_CANCELLED"},
    {MIG_E_FAILED, "MIG_E_FAILED"},
    {MIG_E_DEVICE, "MIG_E_DEVICE"},
    {MIG_E_DEVICE_REMOVED, "MIG_E_DEVICE_REMOVED"},
    {MIG_E_MEMORY, "MIG_E_MEMORY"},
    {MIG_E_LIMIT, "MIG_E_LIMIT"},
    {MIG_E_ADDRESS, "MIG_E_ADDRESS"},
    {MIG_E_PERMISSION, "MIG_E_PERMISSION"},
    {MIG_E_GUEST_MEMORY, "MIG_E_GUEST_MEMORY"},
    {MIG_E_INTERNAL, "MIG_E_INTERNAL"},
};

void CheckDuration(const char* name, std::chrono::milliseconds limit,
                   uint64_t start) {
  const std::chrono::nanoseconds took(RealNow() - start);
  if (took > limit) {
    ADD_FAILURE() << "rule 3: " << name << " took " << took.count() / 1'000'000
                  << " ms; it must not wait";
  }
}

}  // namespace

std::string StatusName(int32_t status) {
  const auto* const found = std::find_if(
      std::begin(kNames), std::end(kNames),
      [status](const Name& name) { return name.status == status; });
  return found == std::end(kNames) ? std::to_string(status) : found->text;
}

ErrorBox::ErrorBox(uint32_t size) {
  memset(&box_, kPattern, sizeof(box_));
  box_.error.size = size;
  before_ = box_;
}

bool ErrorBox::untouched() const {
  return memcmp(&box_, &before_, sizeof(box_)) == 0;
}

bool ErrorBox::overrun() const {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&box_);
  // The size itself is the caller's, however small it says to be.
  return std::any_of(
      bytes + std::clamp<size_t>(before_.error.size, 4, sizeof(box_)),
      bytes + sizeof(box_), [](uint8_t byte) { return byte != kPattern; });
}

CallError ErrorBox::error() const {
  const auto& text = box_.error.message;
  return CallError{box_.error.code, box_.error.system_errno,
                   std::string(text, strnlen(text, sizeof(text)))};
}

void CheckErrorForm(const char* name, int32_t code, const mig_error& error) {
  EXPECT_EQ(error.code, code)
      << "rule 5: " << name << " answers one code and fills in another";
  const size_t length = strnlen(error.message, sizeof(error.message));
  const std::string message(error.message, length);
  EXPECT_LT(length, sizeof(error.message))
      << "rule 5: " << name << " answers a message without a NUL";
  EXPECT_GT(length, 0U) << "rule 5: " << name << " answers " << StatusName(code)
                        << " without a message";
  EXPECT_EQ(message.find('\n'), std::string::npos)
      << "rule 5: " << name << " answers more than a line: " << message;
}

int32_t CheckedCall(const char* name, std::chrono::milliseconds limit,
                    const std::function<int32_t(mig_error*)>& call,
                    CallError* error) {
  ErrorBox box;
  const uint64_t start = RealNow();
  const int32_t status = call(box.get());
  CheckDuration(name, limit, start);
  *error = CallError();
  EXPECT_FALSE(box.overrun()) << name << " wrote past the end of its error";
  if (status >= 0) {
    EXPECT_TRUE(box.untouched())
        << "rule 5: " << name << " succeeded and touched the error";
    return status;
  }
  CheckErrorForm(name, status, *box.get());
  *error = box.error();
  return status;
}

void TimedCall(const char* name, std::chrono::milliseconds limit,
               const std::function<void()>& call) {
  const uint64_t start = RealNow();
  call();
  CheckDuration(name, limit, start);
}

}  // namespace mig::conformance

// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What holds for every call, whatever it does: it does not wait (rule 3), and
// its error is filled as rule 5 says. So each call of each test checks them.
#ifndef TESTS_CONFORMANCE_CALL_CHECK_H_
#define TESTS_CONFORMANCE_CALL_CHECK_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "mig_transport.h"

namespace mig::conformance {

// Why a call failed; code MIG_OK and an empty message if it did not.
struct CallError {
  int32_t code = MIG_OK;
  int32_t system_errno = 0;
  std::string message;
};

// A mig_error with a pattern in it and around it, so that a write where none
// is due shows.
class ErrorBox {
 public:
  explicit ErrorBox(uint32_t size = sizeof(mig_error));
  mig_error* get() { return &box_.error; }
  bool untouched() const;
  // Whether nothing at or past `size` was written.
  bool overrun() const;
  CallError error() const;

 private:
  struct Box {
    mig_error error;
    uint8_t guard[128];
  };
  Box box_;
  Box before_;
};

// Runs `call` with an error to fill, fails the test if it took longer than
// `limit` or if the error does not fit the answer, and copies the error.
int32_t CheckedCall(const char* name, std::chrono::milliseconds limit,
                    const std::function<int32_t(mig_error*)>& call,
                    CallError* error);

// The same for a call without an answer.
void TimedCall(const char* name, std::chrono::milliseconds limit,
               const std::function<void()>& call);

// Fails the test if this is no error as rule 5 describes it.
void CheckErrorForm(const char* name, int32_t code, const mig_error& error);

// "MIG_E_STATE", or the number.
std::string StatusName(int32_t status);

}  // namespace mig::conformance

#endif  // TESTS_CONFORMANCE_CALL_CHECK_H_

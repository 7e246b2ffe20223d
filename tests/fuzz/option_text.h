// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A plugin's options, set through its ABI to whatever text.
#ifndef TESTS_FUZZ_OPTION_TEXT_H_
#define TESTS_FUZZ_OPTION_TEXT_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "check.h"
#include "mig_transport.h"

// Exported by the plugin that this is linked with.
extern "C" int32_t mig_transport_query(uint32_t host_abi_min,
                                       uint32_t host_abi_max,
                                       const struct mig_transport_ops** ops,
                                       struct mig_error* error);

namespace mig::fuzz {

// Ends where a C string does.
inline std::string Text(std::span<const uint8_t> bytes) {
  return {bytes.begin(), std::find(bytes.begin(), bytes.end(), 0)};
}

// The first byte is the option, the rest its value. What is taken must be
// given back as it was, and be taken again.
inline void FuzzOption(std::span<const uint8_t> input) {
  if (input.empty()) return;
  struct mig_error error = {};
  error.size = sizeof(error);
  const struct mig_transport_ops* ops = nullptr;
  FUZZ_CHECK(mig_transport_query(MIG_ABI_VERSION, MIG_ABI_VERSION, &ops,
                                 &error) == MIG_OK);
  struct mig_host_services services = {};
  services.size = sizeof(services);
  struct mig_context* context = nullptr;
  FUZZ_CHECK(ops->context_create(&services, &context, &error) == MIG_OK);
  // One past the end: a name that there is not.
  const size_t choice = input[0] % (ops->option_count + 1u);
  const struct mig_option* const option =
      choice < ops->option_count ? &ops->options[choice] : nullptr;
  const char* const name = option == nullptr ? "no-such" : option->name;
  const std::string value = Text(input.subspan(1));
  const int32_t answer = ops->option_set(context, name, value.c_str(), &error);
  FUZZ_CHECK(answer == MIG_OK || error.message[0] != 0);
  FUZZ_CHECK(answer != MIG_OK || option != nullptr);
  if (answer == MIG_OK && (option->flags & MIG_OPTION_SECRET) == 0) {
    std::array<char, 8192> got;
    size_t needed = 0;
    FUZZ_CHECK(ops->option_get(context, name, got.data(), got.size(), &needed,
                               &error) == MIG_OK);
    if (needed <= got.size()) {
      FUZZ_CHECK(std::string(got.data()) == value.c_str());
      FUZZ_CHECK(ops->option_set(context, name, got.data(), &error) == MIG_OK);
    }
  }
  ops->context_destroy(context);
}

}  // namespace mig::fuzz

#endif  // TESTS_FUZZ_OPTION_TEXT_H_

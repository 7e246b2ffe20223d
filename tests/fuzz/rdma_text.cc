// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What a user writes for the RDMA plugin: URIs, options, soft devices.
#include <array>
#include <span>

#include "option_text.h"
#include "rdma/opener.h"
#include "soft-verbs/config.h"

namespace mig::rdma {
namespace {

void FuzzUri(std::span<const uint8_t> input) {
  const auto uri = ParseUri(fuzz::Text(input));
  if (!uri.ok()) {
    FUZZ_CHECK(!uri.status().message().empty());
    return;
  }
  FUZZ_CHECK(!uri->port.empty() && uri->port.size() <= 5);
}

void FuzzSoftConfig(std::span<const uint8_t> input) {
  const std::string text = fuzz::Text(input);
  // A file's name, which could be any here.
  if (text.find("faults=@") != std::string::npos) return;
  const auto config = soft::ParseConfig(text);
  if (!config.ok()) return;
  FUZZ_CHECK(config->model != nullptr);
  FUZZ_CHECK(config->devices >= 1);
}

}  // namespace
}  // namespace mig::rdma

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr std::array kParsers = {
      mig::rdma::FuzzUri, mig::rdma::FuzzSoftConfig, mig::fuzz::FuzzOption};
  mig::fuzz::Dispatch(kParsers, data, size);
  return 0;
}

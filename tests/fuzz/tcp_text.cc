// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What a user writes for the TCP plugin: URIs, options, simulated networks.
#include <array>
#include <span>

#include "option_text.h"
#include "tcp/sim_config.h"
#include "tcp/uri.h"

namespace mig::tcp {
namespace {

void FuzzUri(std::span<const uint8_t> input) {
  const auto uri = ParseUri(fuzz::Text(input));
  if (!uri.ok()) {
    FUZZ_CHECK(!uri.status().message().empty());
    return;
  }
  switch (uri->kind) {
    case Uri::Kind::kTcp:
      FUZZ_CHECK(!uri->port.empty() && uri->port.size() <= 5);
      break;
    case Uri::Kind::kUnix:
      FUZZ_CHECK(!uri->path.empty());
      FUZZ_CHECK(uri->path.find('\0') == std::string::npos);
      break;
    case Uri::Kind::kFd:
      FUZZ_CHECK(uri->fd >= 0);
  }
}

void FuzzSimConfig(std::span<const uint8_t> input) {
  const auto config = ParseSimConfig(fuzz::Text(input));
  if (config.ok()) FUZZ_CHECK(!config->name.empty());
}

}  // namespace
}  // namespace mig::tcp

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static constexpr std::array kParsers = {
      mig::tcp::FuzzUri, mig::tcp::FuzzSimConfig, mig::fuzz::FuzzOption};
  mig::fuzz::Dispatch(kParsers, data, size);
  return 0;
}

// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/hello_mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <vector>

#include "common/error.h"
#include "mig_transport.h"

namespace mig {

absl::StatusOr<std::array<uint8_t, kMacSize>> HelloMac(
    absl::string_view key, absl::string_view label,
    std::span<const uint8_t> connecting_hello,
    std::span<const uint8_t> listening_hello) {
  if (key.empty()) key = "migtransport";
  std::vector<uint8_t> text(label.begin(), label.end());
  text.insert(text.end(), connecting_hello.begin(), connecting_hello.end());
  text.insert(text.end(), listening_hello.begin(), listening_hello.end());
  std::array<uint8_t, kMacSize> mac;
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), text.data(),
           text.size(), mac.data(), &size) == nullptr ||
      size != mac.size()) {
    return MakeError(MIG_E_INTERNAL, "libcrypto can't compute HMAC-SHA256");
  }
  return mac;
}

bool SameMac(std::span<const uint8_t> a, std::span<const uint8_t> b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace mig

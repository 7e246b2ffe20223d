// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/hello_mac.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/escaping.h"

namespace mig {
namespace {

TEST(HelloMacTest, EveryByteOfKeyLabelAndHellosCounts) {
  const std::vector<uint8_t> a = {1, 2, 3}, b = {4, 5};
  const auto mac = *HelloMac("key", "label", a, b);
  EXPECT_EQ(*HelloMac("key", "label", a, b), mac);
  EXPECT_NE(*HelloMac("kez", "label", a, b), mac);
  EXPECT_NE(*HelloMac("", "label", a, b), mac);
  EXPECT_NE(*HelloMac("key", "labem", a, b), mac);
  EXPECT_NE(*HelloMac("key", "label", b, a), mac);
  // HMAC-SHA256("key", "label" 01 02 03 04 05), computed by another program.
  EXPECT_EQ(absl::BytesToHexString(std::string(mac.begin(), mac.end())),
            "b024c366c1ce267458e991a5fbf88d128e5445ba8a52f0bf195f74866ca6f1dc");
}

TEST(HelloMacTest, SameIsTheWholeOfIt) {
  const std::vector<uint8_t> mac = {1, 2, 3}, other = {1, 2, 4};
  EXPECT_TRUE(SameMac(mac, mac));
  EXPECT_FALSE(SameMac(mac, other));
  EXPECT_FALSE(SameMac(mac, std::span(mac).first(2)));
  EXPECT_FALSE(SameMac({}, mac));
}

}  // namespace
}  // namespace mig

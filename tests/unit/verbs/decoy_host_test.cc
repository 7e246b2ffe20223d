// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A host that exports functions named as those of rdma-core, of its own or
// from another version of it (C21).
#include <cerrno>

#include "gtest/gtest.h"
#include "verbs/real_verbs.h"

namespace {
int decoys_called = 0;
}  // namespace

extern "C" {
// NOLINTBEGIN(misc-unused-parameters)
__attribute__((visibility("default"))) ibv_device** ibv_get_device_list(int*) {
  ++decoys_called;
  errno = ENOSYS;
  return nullptr;
}
__attribute__((visibility("default"))) ibv_context* ibv_open_device(
    ibv_device*) {
  ++decoys_called;
  return nullptr;
}
__attribute__((visibility("default"))) rdma_event_channel*
rdma_create_event_channel() {
  ++decoys_called;
  return nullptr;
}
// NOLINTEND(misc-unused-parameters)
}

namespace mig::verbs {
namespace {

TEST(DecoyHost, C21CallsReachRdmaCoreAndNotTheHost) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers rule RTLD_DEEPBIND out";
#endif
  const auto verbs = RealVerbs();
  if (!verbs.ok()) GTEST_SKIP() << verbs.status();
  int count = -1;
  ibv_device** const list = (*verbs)->GetDeviceList(&count);
  if (list != nullptr) (*verbs)->FreeDeviceList(list);
  EXPECT_EQ(decoys_called, 0);
  // librdmacm lists the devices itself.
  rdma_event_channel* const channel = (*verbs)->CmCreateEventChannel();
  if (channel != nullptr) (*verbs)->CmDestroyEventChannel(channel);
  EXPECT_EQ(decoys_called, 0);
}

}  // namespace
}  // namespace mig::verbs

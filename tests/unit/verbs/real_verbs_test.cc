// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "verbs/real_verbs.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig::verbs {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(RealVerbs, SaysWhichLibraryIsMissingAndWhatToInstall) {
  const auto opened = OpenLibraries({"libmig-no-ibverbs.so.1", FAKE_RDMA_CORE});
  EXPECT_EQ(ErrorCode(opened.status()), MIG_E_DEVICE);
  EXPECT_THAT(std::string(opened.status().message()),
              testing::AllOf(HasSubstr("libmig-no-ibverbs.so.1"),
                             HasSubstr("install libibverbs1")));
  const auto cm = OpenLibraries({FAKE_RDMA_CORE, "libmig-no-rdmacm.so.1"});
  EXPECT_THAT(std::string(cm.status().message()),
              testing::AllOf(HasSubstr("libmig-no-rdmacm.so.1"),
                             HasSubstr("install librdmacm1")));
}

TEST(RealVerbs, SaysWhichSymbolIsMissing) {
  const auto opened = OpenLibraries({"libm.so.6", FAKE_RDMA_CORE});
  EXPECT_EQ(ErrorCode(opened.status()), MIG_E_DEVICE);
  EXPECT_THAT(std::string(opened.status().message()),
              HasSubstr("libm.so.6 has no ibv_get_device_list@IBVERBS_1.1"));
}

// The seam on the fake library, and what was called there last.
class RealVerbsOnFake : public ::testing::Test {
 protected:
  explicit RealVerbsOnFake(const char* file = FAKE_RDMA_CORE) {
    auto opened = OpenLibraries({file, file});
    EXPECT_TRUE(opened.ok()) << opened.status();
    verbs_ = *std::move(opened);
    void* const handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    called_ = reinterpret_cast<const char* (*)()>(dlsym(handle, "fake_called"));
    third_ =
        reinterpret_cast<uint64_t (*)()>(dlsym(handle, "fake_third_argument"));
  }
  std::unique_ptr<Verbs> verbs_;
  const char* (*called_)() = nullptr;
  uint64_t (*third_)() = nullptr;
};

TEST_F(RealVerbsOnFake, EachFunctionCallsItsNamesake) {
  Verbs& v = *verbs_;
  // A table that offers nothing of its own: the symbols are what is left.
  ibv_context context = {};
  ibv_port_attr port = {};
  const std::vector<std::pair<const char*, std::function<void()>>> calls = {
      {"ibv_get_device_list", [&] { v.GetDeviceList(nullptr); }},
      {"ibv_free_device_list", [&] { v.FreeDeviceList(nullptr); }},
      {"ibv_get_device_name", [&] { v.GetDeviceName(nullptr); }},
      {"ibv_open_device", [&] { v.OpenDevice(nullptr); }},
      {"ibv_close_device", [&] { v.CloseDevice(nullptr); }},
      {"ibv_query_device", [&] { v.QueryDevice(nullptr, nullptr); }},
      {"ibv_query_port", [&] { v.QueryPort(&context, 1, &port); }},
      {"ibv_query_gid", [&] { v.QueryGid(nullptr, 1, 0, nullptr); }},
      {"_ibv_query_gid_ex", [&] { v.QueryGidEx(nullptr, 1, 0, nullptr); }},
      {"ibv_get_async_event", [&] { v.GetAsyncEvent(nullptr, nullptr); }},
      {"ibv_ack_async_event", [&] { v.AckAsyncEvent(nullptr); }},
      {"ibv_event_type_str", [&] { v.EventTypeText(IBV_EVENT_CQ_ERR); }},
      {"ibv_wc_status_str", [&] { v.WcStatusText(IBV_WC_SUCCESS); }},
      {"ibv_alloc_pd", [&] { v.AllocPd(nullptr); }},
      {"ibv_dealloc_pd", [&] { v.DeallocPd(nullptr); }},
      {"ibv_reg_mr", [&] { v.RegMr(nullptr, nullptr, 1, 1); }},
      {"ibv_dereg_mr", [&] { v.DeregMr(nullptr); }},
      {"ibv_create_comp_channel", [&] { v.CreateCompChannel(nullptr); }},
      {"ibv_destroy_comp_channel", [&] { v.DestroyCompChannel(nullptr); }},
      {"ibv_create_cq", [&] { v.CreateCq(nullptr, 1, nullptr, nullptr, 0); }},
      {"ibv_destroy_cq", [&] { v.DestroyCq(nullptr); }},
      {"ibv_get_cq_event", [&] { v.GetCqEvent(nullptr, nullptr, nullptr); }},
      {"ibv_ack_cq_events", [&] { v.AckCqEvents(nullptr, 1); }},
      {"ibv_create_qp", [&] { v.CreateQp(nullptr, nullptr); }},
      {"ibv_modify_qp", [&] { v.ModifyQp(nullptr, nullptr, 0); }},
      {"ibv_query_qp", [&] { v.QueryQp(nullptr, nullptr, 0, nullptr); }},
      {"ibv_destroy_qp", [&] { v.DestroyQp(nullptr); }},
      {"rdma_create_event_channel", [&] { v.CmCreateEventChannel(); }},
      {"rdma_destroy_event_channel", [&] { v.CmDestroyEventChannel(nullptr); }},
      {"rdma_get_cm_event", [&] { v.CmGetEvent(nullptr, nullptr); }},
      {"rdma_ack_cm_event", [&] { v.CmAckEvent(nullptr); }},
      {"rdma_event_str", [&] { v.CmEventText(RDMA_CM_EVENT_REJECTED); }},
      {"rdma_create_id",
       [&] { v.CmCreateId(nullptr, nullptr, nullptr, RDMA_PS_TCP); }},
      {"rdma_destroy_id", [&] { v.CmDestroyId(nullptr); }},
      {"rdma_bind_addr", [&] { v.CmBindAddr(nullptr, nullptr); }},
      {"rdma_resolve_addr",
       [&] { v.CmResolveAddr(nullptr, nullptr, nullptr, 1); }},
      {"rdma_resolve_route", [&] { v.CmResolveRoute(nullptr, 1); }},
      {"rdma_listen", [&] { v.CmListen(nullptr, 1); }},
      {"rdma_connect", [&] { v.CmConnect(nullptr, nullptr); }},
      {"rdma_accept", [&] { v.CmAccept(nullptr, nullptr); }},
      {"rdma_reject", [&] { v.CmReject(nullptr, nullptr, 0); }},
      {"rdma_disconnect", [&] { v.CmDisconnect(nullptr); }},
      {"rdma_set_option", [&] { v.CmSetOption(nullptr, 0, 0, nullptr, 0); }},
      {"rdma_create_qp", [&] { v.CmCreateQp(nullptr, nullptr, nullptr); }},
      {"rdma_create_qp_ex", [&] { v.CmCreateQpEx(nullptr, nullptr); }},
      {"rdma_destroy_qp", [&] { v.CmDestroyQp(nullptr); }},
      {"rdma_init_qp_attr", [&] { v.CmInitQpAttr(nullptr, nullptr, nullptr); }},
      {"rdma_establish", [&] { v.CmEstablish(nullptr); }},
  };
  for (const auto& [name, call] : calls) {
    call();
    EXPECT_STREQ(called_(), name);
  }
}

TEST_F(RealVerbsOnFake, OptionalAccessFlagsTakeTheCallThatKnowsThem) {
  verbs_->RegMr(nullptr, nullptr, 1,
                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
  EXPECT_STREQ(called_(), "ibv_reg_mr_iova2");
}

class RealVerbsOnOldFake : public RealVerbsOnFake {
 protected:
  RealVerbsOnOldFake() : RealVerbsOnFake(FAKE_OLD_RDMA_CORE) {}
};

TEST_F(RealVerbsOnOldFake, OptionalAccessFlagsAreLeftOutWhereNobodyKnowsThem) {
  verbs_->RegMr(nullptr, nullptr, 1,
                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
  EXPECT_STREQ(called_(), "ibv_reg_mr");
  EXPECT_EQ(third_(), uint64_t{IBV_ACCESS_LOCAL_WRITE});
}

TEST_F(RealVerbsOnOldFake, WhatIsMissingAndOptionalSaysThatItIsNotThere) {
  ibv_gid_entry entry = {};
  EXPECT_EQ(verbs_->QueryGidEx(nullptr, 1, 0, &entry), EOPNOTSUPP);
  errno = 0;
  EXPECT_EQ(verbs_->CmInitQpAttr(nullptr, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  errno = 0;
  EXPECT_EQ(verbs_->CmEstablish(nullptr), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

// A provider's context, with a table as long as it says.
verbs_context ContextOf(size_t size) {
  verbs_context extended = {};
  extended.sz = size;
  extended.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  return extended;
}

TEST_F(RealVerbsOnFake, ExtendedCallsGoToTheProvider) {
  verbs_context extended = ContextOf(sizeof(verbs_context));
  extended.query_port = [](ibv_context*, uint8_t port, ibv_port_attr* attr,
                           size_t size) {
    attr->lid = port;
    return size == sizeof(ibv_port_attr) ? 0 : EINVAL;
  };
  extended.query_device_ex = [](ibv_context*, const ibv_query_device_ex_input*,
                                ibv_device_attr_ex* attr, size_t size) {
    attr->orig_attr.max_qp = 7;
    return size == sizeof(ibv_device_attr_ex) ? 0 : EINVAL;
  };
  static ibv_qp made;
  extended.create_qp_ex = [](ibv_context*, ibv_qp_init_attr_ex*) {
    return &made;
  };
  verbs_->DeallocPd(nullptr);
  ibv_port_attr port = {};
  EXPECT_EQ(verbs_->QueryPort(&extended.context, 3, &port), 0);
  EXPECT_EQ(port.lid, 3);
  ibv_device_attr_ex device = {};
  EXPECT_EQ(verbs_->QueryDeviceEx(&extended.context, &device), 0);
  EXPECT_EQ(device.orig_attr.max_qp, 7);
  ibv_qp_init_attr_ex attr = {};
  EXPECT_EQ(verbs_->CreateQpEx(&extended.context, &attr), &made);
  EXPECT_STREQ(called_(), "ibv_dealloc_pd") << "a symbol of the library";
}

// An older provider's table ends before the entry: what lies there is not one.
TEST_F(RealVerbsOnFake, EntriesBeyondAProvidersTableAreNotCalled) {
  verbs_context extended = ContextOf(sizeof(ibv_context));
  std::memset(&extended.query_device_ex, 0xee, sizeof(void*));
  std::memset(&extended.query_port, 0xee, sizeof(void*));
  std::memset(&extended.create_qp_ex, 0xee, sizeof(void*));
  ibv_device_attr_ex device = {};
  EXPECT_EQ(verbs_->QueryDeviceEx(&extended.context, &device), EOPNOTSUPP);
  ibv_port_attr port = {};
  verbs_->QueryPort(&extended.context, 1, &port);
  EXPECT_STREQ(called_(), "ibv_query_port");
  ibv_qp_init_attr_ex attr = {};
  errno = 0;
  EXPECT_EQ(verbs_->CreateQpEx(&extended.context, &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST(RealVerbs, OpensWhatIsInstalledOnce) {
  const auto first = RealVerbs();
  if (!first.ok()) GTEST_SKIP() << first.status();
  EXPECT_THAT((*first)->Name(), StartsWith("rdma-core"));
  EXPECT_EQ(*first, *RealVerbs());
  int count = 0;
  ibv_device** const list = (*first)->GetDeviceList(&count);
  if (list != nullptr) (*first)->FreeDeviceList(list);
  EXPECT_GE(count, 0);
}

}  // namespace
}  // namespace mig::verbs

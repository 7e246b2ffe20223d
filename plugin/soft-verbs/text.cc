// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/text.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"

namespace mig::soft {
namespace {

struct StatusName {
  ibv_wc_status status;
  const char* name;
  const char* text;
};

constexpr StatusName kStatuses[] = {
    {IBV_WC_SUCCESS, "SUCCESS", "success"},
    {IBV_WC_LOC_LEN_ERR, "LOC_LEN_ERR", "local length error"},
    {IBV_WC_LOC_QP_OP_ERR, "LOC_QP_OP_ERR", "local QP operation error"},
    {IBV_WC_LOC_PROT_ERR, "LOC_PROT_ERR", "local protection error"},
    {IBV_WC_WR_FLUSH_ERR, "WR_FLUSH_ERR", "flushed: the QP is in error"},
    {IBV_WC_BAD_RESP_ERR, "BAD_RESP_ERR", "bad response"},
    {IBV_WC_LOC_ACCESS_ERR, "LOC_ACCESS_ERR", "local access error"},
    {IBV_WC_REM_INV_REQ_ERR, "REM_INV_REQ_ERR", "remote: invalid request"},
    {IBV_WC_REM_ACCESS_ERR, "REM_ACCESS_ERR", "remote access error"},
    {IBV_WC_REM_OP_ERR, "REM_OP_ERR", "remote operation error"},
    {IBV_WC_RETRY_EXC_ERR, "RETRY_EXC_ERR", "no answer: retries exceeded"},
    {IBV_WC_RNR_RETRY_EXC_ERR, "RNR_RETRY_EXC_ERR",
     "receiver not ready: retries exceeded"},
    {IBV_WC_REM_ABORT_ERR, "REM_ABORT_ERR", "remote abort"},
    {IBV_WC_FATAL_ERR, "FATAL_ERR", "fatal error"},
    {IBV_WC_RESP_TIMEOUT_ERR, "RESP_TIMEOUT_ERR", "response timeout"},
    {IBV_WC_GENERAL_ERR, "GENERAL_ERR", "general error"},
};

struct ErrnoName {
  int error;
  const char* name;
};

#define MIG_ERRNO(name) \
  { name, #name }
constexpr ErrnoName kErrnos[] = {
    MIG_ERRNO(EPERM),        MIG_ERRNO(ENOENT),     MIG_ERRNO(EINTR),
    MIG_ERRNO(EIO),          MIG_ERRNO(EAGAIN),     MIG_ERRNO(ENOMEM),
    MIG_ERRNO(EACCES),       MIG_ERRNO(EFAULT),     MIG_ERRNO(EBUSY),
    MIG_ERRNO(ENODEV),       MIG_ERRNO(EINVAL),     MIG_ERRNO(EMFILE),
    MIG_ERRNO(ENOSPC),       MIG_ERRNO(ENOSYS),     MIG_ERRNO(EPROTO),
    MIG_ERRNO(EOPNOTSUPP),   MIG_ERRNO(EADDRINUSE), MIG_ERRNO(EADDRNOTAVAIL),
    MIG_ERRNO(ENETUNREACH),  MIG_ERRNO(ETIMEDOUT),  MIG_ERRNO(ECONNREFUSED),
    MIG_ERRNO(EHOSTUNREACH), MIG_ERRNO(ENOTCONN),   MIG_ERRNO(ENOBUFS),
};
#undef MIG_ERRNO

}  // namespace

const char* WcStatusText(ibv_wc_status status) {
  for (const StatusName& known : kStatuses) {
    if (known.status == status) return known.text;
  }
  return "unknown";
}

std::optional<ibv_wc_status> WcStatusOfName(absl::string_view name) {
  for (const StatusName& known : kStatuses) {
    if (name == known.name) return known.status;
  }
  return std::nullopt;
}

std::optional<int> ErrnoOfName(absl::string_view name) {
  for (const ErrnoName& known : kErrnos) {
    if (name == known.name) return known.error;
  }
  int number = 0;
  if (absl::SimpleAtoi(name, &number) && number > 0) return number;
  return std::nullopt;
}

const char* EventTypeText(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return "CQ error";
    case IBV_EVENT_QP_FATAL:
      return "QP fatal";
    case IBV_EVENT_QP_REQ_ERR:
      return "QP request error";
    case IBV_EVENT_QP_ACCESS_ERR:
      return "QP access error";
    case IBV_EVENT_DEVICE_FATAL:
      return "device fatal";
    case IBV_EVENT_PORT_ACTIVE:
      return "port active";
    case IBV_EVENT_PORT_ERR:
      return "port down";
    default:
      return "unknown";
  }
}

const char* CmEventText(rdma_cm_event_type type) {
  static constexpr const char* kTexts[] = {
      "RDMA_CM_EVENT_ADDR_RESOLVED",   "RDMA_CM_EVENT_ADDR_ERROR",
      "RDMA_CM_EVENT_ROUTE_RESOLVED",  "RDMA_CM_EVENT_ROUTE_ERROR",
      "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
      "RDMA_CM_EVENT_CONNECT_ERROR",   "RDMA_CM_EVENT_UNREACHABLE",
      "RDMA_CM_EVENT_REJECTED",        "RDMA_CM_EVENT_ESTABLISHED",
      "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
      "RDMA_CM_EVENT_MULTICAST_JOIN",  "RDMA_CM_EVENT_MULTICAST_ERROR",
      "RDMA_CM_EVENT_ADDR_CHANGE",     "RDMA_CM_EVENT_TIMEWAIT_EXIT"};
  const auto index = static_cast<size_t>(type);
  return index < sizeof(kTexts) / sizeof(kTexts[0]) ? kTexts[index] : "unknown";
}

}  // namespace mig::soft

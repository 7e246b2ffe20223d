// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Names of errnos and of the verbs' enumerations.
#ifndef PLUGIN_SOFT_VERBS_TEXT_H_
#define PLUGIN_SOFT_VERBS_TEXT_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <optional>

#include "absl/strings/string_view.h"

namespace mig::soft {

const char* WcStatusText(ibv_wc_status status);
const char* EventTypeText(ibv_event_type type);
const char* CmEventText(rdma_cm_event_type type);

// "RETRY_EXC_ERR"; nullopt if there is none of the name.
std::optional<ibv_wc_status> WcStatusOfName(absl::string_view name);
// "ENOMEM" or a number.
std::optional<int> ErrnoOfName(absl::string_view name);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_TEXT_H_

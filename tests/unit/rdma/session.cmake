# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
mig_test(unit_rdma_session LABEL unit
  SOURCES fuzz_test.cc plugin_test.cc session_test.cc stale_key_test.cc
  LIBS mig_plugin_rdma_objects mig_rdma_control mig_rdma_data mig_soft_verbs
    mig_verbs mig_plugin_common)
target_include_directories(unit_rdma_session PRIVATE
  ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/..)

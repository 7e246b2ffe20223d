# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
mig_test(unit_rdma_control LABEL unit
  SOURCES caps_ladder_test.cc control_channel_test.cc control_failure_test.cc
    hello_test.cc opener_failure_test.cc opener_test.cc path_options_test.cc
    wire_test.cc
  LIBS mig_rdma_control mig_rdma_data mig_soft_verbs mig_verbs
    mig_plugin_common)
target_include_directories(unit_rdma_control PRIVATE
  ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/..)

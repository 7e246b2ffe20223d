# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
mig_test(unit_rdma_data LABEL unit
  SOURCES chunk_map_test.cc data_writer_counts_test.cc data_writer_keys_test.cc
    data_writer_pace_test.cc data_writer_rounds_test.cc data_writer_test.cc
    fake_device.cc fence_test.cc pacer_test.cc registration_test.cc
    soft_data_test.cc write_queue_test.cc writer_fixture.cc zero_runs_test.cc
  LIBS mig_rdma_data mig_soft_verbs mig_verbs mig_plugin_common)
target_include_directories(unit_rdma_data PRIVATE
  ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/..)

# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
#
# The data path of the RDMA plugin: registration, writes, fences.
add_library(mig_rdma_data OBJECT
  aside_queue.cc chunk_map.cc data_writer.cc data_writer_send.cc fence.cc
  memlock.cc pacer.cc registration.cc registration_jobs.cc wc_error.cc
  worker_pool.cc write_queue.cc zero_runs.cc zero_scan.cc)
mig_warnings(mig_rdma_data)
target_link_libraries(mig_rdma_data PUBLIC
  mig_plugin_common mig_verbs Threads::Threads)

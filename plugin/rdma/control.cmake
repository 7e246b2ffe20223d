# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
#
# Everything but the data path: queue pairs, the control channel, connections.
add_library(mig_rdma_control OBJECT
  caps_ladder.cc cm_events.cc cm_qp.cc connector.cc control_channel.cc
  control_link.cc control_send.cc control_slots.cc device_set.cc gid.cc
  handshake.cc hello.cc listener.cc private_data.cc qp_mover.cc reassembler.cc uri.cc wire.cc
  wire_blocks.cc)
mig_warnings(mig_rdma_control)
target_link_libraries(mig_rdma_control PUBLIC
  mig_plugin_common mig_verbs)

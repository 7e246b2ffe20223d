// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The rules follow what the providers of rdma-core and the kernel's rxe and
// siw do; what is not known exactly says so.
#include "soft-verbs/models.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <iterator>

namespace mig::soft {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kSgeBytes = 16;

constexpr Model kModels[] = {
    {ModelKind::kMlx5,
     "mlx5",
     "mlx5_0",
     false,
     true,
     {kGiB, uint64_t{1} << 48, 1u << 20, 1u << 18, 32768, 30, 1u << 24, 4194303,
      1024, 1u << 23}},
    {ModelKind::kMlx4,
     "mlx4",
     "mlx4_0",
     false,
     false,
     {kGiB, uint64_t{1} << 48, 524032, 131000, 16351, 32, 65408, 4194303, 1024,
      32764}},
    {ModelKind::kIrdma,
     "irdma",
     "irdma0",
     false,
     false,
     {2 * kGiB - 1, uint64_t{1} << 41, 1u << 20, 65534, 4063, 13, 131069,
      1048574, 101, 262141}},
    {ModelKind::kRxe,
     "rxe",
     "rxe0",
     false,
     true,
     {uint64_t{8} << 20, UINT64_MAX, 1u << 20, 1048560, 1048576, 32, 1048576,
      32767, 512, 1048576}},
    {ModelKind::kSiw,
     "siw",
     "siw0",
     true,
     false,
     {UINT32_MAX, UINT64_MAX, 1u << 20, 102400, 32768, 6, 102400, 3276800, 80,
      102400}},
};

uint64_t Align(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

// mlx5: a work request takes its overhead and either the gather list or the
// inline data, in units of 64 bytes; the descriptor has at most 1024.
constexpr uint64_t kMlx5MaxDescriptor = 1024;
constexpr uint64_t kMlx5MaxBlocks = 32768;

// Room for a memory-window bind unless the send_ops leave it out.
uint64_t Mlx5Overhead(bool extended, uint64_t send_ops) {
  constexpr uint64_t kSmall = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
                              IBV_QP_EX_WITH_SEND_WITH_IMM |
                              IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                              IBV_QP_EX_WITH_RDMA_READ;
  return extended && (send_ops & ~kSmall) == 0 ? 32 : 192;
}

// Without the alignment to 64, so that the descriptor limit can be checked.
uint64_t Mlx5Descriptor(uint64_t overhead, uint64_t sge, uint64_t inline_data) {
  const uint64_t gather = kSgeBytes * sge;
  const uint64_t copied = inline_data == 0 ? 0 : Align(4 + inline_data, 16);
  return overhead + std::max(gather, copied);
}

int GrantMlx5(CapsRequest* request) {
  ibv_qp_cap& cap = request->cap;
  if (cap.max_send_wr == 0) return 0;
  const uint64_t overhead = Mlx5Overhead(request->extended, request->send_ops);
  const uint64_t wanted =
      Mlx5Descriptor(overhead, cap.max_send_sge, cap.max_inline_data);
  if (wanted > kMlx5MaxDescriptor) return EINVAL;
  const uint64_t wqe = Align(wanted, 64);
  const uint64_t bytes = std::bit_ceil(cap.max_send_wr * wqe);
  if (bytes / 64 > kMlx5MaxBlocks) return EINVAL;
  cap.max_inline_data = static_cast<uint32_t>(wqe - overhead - 4);
  cap.max_send_wr = static_cast<uint32_t>(bytes / wqe);
  return 0;
}

// mlx4: inline data goes in segments of 60 bytes that may not cross 64; the
// work request is a power of two with 32 bytes of its own, and the queue keeps
// 2 KiB and one more free for the device to read ahead in.
constexpr uint64_t kMlx4Fixed = 32;

uint64_t Mlx4Wqe(uint64_t sge, uint64_t inline_data) {
  const uint64_t segments = (inline_data + kMlx4Fixed + 59) / 60;
  const uint64_t slots =
      std::max(sge, Align(inline_data + 4 * segments, kSgeBytes) / kSgeBytes);
  // At least an atomic's segments after the control segment.
  const uint64_t size = 16 + std::max(slots * kSgeBytes + 16, uint64_t{48});
  return std::max(uint64_t{64}, std::bit_ceil(size));
}

int GrantMlx4(const Limits& limits, CapsRequest* request) {
  ibv_qp_cap& cap = request->cap;
  if (cap.max_inline_data > 1024) return EINVAL;
  const uint64_t wqe = Mlx4Wqe(cap.max_send_sge, cap.max_inline_data);
  // The kernel refuses a work request over the device's largest descriptor.
  if (wqe > 1024) return EINVAL;
  const uint64_t spare = 2048 / wqe + 1;
  const uint64_t slots = std::bit_ceil(cap.max_send_wr + spare);
  const uint64_t room = wqe - kMlx4Fixed;
  cap.max_send_wr = static_cast<uint32_t>(slots - spare);
  cap.max_send_sge =
      static_cast<uint32_t>(std::min(room / kSgeBytes, limits.max_sge));
  cap.max_inline_data = static_cast<uint32_t>(room - Align(room, 64) / 64 * 4);
  cap.max_recv_wr = std::bit_ceil(std::max(cap.max_recv_wr, 1u));
  return 0;
}

// irdma (second generation): quanta of 32 bytes, 1 to 8 a work request.
constexpr uint64_t kIrdmaReserved = 258;
constexpr uint64_t kIrdmaMaxQuanta = 32768;

unsigned IrdmaShift(uint64_t sge, uint64_t inline_data) {
  if (sge <= 1 && inline_data <= 8) return 0;
  if (sge < 4 && inline_data <= 39) return 1;
  return sge < 8 ? 2 : 3;
}

uint64_t IrdmaQuanta(uint64_t depth, unsigned shift) {
  return std::bit_ceil((depth << shift) + kIrdmaReserved);
}

int GrantIrdma(CapsRequest* request) {
  const ibv_qp_cap& cap = request->cap;
  const unsigned shift = IrdmaShift(cap.max_send_sge, cap.max_inline_data);
  return IrdmaQuanta(cap.max_send_wr, shift) > kIrdmaMaxQuanta ? EINVAL : 0;
}

// rxe: gather list and inline data share one space, so each grows with the
// other.
int GrantRxe(const Limits& limits, CapsRequest* request) {
  ibv_qp_cap& cap = request->cap;
  const uint64_t room =
      std::max<uint64_t>(kSgeBytes * cap.max_send_sge, cap.max_inline_data);
  cap.max_inline_data = static_cast<uint32_t>(room);
  cap.max_send_sge =
      static_cast<uint32_t>(std::min(room / kSgeBytes, limits.max_sge));
  return 0;
}

}  // namespace

const Model* FindModel(absl::string_view name) {
  const auto* found =
      std::find_if(std::begin(kModels), std::end(kModels),
                   [&](const Model& model) { return name == model.name; });
  return found == std::end(kModels) ? nullptr : found;
}

int GrantCaps(const Model& model, const Limits& limits, CapsRequest* request) {
  const ibv_qp_cap& cap = request->cap;
  if (cap.max_send_wr > limits.max_qp_wr ||
      cap.max_recv_wr > limits.max_qp_wr || cap.max_send_sge > limits.max_sge ||
      cap.max_recv_sge > limits.max_sge ||
      cap.max_inline_data > limits.max_inline) {
    return EINVAL;
  }
  switch (model.kind) {
    case ModelKind::kMlx5:
      return GrantMlx5(request);
    case ModelKind::kMlx4:
      return GrantMlx4(limits, request);
    case ModelKind::kIrdma:
      return GrantIrdma(request);
    case ModelKind::kRxe:
      return GrantRxe(limits, request);
    case ModelKind::kSiw:
      return 0;  // as asked
  }
  return EINVAL;
}

uint64_t SendQueueBytes(const Model& model, const ibv_qp_cap& granted,
                        bool extended) {
  const uint64_t depth = granted.max_send_wr;
  if (depth == 0) return 0;
  const uint64_t sge = granted.max_send_sge;
  const uint64_t inlined = granted.max_inline_data;
  switch (model.kind) {
    case ModelKind::kMlx5: {
      constexpr uint64_t kOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
      const uint64_t overhead = Mlx5Overhead(extended, kOps);
      return std::bit_ceil(depth *
                           Align(Mlx5Descriptor(overhead, sge, inlined), 64));
    }
    case ModelKind::kMlx4: {
      const uint64_t wqe = Mlx4Wqe(sge, inlined);
      return std::bit_ceil(depth + 2048 / wqe + 1) * wqe;
    }
    case ModelKind::kIrdma:
      return IrdmaQuanta(depth, IrdmaShift(sge, inlined)) * 32;
    case ModelKind::kRxe:
      // A ring of powers of two, one slot more than used. About 200 bytes a
      // request beside the data.
      return std::bit_ceil(depth + 1) *
             std::bit_ceil(200 + std::max(kSgeBytes * sge, inlined));
    case ModelKind::kSiw:
      return std::bit_ceil(depth) * 128;
  }
  return 0;
}

}  // namespace mig::soft

// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_TESTS_UNIT_GUEST_MIGRATE_H_
#define MIGTRANSPORT_TESTS_UNIT_GUEST_MIGRATE_H_

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "guest/workload.h"
#include "test_util.h"

namespace mig::sim {

// Copies all of a stopped guest's memory, then poisons the original, so that
// whatever still looks there is found out.
inline void MigrateAndPoison(const GuestMemory& from, const GuestMemory& to) {
  ASSERT_EQ(from.blocks().size(), to.blocks().size());
  for (size_t i = 0; i < from.blocks().size(); ++i) {
    const GuestBlock& source = from.blocks()[i];
    memcpy(to.blocks()[i].base, source.base, source.length);
    memset(source.base, 0xa5, source.length);
  }
}

// A workload with its memory.
struct Guest {
  std::unique_ptr<GuestMemory> memory;
  std::unique_ptr<Workload> workload;
};

inline Guest MakeGuest(const std::vector<std::string>& blocks,
                       const std::string& spec, uint64_t seed = 1,
                       GuestClock clock = nullptr) {
  Guest guest;
  guest.memory = std::make_unique<GuestMemory>(MakeMemory(blocks));
  guest.workload =
      MakeWorkload(spec, guest.memory.get(), seed, std::move(clock)).value();
  const absl::Status status = guest.workload->Init();
  EXPECT_TRUE(status.ok()) << status;
  return guest;
}

// Moves `source` away from its memory, as a migration would.
inline Guest Migrate(const Guest& source,
                     const std::vector<std::string>& blocks) {
  Guest target;
  target.memory = std::make_unique<GuestMemory>(MakeMemory(blocks));
  MigrateAndPoison(*source.memory, *target.memory);
  auto workload = AttachWorkload(target.memory.get());
  EXPECT_TRUE(workload.ok()) << workload.status();
  if (workload.ok()) target.workload = *std::move(workload);
  return target;
}

inline void Steps(Workload* workload, int count) {
  for (int i = 0; i < count; ++i) MIG_ASSERT_OK(workload->Step());
}

inline bool SameMemory(const GuestMemory& a, const GuestMemory& b) {
  for (size_t i = 0; i < a.blocks().size(); ++i) {
    if (memcmp(a.blocks()[i].base, b.blocks()[i].base, a.blocks()[i].length) !=
        0) {
      return false;
    }
  }
  return true;
}

}  // namespace mig::sim

#endif  // MIGTRANSPORT_TESTS_UNIT_GUEST_MIGRATE_H_

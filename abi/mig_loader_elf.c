/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/*
 * A look at a file before dlopen maps it: the dynamic linker trusts the
 * segment sizes, so a plugin that is cut off (a full disk, an install that is
 * under way) would kill the host with SIGBUS.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mig_loader_internal.h"

static int read_at(int fd, void *buffer, size_t size, uint64_t offset) {
  return pread(fd, buffer, size, (off_t)offset) == (ssize_t)size;
}

/* Where the last byte that gets mapped lies, 0 if nothing can be said. */
static uint64_t mapped_end(int fd) {
  Elf64_Ehdr header;
  uint64_t end = 0;
  if (!read_at(fd, &header, sizeof(header), 0) ||
      memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return 0; /* dlopen knows how to refuse it */
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(fd, &segment, sizeof(segment),
                 header.e_phoff + i * sizeof(segment))) {
      return UINT64_MAX;
    }
    if (segment.p_type == PT_LOAD && segment.p_filesz > 0) {
      uint64_t segment_end = segment.p_offset + segment.p_filesz;
      if (segment_end < segment.p_offset) {
        return UINT64_MAX;
      }
      end = segment_end > end ? segment_end : end;
    }
  }
  return end;
}

int mig_loader_is_cut_off(const char *file, uint64_t size) {
  int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) {
    return 0;
  }
  uint64_t end = mapped_end(fd);
  (void)close(fd);
  return end > size;
}

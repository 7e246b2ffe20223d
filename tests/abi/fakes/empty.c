/* SPDX-FileCopyrightText: 2026 the migtransport authors
 * SPDX-License-Identifier: BSD-2-Clause */
/* A shared object that defines nothing of interest. */
extern int mig_fake_unused;
int mig_fake_unused = 1;

// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "cli/arguments.h"

int main(int argc, char** argv) { return mig::sim::RunCommandLine(argc, argv); }

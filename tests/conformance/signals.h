// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef TESTS_CONFORMANCE_SIGNALS_H_
#define TESTS_CONFORMANCE_SIGNALS_H_

namespace mig::conformance {

// Counts SIGPIPE from now on, instead of dying of it.
void InstallSigpipeCounter();
// Notes the calling thread's mask, and forgets earlier SIGPIPEs.
void ResetSignals();
int SigpipeCount();
bool SignalMaskUnchanged();

// Ends the process, naming the running test, when one takes longer than this:
// a call that never returns can't be failed in another way.
void StartWatchdog(int seconds_per_test);

}  // namespace mig::conformance

#endif  // TESTS_CONFORMANCE_SIGNALS_H_

// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "states.h"

namespace mig::conformance {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

std::string StateName(State state) {
  static const char* const kNames[] = {"New",        "Connecting", "Connected",
                                       "Exchanging", "Ready",      "InRound",
                                       "RoundEnded", "RoundDone",  "Offered",
                                       "Taken",      "Failed",     "Closing"};
  return kNames[static_cast<size_t>(state)];
}

namespace {

AssertionResult Expect(int32_t status, const Session& session) {
  if (status == MIG_OK) return AssertionSuccess();
  return AssertionFailure() << session.error().message;
}

AssertionResult ReachConnected(Pair& pair) {
  const AssertionResult connected = pair.Connect();
  return connected ? pair.AddBlock({.length = 1 << 20}) : connected;
}

AssertionResult ReachInRound(Pair& pair) {
  AssertionResult result = ReachConnected(pair);
  if (result) result = pair.Exchange();
  if (result) result = pair.Begin();
  Taken taken;
  if (result) {
    result = Expect(pair.source().Write({{pair.block().Whole()}}, &taken),
                    pair.source());
  }
  return result;
}

AssertionResult ReachRoundDone(Pair& pair) {
  AssertionResult result = ReachInRound(pair);
  if (result) result = pair.End();
  return result ? pair.RoundDone() : result;
}

AssertionResult ReachOffered(Pair& pair) {
  const AssertionResult result = ReachRoundDone(pair);
  return result ? pair.Offer() : result;
}

AssertionResult ReachFailed(Pair& pair) {
  const AssertionResult result = ReachRoundDone(pair);
  if (!result) return result;
  pair.source().Cancel();
  const bool ended = pair.Pump(
      [&] { return pair.source().Ended() && pair.destination().Ended(); });
  return ended ? AssertionSuccess() : AssertionFailure() << pair.Describe();
}

}  // namespace

AssertionResult Reach(Pair& pair, State state) {
  AssertionResult result = AssertionSuccess();
  switch (state) {
    case State::kNew:
      break;
    case State::kConnecting:
      result = pair.Start();
      break;
    case State::kConnected:
      result = ReachConnected(pair);
      break;
    case State::kExchanging:
      result = ReachConnected(pair);
      if (result) result = Expect(pair.source().Exchange(), pair.source());
      break;
    case State::kReady:
      result = ReachConnected(pair);
      if (result) result = pair.Exchange();
      break;
    case State::kInRound:
      result = ReachInRound(pair);
      break;
    case State::kRoundEnded:
      result = ReachInRound(pair);
      if (result) result = pair.End();
      break;
    case State::kRoundDone:
      result = ReachRoundDone(pair);
      break;
    case State::kOffered:
      result = ReachOffered(pair);
      break;
    case State::kTaken:
      result = ReachOffered(pair);
      if (result) {
        result = Expect(pair.destination().Handover(), pair.destination());
      }
      break;
    case State::kFailed:
      result = ReachFailed(pair);
      break;
    case State::kClosing:
      result = ReachRoundDone(pair);
      pair.source().Close();
      break;
  }
  return result;
}

}  // namespace mig::conformance

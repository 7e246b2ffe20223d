// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What may happen when, as a table of states and calls.
#include "common/session_rules.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/error.h"
#include "gtest/gtest.h"

namespace mig {
namespace {

using Make = std::function<void(SessionRules*)>;

const absl::Status& Lost() {
  static const auto* status =
      new absl::Status(MakeError(MIG_E_PEER_LOST, "lost"));
  return *status;
}

void Connect(SessionRules* rules) {
  rules->Connecting();
  rules->Connected();
}
void Agree(SessionRules* rules) {
  Connect(rules);
  rules->ExchangeBegun();
  rules->Exchanged();
}
void OneRound(SessionRules* rules) {
  Agree(rules);
  if (rules->source()) {
    ASSERT_TRUE(rules->RoundBegin(1, 0).ok());
    ASSERT_TRUE(rules->RoundEnd(1).ok());
    ASSERT_TRUE(rules->PeerRoundAck(1).ok());
  } else {
    ASSERT_TRUE(rules->PeerRoundEnd(1).ok());
  }
}
void Offer(SessionRules* rules) {
  OneRound(rules);
  ASSERT_TRUE(rules->source() ? rules->Handover().ok()
                              : rules->PeerOffer().ok());
  if (!rules->source()) rules->OfferShown();
}
void Take(SessionRules* rules) {
  Offer(rules);
  ASSERT_TRUE(rules->source() ? rules->PeerCommitted().ok()
                              : rules->Handover().ok());
}

// One letter a call, in this order: Start, Add, Remove, eXchange, sEnd, Write,
// round Begin, round enD, Handover.
std::string Legal(uint32_t role, const Make& make) {
  const std::vector<std::pair<char, std::function<absl::Status(SessionRules*)>>>
      kCalls = {
          {'S', [&](SessionRules* r) { return r->CheckStart(role); }},
          {'A', [](SessionRules* r) { return r->CheckAddBlock(); }},
          {'R', [](SessionRules* r) { return r->CheckRemoveBlock(); }},
          {'X', [](SessionRules* r) { return r->CheckExchange(); }},
          {'E', [](SessionRules* r) { return r->CheckSend(); }},
          {'W', [](SessionRules* r) { return r->CheckWrite(); }},
          {'B',
           [](SessionRules* r) { return r->RoundBegin(r->round() + 1, 0); }},
          {'D', [](SessionRules* r) { return r->RoundEnd(r->round()); }},
          {'H', [](SessionRules* r) { return r->Handover(); }}};
  std::string legal;
  for (const auto& [letter, call] : kCalls) {
    SessionRules rules(role);
    make(&rules);
    const absl::Status status = call(&rules);
    if (status.ok()) {
      legal += letter;
    } else {
      const int32_t code = ErrorCode(status);
      EXPECT_EQ(code, rules.failed() ? MIG_E_FAILED : MIG_E_STATE) << letter;
    }
  }
  return legal;
}

TEST(SessionRulesTest, CallsOfASourceAreLegalAsTheManualSays) {
  const auto legal = [](const Make& make) {
    return Legal(MIG_ROLE_SOURCE, make);
  };
  EXPECT_EQ(legal([](SessionRules*) {}), "SAR");
  EXPECT_EQ(legal([](SessionRules* r) { r->Connecting(); }), "AR");
  EXPECT_EQ(legal(Connect), "ARXE");
  EXPECT_EQ(legal([](SessionRules* r) {
              Connect(r);
              r->ExchangeBegun();
            }),
            "E");
  EXPECT_EQ(legal(Agree), "ARXEB");
  EXPECT_EQ(legal([](SessionRules* r) {
              Agree(r);
              ASSERT_TRUE(r->RoundBegin(1, 0).ok());
            }),
            "REWD");
  EXPECT_EQ(legal([](SessionRules* r) {
              Agree(r);
              ASSERT_TRUE(r->RoundBegin(1, 0).ok());
              ASSERT_TRUE(r->RoundEnd(1).ok());
            }),
            "REB")
      << "an ended round is open until its ROUND_DONE";
  EXPECT_EQ(legal(OneRound), "ARXEBH");
  EXPECT_EQ(legal(Offer), "E");
  EXPECT_EQ(legal(Take), "E");
}

TEST(SessionRulesTest, CallsOfADestinationAreLegalAsTheManualSays) {
  const auto legal = [](const Make& make) {
    return Legal(MIG_ROLE_DESTINATION, make);
  };
  EXPECT_EQ(legal([](SessionRules*) {}), "SAR");
  EXPECT_EQ(legal([](SessionRules* r) { r->Connecting(); }), "AR");
  EXPECT_EQ(legal(Connect), "ARXE");
  EXPECT_EQ(legal(Agree), "ARXE");
  EXPECT_EQ(legal(OneRound), "ARXE");
  EXPECT_EQ(legal(Offer), "EH");
  EXPECT_EQ(legal(Take), "E");
}

TEST(SessionRulesTest, AfterAFailureOnlyAnOfferedGuestCanBeTaken) {
  for (const uint32_t role : {MIG_ROLE_SOURCE, MIG_ROLE_DESTINATION}) {
    for (const Make& make : {Make(Connect), Make(Agree), Make(OneRound)}) {
      EXPECT_EQ(Legal(role,
                      [&make](SessionRules* r) {
                        make(r);
                        r->Fail(Lost(), OfferFate::kNotLeft);
                      }),
                "");
    }
  }
  const Make lost = [](SessionRules* r) {
    Offer(r);
    r->Fail(Lost(), OfferFate::kMayHaveArrived);
  };
  EXPECT_EQ(Legal(MIG_ROLE_SOURCE, lost), "");
  EXPECT_EQ(Legal(MIG_ROLE_DESTINATION, lost), "H");
}

TEST(SessionRulesTest, AfterCloseNothingIsLegal) {
  for (const Make& make :
       {Make(Connect), Make(Agree), Make(OneRound), Make(Offer), Make(Take)}) {
    for (const uint32_t role : {MIG_ROLE_SOURCE, MIG_ROLE_DESTINATION}) {
      EXPECT_EQ(Legal(role,
                      [&make](SessionRules* r) {
                        make(r);
                        r->Closing();
                      }),
                "");
    }
  }
}

TEST(SessionRulesTest, RoundsAreNumberedWithoutGap) {
  SessionRules rules(MIG_ROLE_SOURCE);
  Agree(&rules);
  EXPECT_EQ(ErrorCode(rules.RoundBegin(0, 0)), MIG_E_ARGUMENT);
  EXPECT_EQ(ErrorCode(rules.RoundBegin(2, 0)), MIG_E_ARGUMENT);
  EXPECT_EQ(ErrorCode(rules.RoundBegin(1, 4)), MIG_E_ARGUMENT);
  ASSERT_TRUE(rules.RoundBegin(1, MIG_ROUND_STRICT).ok());
  EXPECT_TRUE(rules.strict());
  EXPECT_TRUE(rules.WritesMayStart());
  EXPECT_EQ(ErrorCode(rules.RoundEnd(2)), MIG_E_ARGUMENT);
  ASSERT_TRUE(rules.RoundEnd(1).ok());
  ASSERT_TRUE(rules.RoundBegin(2, 0).ok());
  EXPECT_FALSE(rules.strict());
  EXPECT_FALSE(rules.WritesMayStart()) << "rule 7.4";
  EXPECT_EQ(ErrorCode(rules.PeerRoundAck(2)), MIG_E_PEER_PROTOCOL);
  ASSERT_TRUE(rules.PeerRoundAck(1).ok());
  EXPECT_TRUE(rules.WritesMayStart());
  EXPECT_EQ(ErrorCode(rules.PeerRoundAck(1)), MIG_E_PEER_PROTOCOL);
}

// What a peer says is legal only where it makes sense.
TEST(SessionRulesTest, APeerIsHeldToTheOrderToo) {
  const std::map<std::string, std::function<absl::Status(SessionRules*)>>
      kWords = {{"data", [](auto* r) { return r->PeerData(2); }},
                {"end", [](auto* r) { return r->PeerRoundEnd(2); }},
                {"ack", [](auto* r) { return r->PeerRoundAck(2); }},
                {"offer", [](auto* r) { return r->PeerOffer(); }},
                {"withdraw", [](auto* r) { return r->PeerWithdrew(); }},
                {"removed", [](auto* r) { return r->PeerBlockRemoved(); }},
                {"committed", [](auto* r) { return r->PeerCommitted(); }},
                {"refused", [](auto* r) { return r->PeerRefused(); }}};
  const auto legal = [&kWords](uint32_t role, const Make& make) {
    std::string words;
    for (const auto& [word, call] : kWords) {
      SessionRules rules(role);
      make(&rules);
      const absl::Status status = call(&rules);
      if (status.ok()) {
        words += word + " ";
      } else {
        EXPECT_EQ(ErrorCode(status), MIG_E_PEER_PROTOCOL) << word;
      }
    }
    return words;
  };
  EXPECT_EQ(legal(MIG_ROLE_SOURCE, Connect), "");
  EXPECT_EQ(legal(MIG_ROLE_SOURCE, OneRound), "");
  EXPECT_EQ(legal(MIG_ROLE_SOURCE, Offer), "committed refused ");
  EXPECT_EQ(legal(MIG_ROLE_SOURCE, Take), "");
  EXPECT_EQ(legal(MIG_ROLE_DESTINATION, Connect), "");
  EXPECT_EQ(legal(MIG_ROLE_DESTINATION, OneRound), "data end offer removed ");
  EXPECT_EQ(legal(MIG_ROLE_DESTINATION, Offer), "withdraw ");
  EXPECT_EQ(legal(MIG_ROLE_DESTINATION, Take), "withdraw ");
}

// Rules 12.8, 12.9 and 15.4.
TEST(SessionRulesTest, HowAFailureEndsDependsOnTheOffer) {
  const auto end = [](uint32_t role, const Make& make, OfferFate fate) {
    SessionRules rules(role);
    make(&rules);
    return rules.Fail(Lost(), fate);
  };
  constexpr auto kS = MIG_ROLE_SOURCE;
  constexpr auto kD = MIG_ROLE_DESTINATION;
  EXPECT_EQ(end(kS, OneRound, OfferFate::kNotLeft), Ending::kError);
  EXPECT_EQ(end(kS, Offer, OfferFate::kNotLeft), Ending::kError);
  EXPECT_EQ(end(kS, Offer, OfferFate::kMayHaveArrived), Ending::kInDoubt);
  EXPECT_EQ(end(kS, Offer, OfferFate::kRenounced), Ending::kRefused);
  EXPECT_EQ(end(kS, Take, OfferFate::kMayHaveArrived), Ending::kPeerClosed);
  EXPECT_EQ(end(kD, Offer, OfferFate::kNotLeft), Ending::kError);
  EXPECT_EQ(end(kD, Take, OfferFate::kNotLeft), Ending::kPeerClosed);
}

// Rules 12.4 and 12.5.
TEST(SessionRulesTest, TheGuestIsTakenAtMostOnceAndOnlyIfShownAndStanding) {
  const auto take = [](const Make& change) {
    SessionRules rules(MIG_ROLE_DESTINATION);
    OneRound(&rules);
    EXPECT_TRUE(rules.PeerOffer().ok());
    change(&rules);
    EXPECT_EQ(rules.Handover().ok(), false);
  };
  take([](SessionRules*) {});  // the host has not seen the event yet
  take([](SessionRules* r) {
    r->OfferShown();
    r->RenounceOffer();
  });
  take([](SessionRules* r) {
    r->OfferShown();
    r->Fail(Lost(), OfferFate::kNotLeft);
    r->RenounceOffer();
  });
  take([](SessionRules* r) {
    r->OfferShown();
    EXPECT_TRUE(r->MayTake());
    r->Closing();
    EXPECT_FALSE(r->MayTake());
  });
  take([](SessionRules* r) {
    r->OfferShown();
    EXPECT_TRUE(r->Handover().ok());
    r->RenounceOffer();  // too late: nothing undoes it
    EXPECT_EQ(r->phase(), Phase::kTaken);
  });
}

}  // namespace
}  // namespace mig

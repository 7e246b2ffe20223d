# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
"""Paired ratios: how they are taken, what they say, and the tables of them."""

import dataclasses
import math
import statistics
import sys
import typing

ENOUGH = 7  # pairs, for an interval of 95 %
UNDECIDABLE = 0.05  # half-width of A/A from which on a row says nothing


def interval(values):
    """Of the median, by the sign test: what holds with 95 % at least, without
    a word on how the values are spread. Below ENOUGH it is min and max."""
    ordered = sorted(values)
    count = len(ordered)
    cut, tail = 0, 0.5**count
    while cut + 1 < count / 2:
        tail += math.comb(count, cut + 1) * 0.5**count
        if 2 * tail > 0.05:
            break
        cut += 1
    return ordered[cut], ordered[count - 1 - cut]


def itself(figure):
    return figure


@dataclasses.dataclass
class Row:
    """One thing that is measured against a group's reference."""

    name: str
    over: str
    unit: str
    ours: typing.Callable[[], typing.Any]
    target: float | None = None  # None: shown only
    at_most: bool = False  # the target is an upper limit: of times
    # The figure that counts of what one measurement answers.
    pick: typing.Callable[[typing.Any], float] = itself


class Measured:
    """A row's figures: A/A pairs of the reference, then pairs of both."""

    def __init__(self, row, against_itself, pairs):
        self.row = row
        self.against_itself = against_itself
        self.pairs = pairs
        self.ratios = [ours / theirs for ours, theirs in pairs]
        self.median = statistics.median(self.ratios)
        self.low, self.high = interval(self.ratios)
        low, high = interval([a / b for a, b in against_itself])
        self.half_width = (high - low) / 2

    def verdict(self):
        row = self.row
        if row.target is None:
            return "shown only"
        if len(self.ratios) < ENOUGH:
            return "too few pairs"
        if self.half_width > UNDECIDABLE:
            return "undecidable"
        if row.at_most:
            met = self.high <= row.target + self.half_width
            missed = self.low > row.target + self.half_width
        else:
            met = self.low >= row.target - self.half_width
            missed = self.high < row.target - self.half_width
        return "met" if met else "missed" if missed else "not met"

    def say(self):
        say(f"-- {self.row.name} ÷ {self.row.over}")
        say("   A/A " + " ".join(f"{a / b:.2f}" for a, b in self.against_itself))
        say("   " + " ".join(f"{ours:.1f}/{theirs:.1f}"
                             for ours, theirs in self.pairs))
        say(f"   {self.median:.3f} ({self.low:.3f} .. {self.high:.3f}), A/A "
            f"± {self.half_width:.3f}: {self.verdict()}")

    def cells(self):
        row = self.row
        target = ""
        if row.target is not None:
            target = f"{'≤' if row.at_most else '≥'} {row.target:.2f}"
        ours = statistics.median(pair[0] for pair in self.pairs)
        theirs = statistics.median(pair[1] for pair in self.pairs)
        return [row.name, row.over, f"{ours:.1f}", f"{theirs:.1f}", row.unit,
                f"**{self.median:.2f}**", f"{self.low:.2f} .. {self.high:.2f}",
                f"± {self.half_width:.2f}", target, self.verdict()]

    def json(self):
        row = self.row
        return {
            "what": row.name, "over": row.over, "unit": row.unit,
            "target": row.target, "at_most": row.at_most,
            "median": self.median, "interval": [self.low, self.high],
            "min": min(self.ratios), "max": max(self.ratios),
            "aa_half_width": self.half_width, "verdict": self.verdict(),
            "pairs": self.pairs, "aa_pairs": self.against_itself,
        }


def say(text):
    print(text, flush=True)


def take(rows, theirs, pairs):
    """The reference against itself first, then each row in turn with it, in
    an order that is turned round from time to time. Rows whose `ours` is the
    same function share one measurement."""
    say(f"== {rows[0].name} ÷ {rows[0].over}: {pairs} times, and as many A/A")
    against_itself = [(theirs(), theirs()) for _ in range(pairs)]
    taken = []
    for number in range(pairs):
        todo = dict.fromkeys([theirs] + [row.ours for row in rows])
        for function in reversed(todo) if number % 2 else list(todo):
            todo[function] = function()
        taken.append(todo)
    measured = []
    for row in rows:
        pick = row.pick
        one = Measured(row, [(pick(a), pick(b)) for a, b in against_itself],
                       [(pick(all[row.ours]), pick(all[theirs]))
                        for all in taken])
        one.say()
        measured.append(one)
    return measured


HEAD = ["what", "÷", "ours", "theirs", "unit", "median ratio", "95 %", "A/A",
        "target", ""]


def markdown(rows):
    lines = [HEAD, ["---"] * len(HEAD)] + [row.cells() for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def fail(text):
    print(f"tests/bench: {text}", file=sys.stderr, flush=True)
    sys.exit(1)

# SPDX-FileCopyrightText: 2026 the migtransport authors
# SPDX-License-Identifier: BSD-2-Clause
"""Inside the machine: measures, and says it. Started by tests/bench/run."""

import argparse
import json
import time

import migrations
import ratios
from peers import Machine, Program

MIB = 1 << 20
PAGE = 4096
HEADER = 16  # of a control frame, plugin/rdma/WIRE.md
PAYLOAD = 32  # of a message: it fits inline with its header


class Bench:
    def __init__(self, arguments):
        self.bin = arguments.binaries
        self.pairs = arguments.pairs
        self.run_mib = arguments.run_mib
        self.guest_mib = arguments.guest_mib
        with open("/run/vm/topology", encoding="ascii") as file:
            self.machine = Machine(file.read().strip())
        self.rows = []
        self.parts = []

    def take(self, rows, theirs, pairs=None):
        self.rows += ratios.take(rows, theirs, pairs or self.pairs)

    def plugin(self, *options):
        return Program(f"{self.bin}/plugin_rounds", "--uri",
                       f"rdma://{self.machine.address}:0", *options)

    def raw(self):
        return Program(f"{self.bin}/raw_writes", "--address",
                       self.machine.address)

    def writes(self):
        """Rounds of guest memory against perftest and against a bare loop."""
        plugin, raw = self.plugin(), self.raw()
        size = self.run_mib * MIB
        for warm in (plugin, raw):
            warm.speed("bulk", size)
        self.bulk(plugin, raw, size)
        self.scattered(plugin, raw, size // PAGE)
        for name, program in (("plugin", plugin), ("raw loop", raw)):
            answer = program.ask("pages", size // PAGE, 1)
            ratios.say(f"   {name}, one run: {json.dumps(answer)}")
            program.close()

    def bulk(self, plugin, raw, size):
        def ours():
            return plugin.speed("bulk", size)

        def loop():
            return raw.speed("bulk", size)

        def perftest():
            return self.machine.write_bandwidth("-s", "1048576", "-n",
                                                str(size // MIB))

        name, over = "RDMA bulk first round", "`ib_write_bw -s 1048576`"
        self.take([
            ratios.Row(name, over, "MiB/s", ours, 0.97),
            ratios.Row("raw loop, 1 MiB writes", over, "MiB/s", loop)],
            perftest)
        self.take([
            ratios.Row(name, "raw loop, the same memory", "MiB/s", ours)], loop)

    def scattered(self, plugin, raw, pages):
        def ours():
            return plugin.speed("pages", pages)

        def hot():
            return plugin.speed("hot", pages)

        def loop():
            return raw.speed("pages", pages)

        def perftest():
            return self.machine.write_bandwidth(
                "-s", "4096", "-l", "64", "-Q", "64", "-n", str(pages))

        name, over = "RDMA scattered 4 KiB", "`ib_write_bw -s 4096 -l 64 -Q 64`"
        self.take([
            ratios.Row(name, over, "MiB/s", ours, 0.95),
            ratios.Row("the same page again and again", over, "MiB/s", hot),
            ratios.Row("raw loop, scattered", over, "MiB/s", loop)], perftest)
        self.take([
            ratios.Row(name, "raw loop, the same pages", "MiB/s", ours, 0.95)],
            loop)

    def round_trip(self, pings, wait, options):
        """A program of its own each time: one that spins takes a processor
        from the other."""
        program = self.plugin("--memory", str(4 * MIB), "--wait", wait,
                              "--options", options)
        program.ask("rtt", pings // 10, PAYLOAD)
        answer = program.ask("rtt", pings, PAYLOAD)
        program.close()
        return answer

    def messages(self):
        for wait, way, events in (("spin", "polling", []),
                                  ("sleep", "sleeping", ["-e"])):
            for inline in (True, False):
                self.round_trips(wait, way, events, inline)

    def round_trips(self, wait, way, events, inline):
        # A sleeping one may take a time slice.
        pings = 100 if events else 1000
        size = HEADER + PAYLOAD
        words = ["-s", str(size), "-I", str(size if inline else 0), *events]
        option = "" if inline else "control-inline=0"

        def ours():
            return self.round_trip(pings, wait, option)

        def perftest():
            return self.machine.round_trip(*words, "-n", str(pings))

        name = f"control RTT, {'inline' if inline else 'not inline'}, {way}"
        over = f"2 × `ib_send_lat {' '.join(words)}`"
        self.take([
            ratios.Row(name, over, "µs", ours, 1.15, True,
                       lambda answer: answer["p50_us"]),
            ratios.Row(f"the shortest of {pings}", over, "µs", ours, None, True,
                       lambda answer: answer["min_us"])], perftest)

    def guests(self):
        """Whole migrations. Of QEMU's two ways of RDMA the better counts."""
        guest = migrations.Migrations(self.bin, self.machine.address,
                                      self.guest_mib)
        ways = {"`rdma:`": [], "`rdma:` pin-all": []}

        def best():
            for way, capabilities in zip(ways, ([], ["rdma-pin-all"])):
                ways[way].append(guest.qemu("rdma", *capabilities))
            return max(taken[-1] for taken in ways.values())

        def pinned():
            return guest.ours("rdma", "registration=pinned")

        def dynamic():
            return guest.ours("rdma", "registration=dynamic")

        def tcp():
            return guest.ours("tcp")

        def qemu_tcp():
            return guest.qemu("tcp")

        what, over = "whole migration", "QEMU `rdma:`, the better of both"
        pairs = min(self.pairs, 7)
        self.take([
            ratios.Row(f"RDMA {what}, pinned", over, "MiB/s", pinned, 1.5),
            ratios.Row(f"RDMA {what}, dynamic", over, "MiB/s", dynamic, 1.5)],
            best, pairs)
        for way, taken in ways.items():
            ratios.say(f"   QEMU {way}: " +
                       " ".join(f"{figure:.1f}" for figure in taken))
        self.take([ratios.Row(f"TCP {what}", "QEMU `tcp:`", "MiB/s", tcp)],
                  qemu_tcp, pairs)
        self.parts = guest.parts
        for kind in ("pinned", "dynamic"):
            ratios.say(f"   ours, {kind}, rounds of all, ms: " + " ".join(
                f"{part['rounds_ms']:.0f}/{part['total_ms']:.0f}"
                for part in guest.parts
                if f"registration={kind}" in part["options"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binaries", required=True)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--run-mib", type=int, default=64)
    parser.add_argument("--guest-mib", type=int, default=128)
    parser.add_argument("parts", nargs="*", help="writes messages guests")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    parts = arguments.parts or ["writes", "messages", "guests"]
    start = time.monotonic()
    for part in parts:
        getattr(bench, part)()
    seconds = time.monotonic() - start
    ratios.say(f"== {seconds:.0f} s in the machine, topology "
               f"{bench.machine.topology}, runs of {bench.run_mib} MiB\n")
    ratios.say(ratios.markdown(bench.rows))
    print("JSON " + json.dumps({
        "topology": bench.machine.topology, "seconds": seconds,
        "run_mib": bench.run_mib, "guest_mib": bench.guest_mib,
        "rows": [row.json() for row in bench.rows],
        "migrations": bench.parts}), flush=True)


main()

#!/usr/bin/env python3
"""Measures the table "Start-up, static or dynamic" of docs/figures.md: benches/startup.py STATIC DYNAMIC [TURNS]

Measures the elapsed time of whole processes, because a mail system starts one process for each message. The processes are
`cat`, and `embody filter` of a statically linked program (STATIC) and of a dynamically linked one (DYNAMIC), on the same
messages. They run alternately in a random order, so that other load of the machine affects all of them. The script prints
the median times, and their ratios to the median time of `cat`. The range after each ratio shows how much the ratio varies:
the turns are divided into ten samples, and the range spans the ratios of these samples.
"""
import base64
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STATIC, DYNAMIC = (os.path.abspath(program) for program in sys.argv[1:3])
TURNS = int(sys.argv[3]) if len(sys.argv) > 3 else 2000


def main():
    with tempfile.TemporaryDirectory() as folder:
        plain, reference = Path(folder, "plain.eml"), Path(folder, "reference.eml")
        plain.write_bytes(b"Subject: x\n\n" + b"An ordinary line of mail text.\n" * 132)
        symbols = base64.b64encode(bytes(range(256)) * 8)
        words = b"\n ".join(symbols[at : at + 70] for at in range(0, len(symbols), 70))
        header = b'Content-Type: message/external-body; access-type=URL;\n URL="data:image/png;base64,\n %s"\n\n'
        reference.write_bytes(header % words + b"Content-Type: image/png\n\n")
        quiet = ["filter", "--quiet"]
        filled = [subprocess.run([program, *quiet, reference], stdout=subprocess.PIPE, check=True).stdout for program in (STATIC, DYNAMIC)]
        assert filled[0] == filled[1] != reference.read_bytes(), "both programs must fill in the reference, and write the same message"
        runs = [
            ("`cat`", ["cat"], plain),
            ("static, nothing to do", [STATIC, *quiet], plain),
            ("dynamic, nothing to do", [DYNAMIC, *quiet], plain),
            ("static, one `data:` URL", [STATIC, *quiet], reference),
            ("dynamic, one `data:` URL", [DYNAMIC, *quiet], reference),
        ]
        times = [[] for _ in runs]
        order = list(range(len(runs)))
        for turn in range(TURNS + 20):
            random.shuffle(order)
            for number in order:
                _, words, message = runs[number]
                took = once(words, message)
                if turn >= 20:
                    times[number].append(took)
    cat = statistics.median(times[0])
    print(f"{TURNS} turns, {os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}\n\n| process | time | ratio to `cat` |\n|---|---|---|")
    for (name, *_), taken in zip(runs, times):
        tenths = sorted(
            statistics.median(taken[at::10]) / statistics.median(times[0][at::10]) for at in range(10)
        )
        median = statistics.median(taken)
        print(f"| {name} | {median * 1e3:.2f} ms | {median / cat:.2f} ({tenths[0]:.2f} to {tenths[-1]:.2f}) |")
    for name, program in (("static", STATIC), ("dynamic", DYNAMIC)):
        relocations = subprocess.run(["readelf", "--relocs", "--wide", program], capture_output=True, check=True).stdout
        print(f"{name}: {os.path.getsize(program) / 1e6:.1f} MB, {relocations.count(b'R_')} relocations")


def once(words, message):
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, message, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    ]
    begun = time.perf_counter()
    child = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
    _, status = os.waitpid(child, 0)
    took = time.perf_counter() - begun
    assert status == 0, words
    return took


if __name__ == "__main__":
    main()

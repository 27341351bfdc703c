#!/usr/bin/env python3
"""Measures the table of docs/scale.md, which shows the cost of ranges: benches/ranges.py EMBODY MBOX

Converts MBOX in one run, and then in ranges of several sizes, one range after another. Exits with an error if the joined
results of the ranges are not identical to the result of the one run. The script prints the processor time, too, because it
depends less on other load of the machine than the elapsed time.
"""

import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

SIZES = ["128M", "64M", "8M", "1000003"]


def spent():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def hashed(paths):
    whole = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                whole.update(piece)
        os.remove(path)
    return whole.hexdigest()


def main():
    embody, mbox = sys.argv[1:]
    print("| division of the mailbox | ranges | seconds | processor seconds | processor ms per range |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        part = os.path.join(folder, "part")

        def run(*arguments):
            return subprocess.run([embody, *arguments], check=True, stdout=subprocess.PIPE).stdout

        def told(what, count, start, before):
            seconds, processor = time.monotonic() - start, spent() - before
            each = f"{1000 * processor / count:.0f}" if count else ""
            print(f"| {what} | {count or ''} | {seconds:.2f} | {processor:.2f} | {each} |", flush=True)

        def convert(output, *more):
            run("convert", "--quiet", "--jobs", "1", *more, "--output", output, mbox)

        with open(mbox, "rb") as file:
            while file.read(1 << 20):
                pass
        start, before = time.monotonic(), spent()
        convert(part)
        told("one run without ranges", 0, start, before)
        whole = hashed([part])
        for size in SIZES:
            start, before = time.monotonic(), spent()
            ranges = [json.loads(line) for line in run("split", "--size", size, mbox).splitlines()]
            told(f"split --size {size}", len(ranges), start, before)
            start, before = time.monotonic(), spent()
            parts = []
            for piece in ranges:
                parts.append(f"{part}-{len(parts)}")
                expect = f"{piece['length']}:{piece['mtime']}"
                convert(parts[-1], "--range", f"{piece['from']}-{piece['to']}", "--expect", expect)
            told(f"ranges of {size}", len(ranges), start, before)
            if hashed(parts) != whole:
                sys.exit(f"the joined ranges of {size} are not identical to the result of one run")
        # The ranges of --range may begin and end anywhere, also within a message.
        length = os.path.getsize(mbox)
        parts = []
        for at in range(0, length, 64_000_007):
            parts.append(f"{part}-{len(parts)}")
            convert(parts[-1], "--range", f"{at}-{at + 64_000_007}")
        if hashed(parts) != whole:
            sys.exit("the joined ranges of 64,000,007 bytes are not identical to the result of one run")
        start, before = time.monotonic(), spent()
        for number in range(100):
            convert(f"{part}-{number}", "--range", f"{length - 2}-{length - 1}")
        told("ranges in which no message begins", 100, start, before)
        print("\nThe joined ranges of each size are identical to the result of one run.")


if __name__ == "__main__":
    main()

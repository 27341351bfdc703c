#!/usr/bin/env python3
"""benches/merge.py EMBODY [MAILS BOXES]: merges mboxes with embody merge, and reads the same files with embody inspect.

Generates MAILS mails (default: 5,000,000) in BOXES mboxes (default: 500). Half of the mails of every second mbox are
copies of mails in the mbox before it. The dates of consecutive mails are spread over one day. merge sorts the mails by date,
so it must read its temporary file in scattered order. The two commands run alternately, three times each. Prints the times in
seconds, the ratio of the fastest times (goal: at most 2), and the peak memory in MiB (goal: at most 128).
"""

import os
import random
import subprocess
import sys
import tempfile
import time

RUNS = 3
WORDS = """the mail server patch review please apply this change because kernel driver memory list archive thread reply
tested works fine thanks regards build failed again""".split()


def mail(number):
    choose = random.Random(number)
    body = "\n".join(" ".join(choose.choices(WORDS, k=12)) for _ in range(6))
    return (
        f"From: user{number % 5000}@example.org\nTo: list@example.org\n"
        f"Subject: {' '.join(choose.choices(WORDS, k=5))}\n"
        f"Message-ID: <{number}.{number * 7919 % 1000003}@mail.example.org>\n"
        f"Date: Tue, 14 May 2024 {number % 24:02}:{number % 60:02}:{number // 60 % 60:02} +0200\n"
        f"MIME-Version: 1.0\nContent-Type: text/plain; charset=us-ascii\n\n{body}\n"
    ).encode()


def generate(folder, mails, boxes):
    """Writes the mboxes, and returns their paths."""
    each = mails // boxes
    paths = []
    for box in range(boxes):
        paths.append(os.path.join(folder, f"{box:03}.mbox"))
        with open(paths[-1], "wb", buffering=1 << 20) as file:
            for index in range(each):
                is_copy = box % 2 == 1 and index < each // 2
                number = (box - 1 if is_copy else box) * each + index
                file.write(b"From a@example.org Tue May 14 12:00:00 2024\n" + mail(number) + b"\n")
    return paths


def measure(arguments):
    """Runs a command. Returns its time in seconds, its processor time in seconds, and its peak memory in bytes."""
    start = time.monotonic()
    with open(os.devnull, "w") as nowhere:
        process = subprocess.Popen(arguments, stdout=nowhere, stderr=nowhere)
        _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{arguments[1]} ended with the wait status {status}")
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10


def main():
    embody = sys.argv[1]
    mails, boxes = map(int, sys.argv[2:]) if len(sys.argv) > 2 else (5_000_000, 500)
    times = {"inspect": [], "merge": []}
    most = dict.fromkeys(times, 0)
    with tempfile.TemporaryDirectory() as folder:
        paths = generate(folder, mails, boxes)
        output = os.path.join(folder, "merged")
        for _ in range(RUNS):
            for command, more in [("inspect", []), ("merge", ["--output", output])]:
                seconds, processor, memory = measure([embody, command, *more, *paths])
                times[command].append(seconds)
                most[command] = max(most[command], memory)
                print(f"{command}: {seconds:.2f} s, {processor:.2f} s of processor time, {memory >> 20} MiB", flush=True)
            os.remove(output)
    fastest = {command: min(of_command) for command, of_command in times.items()}
    print(f"merge takes {fastest['merge'] / fastest['inspect']:.2f} times as long as inspect, and {most['merge'] >> 20} MiB")


if __name__ == "__main__":
    main()

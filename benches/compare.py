#!/usr/bin/env python3
"""Measures `embody compare`: its time, its memory and its temporary file (docs/figures.md).

    benches/compare.py EMBODY [OLDER]

EMBODY is a release build. A second program, an older version, is measured alternately with the first one. Two mboxes are
generated: one with pictures in `data:` URLs and links to pictures, and one with attachments of 2 to 30 kB. Each is compared with
itself, and with what `embed --embed data` or `detach` made of it. MAILS (5000) is the number of mails, TURNS (3) the number of
runs; the fastest one counts. The memory of each message is the difference between MAILS and ten times as many mails.
"""

import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

MAILS, TURNS = int(os.environ.get("MAILS", 5000)), int(os.environ.get("TURNS", 3))
HEADER = (
    "From a@example.org Sat Jan  3 01:05:34 2015\nFrom: Ann <ann@example.org>\nSubject: mail {0}\nDate: Mon, 2 Jan 2023 10:00:00 +0000\n"
    "Message-ID: <{0}@example.org>\nMIME-Version: 1.0\n")


def picture(number):
    """Returns a PNG of 9 x 9 pixels, with a different content for each number."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    rows = b"".join(b"\0" + (number * 31 + row).to_bytes(3, "big") * 9 for row in range(9))
    head = b"\0\0\0\x09\0\0\0\x09\x08\x02\0\0\0"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def with_pictures(number):
    url = "data:image/png;base64," + base64.b64encode(picture(number)).decode()
    return HEADER.format(number) + (
        "Content-Type: text/html; charset=utf-8\n\n" + "<p>a line of the text of a mail, with some words in it</p>\n" * 50
        + f'<img src="{url}"><img src="https://www.example.org/{number}.png">\n\n')


def with_attachment(number):
    octets = random.Random(number).randbytes((2000, 8000, 30000)[number % 3])
    return HEADER.format(number) + (
        "Content-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: text/plain\n\nhello\n\n--B\n"
        "Content-Type: application/octet-stream; name=a.bin\nContent-Disposition: attachment; filename=a.bin\n"
        f"Content-Transfer-Encoding: base64\n\n{base64.encodebytes(octets).decode()}--B--\n\n")


def write(path, mail, count):
    with open(path, "w") as file:
        for number in range(count):
            file.write(mail(number))
    return path


def measured(program, old, new):
    """Returns seconds, seconds of the processor, kilobytes of memory, and the counts."""
    begun = time.monotonic()
    process = subprocess.Popen([program, "compare", "--json", old, new], stdout=subprocess.PIPE)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit(f"{program} compare {old} {new}: {output[-300:]}")
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, json.loads(output.splitlines()[-1])["compare"]


def main():
    programs = sys.argv[1:]
    if not programs:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)

        def changed(path, *options):
            made = path.with_suffix(".new")
            subprocess.run([programs[0], *options, "--quiet", path, "--output", made], check=True)
            return made

        pictures = write(folder / "pictures.mbox", with_pictures, MAILS)
        attachments = write(folder / "attachments.mbox", with_attachment, MAILS)
        embedded = changed(pictures, "embed", "--embed", "data")
        detached = changed(attachments, "detach", "--larger-than", "1k", "--store", folder / "store")
        print("| mailbox | size | program | seconds | processor | memory | temporary file |\n|---|---|---|---|---|---|---|")
        for name, old, new in (
            ("pictures, unchanged", pictures, pictures), ("pictures, embedded", pictures, embedded),
            ("attachments, unchanged", attachments, attachments), ("attachments, detached", attachments, detached),
        ):
            best = {}
            for _ in range(TURNS):
                for program in programs:
                    made = measured(program, old, new)
                    best[program] = min(best.get(program, made), made, key=lambda it: it[1])
            for program in programs:
                seconds, processor, memory, counts = best[program]
                size = f"{old.stat().st_size / 1e6:.0f} MB"
                print(
                    f"| {name} | {size} | {Path(program).parent.parent.name} | {seconds:.2f} | {processor:.2f} s | {memory / 1024:.1f} MiB "
                    f"| {counts.get('temporary', 0) / MAILS:.0f} bytes a mail |")
        many = write(folder / "many.mbox", with_pictures, 10 * MAILS)
        made = changed(many, "embed", "--embed", "data")
        for name, few, more in (("unchanged", pictures, many), ("embedded", embedded, made)):
            small, large = measured(programs[0], pictures, few), measured(programs[0], many, more)
            print(f"memory of each further mail, {name}: {(large[2] - small[2]) * 1024 / (9 * MAILS):.0f} bytes")


if __name__ == "__main__":
    main()

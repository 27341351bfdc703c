#!/usr/bin/env python3
"""Merges mboxes on a Spark cluster. The result has several parts, and contains each mail once, in its most complete copy.

    spark-submit --master 'local[2,4]' merge.py --output DIR SOURCE...

SOURCE and DIR must be on a file system that all hosts share. With --local, the same stages run in this process, without Spark.
docs/scale.md explains the stages and the files in DIR.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from functools import partial
from pathlib import Path

# Number of bytes that are copied at once.
BLOCK = 8 << 20


def embody(job, *arguments):
    """Runs embody. Returns an error or None, and the output. If a signal kills the process, it is started again, at most twice."""
    for _ in range(3):
        done = subprocess.run([job.embody, *arguments], capture_output=True, text=True, errors="replace")
        if done.returncode >= 0:
            break
    return None if done.returncode == 0 else f"status {done.returncode}: {done.stderr.strip()[-1000:]}", done.stdout


def read(lines):
    return [json.loads(line) for line in lines.splitlines()]


def split(job, source):
    """Returns the ranges of a source, and an error or None. Each range has the number of its source on the command line."""
    number, path = source
    why, found = embody(job, "split", "--size", job.size, "--", path)
    pieces = [dict(piece, number=number) for piece in read(found)]
    return pieces, why and f"{path}: {why}"


def cut(piece, folder):
    """Copies a range to a new file in `folder`, and returns its path. Raises OSError if the source has changed since embody
    split read it. Ranges of embody split begin and end where messages begin."""
    part = os.path.join(folder, "range.mbox")
    with open(piece["path"], "rb") as source, open(part, "wb") as copy:
        source.seek(piece["from"])
        left = piece["to"] - piece["from"]
        while left:
            octets = source.read(min(left, BLOCK))
            if not octets:
                raise OSError("the source became shorter during the run")
            left -= copy.write(octets)
        if source.read(5) not in (b"", b"From "):
            raise OSError("the range does not end where a message begins")
    now = os.stat(piece["path"])
    if now.st_size != piece["length"]:
        raise OSError("the source changed during the run")
    return part


def starts(file, messages):
    """Returns the position of the separator line (From ) before each message."""
    for message in messages:
        if message["at"] is None:
            raise ValueError("the source is not an mbox; convert it with embody convert --output-format mbox")
        end = message["at"] - 1
        at = end
        while at and file[at - 1 : at] != b"\n":
            at -= 1
        if file[at : at + 5] != b"From ":
            raise ValueError("the source is not an mbox; convert it with embody convert --output-format mbox")
        yield at


def group(job, piece):
    """Divides the messages of a range into groups: all copies of a mail have the same key, so they are in the same group. Returns
    an error or None."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            part = cut(piece, folder)
            why, found = embody(job, "inspect", "--keys", "--", part)
            if why:
                return why
            messages = read(found)
            octets = Path(part).read_bytes()
            begins = list(starts(octets, messages))
            if begins[:1] != [0]:
                return "the range does not begin with a message"
            groups = {}
            for message, start, end in zip(messages, begins, [*begins[1:], len(octets)]):
                groups.setdefault(int(message["key"], 16) % job.groups, []).append(octets[start:end])
            for number, mails in groups.items():
                put(b"".join(mails), os.path.join(job.output, "groups", f"{number:05}", name(piece)))
    except (OSError, ValueError) as error:
        return str(error)
    return None


def name(piece):
    """Returns the name of the file with the messages of a range. The names sort in the order of the sources and ranges."""
    return f"{piece['number']:08}-{piece['from']:020}"


def put(octets, path):
    """Writes a file that appears under its name when it is complete, so that two workers with the same task do not disturb each
    other."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = f"{os.path.dirname(path)}/.{uuid.uuid4().hex}"
    Path(new).write_bytes(octets)
    os.replace(new, path)


def merge(job, number):
    """Merges the messages of one group. Returns an error or None, and the counts."""
    folder = os.path.join(job.output, "groups", f"{number:05}")
    with tempfile.TemporaryDirectory(dir=job.output, prefix="tmp-") as new:
        # The files of one source become one mailbox, because embody prefers the copy of the first source.
        sources = {}
        for part in sorted(os.listdir(folder)):
            if not part.startswith("."):
                sources.setdefault(part.split("-")[0], []).append(os.path.join(folder, part))
        mailboxes = [os.path.join(new, source) for source in sources]
        for mailbox, parts in zip(mailboxes, sources.values()):
            with open(mailbox, "wb") as out:
                for part in parts:
                    with open(part, "rb") as mails:
                        shutil.copyfileobj(mails, out, BLOCK)
        told = ["merge", "--json", "--quiet", "--order", job.order, "--output-format", "mbox", "--format", "mbox"]
        why, found = embody(job, *told, "--output", os.path.join(new, "part.mbox"), "--", *mailboxes)
        if why:
            return why, None
        os.replace(os.path.join(new, "part.mbox"), os.path.join(job.output, "parts", f"{number:05}.mbox"))
    counts = read(found)[-1]["merge"]
    # embody names the sources of the group by their paths, which are replaced by their numbers on the command line.
    numbers = {mailbox: int(source) for mailbox, source in zip(mailboxes, sources)}
    counts["pairs"] = [[*(numbers[it] for it in pair["sources"]), pair["mails"]] for pair in counts["pairs"]]
    return None, counts


def total(job, all_counts):
    """Returns the counts of all groups together, in the form that embody merge prints."""
    sums, pairs, different = {}, {}, {}
    for counts in all_counts:
        # The files of a group are the parts into which the sources were split, so their numbers say nothing about the sources.
        counts.pop("files", None)
        for one, other, mails in counts.pop("pairs"):
            pairs[one, other] = pairs.get((one, other), 0) + mails
        for kind in counts.pop("different"):
            different[kind["difference"]] = different.get(kind["difference"], 0) + kind["mails"]
        for field, count in counts.items():
            sums[field] = sums.get(field, 0) + count
    sums["different"] = [{"difference": kind, "mails": mails} for kind, mails in sorted(different.items())]
    sums["pairs"] = [{"sources": [job.source[it] for it in pair], "mails": mails} for pair, mails in sorted(pairs.items())]
    return sums


def run(job, each):
    """Runs the stages, and returns the exit status. `each` applies a function to each item of a list, here or on a cluster."""
    for folder in ["groups", "parts"]:
        os.makedirs(os.path.join(job.output, folder))
    found = each(partial(split, job), list(enumerate(map(os.path.abspath, job.source))))
    troubles = [why for _, why in found if why]
    pieces = [piece for pieces, _ in found for piece in pieces]
    whys = each(partial(group, job), pieces)
    troubles += [f"{piece['path']} {piece['from']}-{piece['to']}: {why}" for piece, why in zip(pieces, whys) if why]
    # After an error, nothing is merged: if a complete copy is missing, a group would keep an incomplete one.
    if not troubles:
        numbers = sorted(int(number) for number in os.listdir(os.path.join(job.output, "groups")))
        done = each(partial(merge, job), numbers)
        troubles += [f"group {number}: {why}" for number, (why, _) in zip(numbers, done) if why]
        if not troubles:
            shutil.rmtree(os.path.join(job.output, "groups"))
            print(json.dumps({"kind": "merge", "merge": total(job, [counts for _, counts in done])}))
    for trouble in troubles:
        print(trouble, file=sys.stderr)
    return 1 if troubles else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="a new directory")
    parser.add_argument("--size", default="128M", help="size of a range")
    parser.add_argument("--groups", type=int, default=64, help="number of groups, and of parts")
    parser.add_argument("--order", choices=["date", "first"], default="date", help="order of the mails in each part")
    parser.add_argument("--embody", default="embody", help="path of the program on each host")
    parser.add_argument("--local", action="store_true", help="run in this process, without Spark")
    parser.add_argument("source", nargs="+", help="an mbox that is not compressed")
    job = parser.parse_args()
    job.output = os.path.abspath(job.output)
    os.makedirs(job.output)
    if job.local:
        return run(job, lambda work, items: [work(item) for item in items])
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("embody-merge").getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    # Each item is a task of its own.
    done = run(job, lambda work, items: spark.sparkContext.parallelize(items, max(1, len(items))).map(work).collect())
    spark.stop()
    return done


if __name__ == "__main__":
    sys.exit(main())

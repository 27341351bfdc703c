#!/usr/bin/env python3
"""Converts mboxes on a Spark cluster: what would be fetched, each of it once, then all mail with nobody to ask.

    spark-submit --master 'local[2,4]' convert.py --output DIR --cache DIR SOURCE... -- --fetch https

SOURCE, DIR and the cache are on a file system that all hosts share. What stands behind -- goes to embody. docs/scale.md
explains the stages, and what is in DIR.
"""

import argparse
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
import zlib
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

# What the report says of each reference: docs/reasons.md.
ROW = """time string, source string, range string, length long, mtime string, index long, message_id string,
    message string, part string, kind string, url string, outcome string, reason string, detail string,
    media_type string, bytes long, ms long"""
# References that content brings in, level by level.
ROUNDS = 4
DIED = "its worker died"


def embody(job, arguments, rows=None):
    """Runs embody; gives why it failed, if it did, and what it printed. What was killed is tried again."""
    for _ in range(3):
        if rows:
            Path(rows).unlink(missing_ok=True)
        done = subprocess.run([job.embody, *arguments], capture_output=True, text=True, errors="replace")
        if done.returncode >= 0:
            break
    said = done.stderr.strip()
    return None if done.returncode == 0 else f"status {done.returncode}: {said[-1000:]}", done.stdout


def convert(job, piece, rows, *more):
    """embody convert for one range, on one core: Spark has one task for each."""
    of = ["--range", f"{piece['from']}-{piece['to']}", "--expect", f"{piece['length']}:{piece['mtime']}"]
    told = ["convert", "--quiet", "--jobs", "1", "--cache", job.cache, "--report", rows, *job.options]
    return embody(job, [*told, *of, *more, "--", piece["path"]], rows)[0]


def read(rows):
    with open(rows, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def split(job, source):
    """The ranges of a source, and what went wrong."""
    why, lines = embody(job, ["split", "--size", job.size, "--", source])
    return [json.loads(line) for line in lines.splitlines()], why and f"{source}: {why}"


def look(job, piece):
    """What a range refers to. A range that fails here fails in the third stage, and is listed there."""
    with tempfile.TemporaryDirectory() as folder:
        rows = os.path.join(folder, "rows")
        convert(job, piece, rows, "--dry-run", "--output", os.path.join(folder, "none"))
        found = read(rows) if os.path.exists(rows) else []
    return {(row["kind"], row["url"], row["media_type"]) for row in found if row["outcome"] == "would-fetch"}


def host(reference):
    try:
        return urlsplit(reference[1]).hostname or ""
    except ValueError:
        return ""


def letter(kind, url, media_type):
    """A message with one reference, asked for as the mail asks: an answer is kept for a URL and a media type."""
    if re.search(r"[\x00-\x1f\x7f]", url):
        return ""
    head = "From - Thu Jan  1 00:00:00 1970\nSubject: one reference\nMIME-Version: 1.0\nContent-Type: "
    if kind == "embed":
        return f'{head}text/html; charset=utf-8\n\n<img src="{html.escape(url)}">\n\n'
    url = re.sub(r'(["\\])', r"\\\1", url)
    is_type = re.fullmatch(r"[\w.+-]+/[\w.+-]+", media_type or "", re.ASCII)
    declared = f"Content-Type: {media_type}\n" if is_type else ""
    return f'{head}message/external-body; access-type=URL;\n URL="{url}"\n\n{declared}Content-ID: <1@invalid>\n\n\n'


def fetch(job, references):
    """Brings what a host has into the cache. A host is in one partition: no two workers ask it at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        mailbox = os.path.join(folder, "mbox")
        with open(mailbox, "w", encoding="utf-8", errors="replace", newline="\n") as out:
            count = sum(bool(out.write(letter(*reference))) for _, reference in references)
        told = ["convert", "--quiet", "--cache", job.cache, *job.options, "--output", "/dev/null", "--", mailbox]
        yield count, count and embody(job, told)[0]


def place(job, piece):
    """Where a range's part goes: names in order, beneath the name of the source; and its rows."""
    name = f"{piece['from']:020}-{piece['to']:020}"
    path = os.path.abspath(piece["path"])
    rows = f"{hashlib.sha256(path.encode()).hexdigest()[:32]}-{name}.jsonl"
    return os.path.join(job.output, "parts", path.lstrip("/"), name), os.path.join(job.output, "rows", rows)


def write(job, piece):
    """The part of a range, whole or not at all: two workers that do the same do not meet."""
    part, rows = place(job, piece)
    new = os.path.join(job.output, "tmp", uuid.uuid4().hex)
    why = convert(job, piece, new + ".rows", "--offline", "--output", new)
    if why is None:
        os.makedirs(os.path.dirname(part), exist_ok=True)
        os.replace(new + ".rows", rows)
        os.replace(new, part)
    return why


def stage(sc, work, items):
    """A task for each; what a worker that died too often left undone has no result."""
    failed = {}
    tasks = sc.parallelize(list(enumerate(items)), max(1, len(items)))
    try:
        failed = dict(tasks.map(lambda item: (item[0], work(item[1]))).collect())
    except Py4JJavaError as error:
        print(f"Spark gave up: {str(error.java_exception)[:500]}", file=sys.stderr)
    return [failed.get(number, DIED) for number in range(len(items))]


def main():
    behind = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="a new folder")
    parser.add_argument("--cache", required=True, help="the cache of embody")
    parser.add_argument("--size", default="128M", help="octets in a range")
    parser.add_argument("--ranges", help="ranges as embody split names them: failed.jsonl of a run, with its --output")
    parser.add_argument("--embody", default="embody", help="the program, on each host")
    parser.add_argument("source", nargs="*")
    job = parser.parse_args(sys.argv[1:behind])
    job.options = sys.argv[behind + 1 :]
    job.output, job.cache = os.path.abspath(job.output), os.path.abspath(job.cache)
    if bool(job.ranges) == bool(job.source):
        parser.error("either SOURCE or --ranges")
    spark = SparkSession.builder.appName("embody").getOrCreate()
    sc = spark.sparkContext
    sc.setLogLevel("WARN")
    troubles = []
    if job.ranges:
        pieces = read(job.ranges)
        for piece in pieces:
            for old in place(job, piece):
                Path(old).unlink(missing_ok=True)
    else:
        os.makedirs(job.output)
        sources = [os.path.abspath(source) for source in job.source]
        found = sc.parallelize(sources, len(sources)).map(partial(split, job)).collect()
        pieces = [piece for pieces, _ in found for piece in pieces]
        troubles = [why for _, why in found if why]
        lines = "".join(json.dumps(piece) + "\n" for piece in pieces)
        Path(job.output, "ranges.jsonl").write_text(lines, encoding="utf-8")
    for name in ["rows", "tmp", "parts"]:
        os.makedirs(os.path.join(job.output, name), exist_ok=True)

    # An empty cache is one, too: the last stage asks for it though nothing was fetched.
    embody(job, ["convert", "--quiet", "--cache", job.cache, "--output", "/dev/null", "--", "/dev/null"])
    ranges = sc.parallelize(pieces, max(1, len(pieces)))
    missing = ranges.flatMap(partial(look, job)).distinct().persist()
    asked, todo = sc.emptyRDD(), list(range(len(pieces)))
    failed = {}
    rows = spark.read.schema(ROW).json(Path(job.output, "rows").as_uri())
    for _ in range(ROUNDS):
        by_host = missing.keyBy(host).partitionBy(4 * sc.defaultParallelism, lambda name: zlib.crc32(name.encode()))
        fetched = by_host.mapPartitions(partial(fetch, job)).collect()
        print(f"asked for {sum(count for count, _ in fetched)} URLs")
        troubles += [f"fetching: {why}" for _, why in fetched if why]
        asked = asked.union(missing)
        whys = stage(sc, partial(write, job), [pieces[number] for number in todo])
        # A part is there whole, or not at all.
        is_there = [not failed and os.path.exists(place(job, pieces[number])[0]) for number in todo]
        failed.update({n: why if why != DIED or not there else None for n, why, there in zip(todo, whys, is_there)})
        # What was not known before its parent was there.
        rows = spark.read.schema(ROW).json(Path(job.output, "rows").as_uri())
        lacking = rows.where("reason = 'offline' and url rlike '^(?i:https?):'")
        missing = lacking.select("kind", "url", "media_type").rdd.map(tuple).distinct().subtract(asked).persist()
        if missing.isEmpty():
            break
        new = {url for _, url, _ in missing.collect()}
        where = {(row.source, row.range) for row in lacking.select("source", "range", "url").collect() if row.url in new}
        todo = [n for n, piece in enumerate(pieces) if (piece["path"], f"{piece['from']}-{piece['to']}") in where]
    rows.write.mode("overwrite").parquet(Path(job.output, "report.parquet").as_uri())

    shutil.rmtree(os.path.join(job.output, "tmp"))
    undone = [dict(pieces[number], why=why) for number, why in sorted(failed.items()) if why]
    lines = "".join(json.dumps(piece) + "\n" for piece in undone)
    Path(job.output, "failed.jsonl").write_text(lines, encoding="utf-8")
    for trouble in troubles + [f"{piece['path']} {piece['from']}-{piece['to']}: {piece['why']}" for piece in undone]:
        print(trouble, file=sys.stderr)
    print(f"{len(pieces)} ranges, {len(undone)} failed")
    spark.stop()
    return 1 if troubles or undone else 0


if __name__ == "__main__":
    sys.exit(main())

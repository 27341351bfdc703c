#!/usr/bin/env python3
"""Converts mboxes on a Spark cluster. First, each URL is fetched once into the cache. Then all mail is converted offline.

    spark-submit --master 'local[2,4]' convert.py --output DIR --cache DIR SOURCE... -- --fetch https

SOURCE, DIR and the cache must be on a file system that all hosts share. SOURCE can also be in a bucket, s3://BUCKET/KEY, and
parts can be written to a bucket. Options after -- are passed to embody. docs/scale.md explains the stages and the files in DIR.
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
from contextlib import contextmanager
from datetime import datetime
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

from py4j.protocol import Py4JJavaError
from pyarrow import fs
from pyspark.sql import SparkSession

# Columns of the report, which docs/reasons.md explains.
ROW = """time string, source string, range string, length long, mtime string, index long, message_id string,
    date string, message string, part string, kind string, url string, outcome string, reason string, detail string,
    media_type string, bytes long, ms long"""
# Maximum number of rounds. Each round fetches the references in the content that the previous round has fetched.
ROUNDS = 4
DIED = "its worker died"
# Number of bytes before and after a range that are copied with the range. embody needs them to find where messages begin.
MARGIN = 1 << 20


def is_object(name):
    return "://" in name


def split_query(name):
    """Splits the name of an object into the name, the question mark and the query, which sets how the object is reached."""
    return name.partition("?") if is_object(name) else (name, "", "")


def listed(source):
    """Returns the files of a source. For a bucket, this is the object with this name, or all objects below it."""
    if not is_object(source):
        return [os.path.abspath(source)]
    filesystem, path = fs.FileSystem.from_uri(source)
    if filesystem.get_file_info(path).type == fs.FileType.File:
        return [source]
    beneath = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
    scheme, query = source.split("://")[0], "".join(split_query(source)[1:])
    return [f"{scheme}://{quote(info.path)}{query}" for info in beneath if info.type == fs.FileType.File]


@contextmanager
def here(name, wanted=None):
    """Yields the path of a local file for embody. For an object, this is a sparse file with the length and the time of the
    object. It contains only the bytes of the ranges in `wanted`, at their positions, or all bytes if `wanted` is `None`."""
    if not is_object(name):
        yield name
        return
    filesystem, path = fs.FileSystem.from_uri(name)
    info = filesystem.get_file_info(path)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, os.path.basename(path))
        with filesystem.open_input_file(path) as source, open(file, "wb") as copy:
            copy.truncate(info.size)
            for start, end in wanted or [(0, info.size)]:
                at, end = max(start, 0), min(end, info.size)
                while at < end:
                    octets = source.read_at(min(end - at, 8 * MARGIN), at)
                    if not octets:
                        raise OSError(f"{name}: the object became shorter while it was read")
                    copy.seek(at)
                    at += copy.write(octets)
        now = filesystem.get_file_info(path)
        if (now.size, now.mtime_ns) != (info.size, info.mtime_ns):
            raise OSError(f"{name}: the object changed while it was read")
        os.utime(file, ns=(info.mtime_ns, info.mtime_ns))
        yield file


def embody(job, arguments, rows=None):
    """Runs embody. Returns an error or None, and the output. If a signal kills the process, it is started again, at most twice."""
    for _ in range(3):
        if rows:
            Path(rows).unlink(missing_ok=True)
        done = subprocess.run([job.embody, *arguments], capture_output=True, text=True, errors="replace")
        if done.returncode >= 0:
            break
    said = done.stderr.strip()
    return None if done.returncode == 0 else f"status {done.returncode}: {said[-1000:]}", done.stdout


def convert(job, piece, rows, *more):
    """Converts one range on one core, because Spark runs one task on each core. Returns an error or None."""
    name, start, end = piece["path"], piece["from"], piece["to"]
    of = ["--range", f"{start}-{end}", "--expect", f"{piece['length']}:{piece['mtime']}"]
    told = ["convert", "--quiet", "--jobs", "1", "--cache", job.cache, "--report", rows, *job.options]
    try:
        with here(name, [(0, 2 * MARGIN), (start - MARGIN, end + MARGIN)]) as file:
            with open(file, "rb") as mail:
                mail.seek(end)
                if mail.read(5) not in (b"", b"From "):
                    return "the range does not end where a message begins"
            why, _ = embody(job, [*told, *of, *more, "--", file], rows)
    except (OSError, ValueError) as error:
        return str(error)
    if file != name and os.path.exists(rows):
        Path(rows).write_text(lines(dict(row, source=name) for row in read(rows)), encoding="utf-8")
    return why


def read(rows):
    with open(rows, encoding="utf-8") as rows:
        return [json.loads(row) for row in rows]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def split(job, source):
    """Returns the ranges of a source, and an error or None."""
    try:
        with here(source) as file:
            why, found = embody(job, ["split", "--size", job.size, "--", file])
    except (OSError, ValueError) as error:
        return [], str(error)
    found = [json.loads(piece) for piece in found.splitlines()]
    return [dict(piece, path=source) if file != source else piece for piece in found], why and f"{source}: {why}"


def look(job, piece):
    """Returns the references of a range. Errors are ignored, because the range fails again in the third stage, which reports them."""
    with tempfile.TemporaryDirectory() as folder:
        rows = os.path.join(folder, "rows")
        convert(job, piece, rows, "--dry-run", "--output", os.path.join(folder, "none"))
        found = read(rows) if os.path.exists(rows) else []
    return {tuple(row[name] for name in job.known_by) for row in found if row["outcome"] == "would-fetch"}


def host(reference):
    try:
        return urlsplit(reference[1]).hostname or ""
    except ValueError:
        return ""


def letter(kind, url, media_type, date=None):
    """Returns a message with one reference, or an empty text if the URL contains control characters. The reference has the
    media type of the original, and the message has its date if an archive is used, because the cache stores responses by URL,
    media type and date."""
    if re.search(r"[\x00-\x1f\x7f]", url):
        return ""
    date = f"Date: {format_datetime(datetime.fromisoformat(date.replace('Z', '+00:00')))}\n" if date else ""
    head = f"From - Thu Jan  1 00:00:00 1970\n{date}Subject: one reference\nMIME-Version: 1.0\nContent-Type: "
    if kind == "embed":
        element = '<link rel="stylesheet" href' if media_type == "text/css" else "<img src"
        return f'{head}text/html; charset=utf-8\n\n{element}="{html.escape(url)}">\n\n'
    url = re.sub(r'(["\\])', r"\\\1", url)
    is_type = re.fullmatch(r"[\w.+-]+/[\w.+-]+", media_type or "", re.ASCII)
    declared = f"Content-Type: {media_type}\n" if is_type else ""
    return f'{head}message/external-body; access-type=URL;\n URL="{url}"\n\n{declared}Content-ID: <1@invalid>\n\n\n'


def fetch(job, references):
    """Fetches the URLs of a partition into the cache. Yields the number of URLs, and an error or None (0 without URLs). All
    URLs of a host are in the same partition, so that only one worker sends requests to this host."""
    with tempfile.TemporaryDirectory() as folder:
        mailbox = os.path.join(folder, "mbox")
        with open(mailbox, "w", encoding="utf-8", errors="replace", newline="\n") as out:
            count = sum(bool(out.write(letter(*reference))) for _, reference in references)
        told = ["convert", "--quiet", "--cache", job.cache, *job.options, "--output", "/dev/null", "--", mailbox]
        yield count, count and embody(job, told)[0]


def place(job, piece):
    """Returns the paths of the part and of the rows of a range. Parts sort by name, below the name of the source."""
    name = f"{piece['from']:020}-{piece['to']:020}"
    path = piece["path"] if is_object(piece["path"]) else os.path.abspath(piece["path"])
    rows = f"{hashlib.sha256(path.encode()).hexdigest()[:32]}-{name}.jsonl"
    # A key can contain . and .., which would lead to another directory.
    beneath = split_query(path)[0].replace("://", ":/").lstrip("/")
    beneath = re.sub(r"(?<![^/])\.{1,2}(?![^/])", lambda dots: "%2E" * len(dots[0]), beneath)
    parts, mark, query = split_query(job.parts)
    return f"{parts.rstrip('/')}/{beneath}/{name}{mark}{query}", os.path.join(job.output, "rows", rows)


def write(job, piece):
    """Writes the part of a range under a unique name and then renames it, so that two workers with the same range do not disturb each
    other. Returns an error or None."""
    part, rows = place(job, piece)
    new = os.path.join(job.output, "tmp", uuid.uuid4().hex)
    why = convert(job, piece, new + ".rows", "--offline", "--output", new)
    if why is None:
        os.replace(new + ".rows", rows)
        why = put(new, part)
    return why


def put(new, part):
    """Renames a complete file to `part`, or uploads it to the object `part`. An object appears under its name only after its
    last byte was sent. Returns an error or None."""
    if not is_object(part):
        os.makedirs(os.path.dirname(part), exist_ok=True)
        os.replace(new, part)
        return None
    filesystem, path = fs.FileSystem.from_uri(part)
    try:
        with open(new, "rb") as source, filesystem.open_output_stream(path) as target:
            shutil.copyfileobj(source, target, 8 * MARGIN)
        if filesystem.get_file_info(path).size != os.path.getsize(new):
            filesystem.delete_file(path)
            return f"{part}: the object is not complete after the upload"
    except (OSError, ValueError) as error:
        return str(error)
    os.remove(new)
    return None


def is_new(folder):
    if not is_object(folder):
        return not os.path.exists(folder)
    filesystem, path = fs.FileSystem.from_uri(folder)
    return not filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True))


def is_there(part):
    if not is_object(part):
        return os.path.exists(part)
    filesystem, path = fs.FileSystem.from_uri(part)
    return filesystem.get_file_info(path).type == fs.FileType.File


def remove(part):
    if not is_object(part):
        Path(part).unlink(missing_ok=True)
    elif is_there(part):
        filesystem, path = fs.FileSystem.from_uri(part)
        filesystem.delete_file(path)


def stage(sc, work, items):
    """Runs one task for each item. Returns the results. If Spark stops the stage, for example because a worker died too often,
    the result of every task is DIED."""
    failed = {}
    tasks = sc.parallelize(list(enumerate(items)), max(1, len(items)))
    try:
        failed = dict(tasks.map(lambda item: (item[0], work(item[1]))).collect())
    except Py4JJavaError as error:
        print(f"Spark stopped the stage: {str(error.java_exception)[:500]}", file=sys.stderr)
    return [failed.get(number, DIED) for number in range(len(items))]


def names_archive(options):
    return any(option.split("=")[0].startswith("--archive") for option in options)


def main():
    behind = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="a new directory")
    parser.add_argument("--cache", required=True, help="the directory for embody --cache")
    parser.add_argument("--parts", help="directory or s3://BUCKET/NAME for the parts [default: parts in --output]")
    parser.add_argument("--size", default="128M", help="size of a range")
    parser.add_argument("--ranges", help="file with ranges, as embody split prints them; failed.jsonl of a run with the same --output")
    parser.add_argument("--embody", default="embody", help="path of the program on each host")
    parser.add_argument("source", nargs="*")
    job = parser.parse_args(sys.argv[1:behind])
    job.options = sys.argv[behind + 1 :]
    if not any(option.startswith("--cache-max") for option in job.options):
        # With a limit, responses would be evicted before they are used.
        job.options += ["--cache-max", "none"]
    job.output, job.cache = os.path.abspath(job.output), os.path.abspath(job.cache)
    job.parts = job.parts or os.path.join(job.output, "parts")
    job.parts = job.parts if is_object(job.parts) else os.path.abspath(job.parts)
    # Columns of the report that together are the key of a response in the cache.
    job.known_by = ["kind", "url", "media_type", *(["date"] if names_archive(job.options) else [])]
    if bool(job.ranges) == bool(job.source):
        parser.error("give either SOURCE or --ranges")
    spark = SparkSession.builder.appName("embody").getOrCreate()
    sc = spark.sparkContext
    sc.setLogLevel("WARN")
    troubles = []
    if job.ranges:
        pieces = read(job.ranges)
        for piece in pieces:
            for old in place(job, piece):
                remove(old)
    else:
        os.makedirs(job.output)
        if not is_new(job.parts):
            parser.error("--parts: the directory already exists, and parts of two runs would be mixed; name a new directory")
        sources = [file for source in job.source for file in listed(source)]
        found = sc.parallelize(sources, len(sources)).map(partial(split, job)).collect()
        pieces = [piece for pieces, _ in found for piece in pieces]
        troubles = [why for _, why in found if why]
        Path(job.output, "ranges.jsonl").write_text(lines(pieces), encoding="utf-8")
    for name in ["rows", "tmp"]:
        os.makedirs(os.path.join(job.output, name), exist_ok=True)

    # Creates the cache, because the last stage needs it even if nothing was fetched.
    embody(job, ["convert", "--quiet", "--cache", job.cache, "--output", "/dev/null", "--", "/dev/null"])
    ranges = sc.parallelize(pieces, max(1, len(pieces)))
    missing = ranges.flatMap(partial(look, job)).distinct().persist()
    asked, todo = sc.emptyRDD(), list(range(len(pieces)))
    failed = {}
    rows = spark.read.schema(ROW).json(Path(job.output, "rows").as_uri())
    for _ in range(ROUNDS):
        by_host = missing.keyBy(host).partitionBy(4 * sc.defaultParallelism, lambda name: zlib.crc32(name.encode()))
        fetched = by_host.mapPartitions(partial(fetch, job)).collect()
        print(f"requested {sum(count for count, _ in fetched)} URLs")
        troubles += [f"fetching: {why}" for _, why in fetched if why]
        asked = asked.union(missing)
        whys = stage(sc, partial(write, job), [pieces[number] for number in todo])
        # A part exists only if it is complete, so the part of a worker that died later counts as done.
        done = [why == DIED and not failed and is_there(place(job, pieces[n])[0]) for n, why in zip(todo, whys)]
        failed.update({n: None if there else why for n, why, there in zip(todo, whys, done)})
        # These references were found only in the content of this round.
        rows = spark.read.schema(ROW).json(Path(job.output, "rows").as_uri())
        lacking = rows.where("reason = 'offline' and url rlike '^(?i:https?):'")
        missing = lacking.select(*job.known_by).rdd.map(tuple).distinct().subtract(asked).persist()
        if missing.isEmpty():
            break
        new = {reference[1] for reference in missing.collect()}
        where = {(row.source, row.range) for row in lacking.select("source", "range", "url").collect() if row.url in new}
        todo = [n for n, piece in enumerate(pieces) if (piece["path"], f"{piece['from']}-{piece['to']}") in where]
    rows.write.mode("overwrite").parquet(Path(job.output, "report.parquet").as_uri())

    shutil.rmtree(os.path.join(job.output, "tmp"))
    undone = [dict(pieces[number], why=why) for number, why in sorted(failed.items()) if why]
    Path(job.output, "failed.jsonl").write_text(lines(undone), encoding="utf-8")
    for trouble in troubles + [f"{piece['path']} {piece['from']}-{piece['to']}: {piece['why']}" for piece in undone]:
        print(trouble, file=sys.stderr)
    print(f"{len(pieces)} ranges, {len(undone)} failed")
    spark.stop()
    return 1 if troubles or undone else 0


if __name__ == "__main__":
    sys.exit(main())

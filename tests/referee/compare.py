"""Runs programs with one option set over one case, and compares the outcomes of two programs."""

import collections
import difflib
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import sets

# A source of mail. `name` is the name in messages, `source` the path of the mailbox or of a directory of mails, and
# `files` the directory for --attachments, or None.
Case = collections.namedtuple("Case", "name source files", defaults=(None,))
ASPECTS = ("output", "rows", "stderr", "status", "requests")
# Time limit for one process, in seconds.
LONGEST_RUN = 300
# Names of the fields of rows that contain sentences for people.
SENTENCES = ("detail", "remark", "remarks", "notes")

# The masks replace all values that may differ between two runs of the same program over the same input. A mask applies
# only to its aspects. The aspect "prose" is stderr, and standard output that is not a mail. The aspect "provenance" is the
# output of the option set `provenance`.
MASKS = [
    # aspects, pattern, replacement, reason
    (("rows",), rb'"time":"[^"]*"', b'"time":"TIME"', "the time at which the run began"),
    (("rows",), rb'"ms":\d+', b'"ms":0', "the duration of a retrieval, in milliseconds"),
    (("rows",), rb'"retrieved_at":"[^"]*"', b'"retrieved_at":"TIME"', "the time of the response"),
    (("rows",), rb'"record":"urn:uuid:[^"]*"', b'"record":"UUID"', "the random identifier of a WARC record"),
    (("provenance",), rb'retrieved="[^"]*"', b'retrieved="TIME"', "the time of the retrieval that --provenance writes"),
    (("provenance",), rb"=_embody_[0-9a-f]{24}", b"=_embody_BOUNDARY", "boundaries, which are hashes of parts that contain this time"),
    (("prose",), rb"(?<= in )(?:\d+ h )?(?:\d+ min )?[\d.]+ s\b", b"TIME", "the duration of the run"),
    (("prose",), rb"[\d.]+ [KMGT]iB are free", b"SIZE are free", "the free space of the disk"),
    (("rows", "prose"), rb"127\.0\.0\.1:\d{4,5}", b"127.0.0.1:PORT", "the port of the scripted server"),
    (("rows", "prose", "output"), rb"/[\w./-]*/referee-run-\d+(?=/)", b"RUN", "the temporary directory of a run"),
]


def masked(octets, aspect):
    """Returns the bytes with all masks of this aspect applied."""
    for aspects, pattern, replacement, _ in MASKS:
        if aspect in aspects:
            octets = re.sub(pattern, replacement, octets)
    return octets


class Outcome:
    """The outcome of one program. For each aspect, `of` contains a dictionary from names (of files or runs) to bytes."""

    def __init__(self):
        self.of = {aspect: {} for aspect in ASPECTS}

    def without_sentences(self):
        """Removes the texts for people from this outcome: stderr, standard output that is not JSON, and the fields
        SENTENCES of rows. Returns the outcome itself.
        """
        self.of["stderr"] = {}
        self.of["rows"] = {name: without_sentences(octets, SENTENCES) for name, octets in self.of["rows"].items()}
        self.of["output"] = {
            name: without_sentences(octets, SENTENCES) if octets[:1] == b"{" else b""
            for name, octets in self.of["output"].items() if name.startswith("stdout")
        } | {name: octets for name, octets in self.of["output"].items() if not name.startswith("stdout")}
        return self

    def digests(self):
        """Returns one digest for each aspect."""
        return {aspect: digest_of(self.of[aspect]) for aspect in ASPECTS}


def digest_of(named):
    hasher = hashlib.sha256()
    for name in sorted(named):
        hasher.update(f"{name} {len(named[name])}\n".encode("utf-8", "surrogateescape") + named[name])
    return hasher.hexdigest()[:16]


def mails_of(source):
    return sorted(path for path in source.iterdir() if path.is_file()) if source.is_dir() else []


def is_directory_of_mails(source):
    return source.is_dir() and any(path.suffix == ".eml" for path in source.iterdir())


def copied(source, target):
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


class Place:
    """The directory in which one worker runs OLD and NEW. Both programs get the same paths, so that paths in their output
    are equal.
    """

    def __init__(self, root, server, ignores_sentences=False):
        self.root, self.server, self.case = root, server, None
        self.ignores_sentences = ignores_sentences
        self.root.mkdir(parents=True, exist_ok=True)

    def prepare(self, case):
        """Copies the source of a case to this directory, and removes the files that the previous run created there."""
        if self.case != case.name:
            shutil.rmtree(self.root, ignore_errors=True)
            self.root.mkdir(parents=True)
            self.source = "in" + ("" if case.source.is_dir() else case.source.suffix)
            copied(case.source, self.root / self.source)
            if case.files:
                shutil.copytree(case.files, self.root / "files", symlinks=True)
            (self.root / "files").mkdir(exist_ok=True)
            (self.root / "srv").mkdir()
            (self.root / "srv/a.txt").write_bytes(b"A file of this machine.\n")
            (self.root / "resolve").write_text(sets.RESOLVER)
            (self.root / "resolve").chmod(0o755)
            self.case, self.kept = case.name, {entry.name for entry in self.root.iterdir()}
        for entry in self.root.iterdir():
            if entry.name not in self.kept:
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        (self.root / "tmp").mkdir()

    def run(self, program, case, steps, name):
        """Runs all steps of the option set `name` over a case, and returns their Outcome."""
        self.prepare(case)
        self.server.taken()
        outcome = Outcome()
        for number, step in enumerate(steps):
            if step.each:
                if not is_directory_of_mails(case.source):
                    continue
                (self.root / "out").mkdir(exist_ok=True)
                for mail in mails_of(self.root / self.source):
                    self.one(outcome, program, step, f"{number} {mail.name}", f"{self.source}/{mail.name}", mail.name)
            else:
                self.one(outcome, program, step, str(number), self.source, None)
            requests = self.server.taken()
            outcome.of["requests"][str(number)] = "\n".join(f"{method} {url}" for method, url in requests).encode("utf-8", "surrogateescape")
        self.collect(outcome, name)
        return outcome.without_sentences() if self.ignores_sentences else outcome

    def one(self, outcome, program, step, label, source, to):
        """Runs one process, and adds its exit status, stderr and standard output to the outcome.

        `label` is the name of the process in the outcome, and `source` the path of its input. If `to` is a name, standard
        output is written to the file of this name in the directory `out` instead.
        """
        arguments = []
        for argument in step.arguments:
            if argument == "@copy":
                target = self.root / ("copy" + Path(source).suffix)
                copied(self.root / source, target)
                argument = target.name
            argument = source if argument == "@in" else argument
            arguments.append(argument.replace("@run", str(self.root)).replace("@port", str(self.server.port)))
        environment = {
            "PATH": "/usr/bin:/bin", "HOME": str(self.root / "tmp"), "TMPDIR": str(self.root / "tmp"), "TZ": "UTC", "LC_ALL": "C.UTF-8",
        }
        command = ["embody"] + arguments
        try:
            done = subprocess.run(
                command, executable=program, cwd=self.root, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=LONGEST_RUN, check=False,
            )
            status, stdout, stderr = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            status, stdout, stderr = f"stopped after {LONGEST_RUN} s", late.stdout or b"", late.stderr or b""
        outcome.of["status"][label] = str(status).encode()
        outcome.of["stderr"][label] = masked(stderr, "prose")
        if to:
            (self.root / "out" / to).write_bytes(stdout)
        elif stdout:
            aspect = "prose" if stdout[:1] != b"{" else "rows"
            outcome.of["output"][f"stdout {label}"] = masked(masked(stdout, aspect), "prose")

    def collect(self, outcome, name):
        """Adds every file that the steps created to the outcome, except the files in `tmp` and `cache`, because the names
        and dates in a cache differ between runs. Files whose names begin with `rows` are the reports of --report.
        """
        for path in sorted(self.root.rglob("*")):
            relative = path.relative_to(self.root)
            if relative.parts[0] in self.kept | {"tmp", "cache"} or path.is_dir():
                continue
            octets = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            if relative.name.startswith("rows"):
                outcome.of["rows"][str(relative)] = masked(octets, "rows")
            elif path.name.endswith(".warc.gz"):
                outcome.of["output"][str(relative)] = warc(octets)
            else:
                octets = masked(octets, "output")
                if ".users" in relative.parts:
                    # The name of this file is a hash of the absolute path of a mailbox, which differs between workers. The
                    # file contains this path, too. The hash of the masked file is the same for all workers.
                    relative = relative.with_name(hashlib.sha256(octets).hexdigest()[:16])
                outcome.of["output"][str(relative)] = masked(octets, "provenance") if name == "provenance" else octets


def warc(octets):
    """Returns a sorted list of the records in a WARC file, one line each, without values that differ between runs.

    A line contains the type of the record, the URL, the media type, the reason for a truncation, and a digest of the
    content. Identifiers of records and the version in the user agent are replaced before the digest is computed.
    """
    lines = []
    for record in re.split(rb"(?m)^(?=WARC/1\.1\r\n)", gzip.decompress(octets))[1:]:
        head, _, body = record.partition(b"\r\n\r\n")
        fields = dict(re.findall(rb"(?im)^([\w-]+): ([^\r]*)", head))
        kind = fields.get(b"WARC-Type", b"-")
        if kind == b"warcinfo":
            continue
        if kind == b"metadata":
            body = re.sub(rb"urn:uuid:[\w-]+", b"UUID", body)
        if kind == b"request":
            body = re.sub(rb"(?i)user-agent: [^\r]*", b"user-agent: embody", body)
        shown = [kind, fields.get(b"WARC-Target-URI", b"-"), fields.get(b"Content-Type", b"-"), fields.get(b"WARC-Truncated", b"-")]
        lines.append(b" ".join(shown) + b" " + hashlib.sha256(body).hexdigest()[:16].encode())
    return b"\n".join(sorted(lines))


EXPECTED_HEAD = """\
# Digests of the results of embody for the mails that tests/referee/mails.py generates, one line for each option set and
# case. A line contains digests of the output, the rows of --report without their sentences, the exit statuses and the
# requests. `tests/referee/run --check` compares a program with this file, and `tests/referee/run --record` rewrites it.
"""


def without_sentences(rows, fields=("detail",)):
    """Returns rows (JSON Lines) without these fields, so that a reworded sentence is not a difference."""
    lines = []
    for line in rows.splitlines():
        try:
            row = json.loads(line)
            if isinstance(row, dict):
                row = {field: value for field, value in row.items() if field not in fields}
            lines.append(json.dumps(row))
        except ValueError:
            lines.append(line.decode("utf-8", "backslashreplace"))
    return "\n".join(lines).encode()


# Differences

def differing(old, new, name):
    """Returns the aspects that differ. `old` and `new` are digests of outcomes, and `name` is the option set. Requests are
    not compared for the option sets in sets.GROWTH.
    """
    return [aspect for aspect in ASPECTS if old[aspect] != new[aspect] and not (aspect == "requests" and name in sets.GROWTH)]


def first_mail(old, new):
    """Returns the name of the first mail that differs, and the difference as the lines of a unified diff.

    Rows are compared first. If all rows are equal, the exit statuses, the output, stderr and the requests are compared.
    """
    for name in sorted(set(old.of["rows"]) | set(new.of["rows"])):
        rows = [by_mail(it.of["rows"].get(name, b"")) for it in (old, new)]
        for mail in dict.fromkeys(list(rows[0]) + list(rows[1])):
            before, after = (it.get(mail, []) for it in rows)
            if before != after:
                return f"{mail} ({name})", unified(before, after)
    for aspect in ("status", "output", "stderr", "requests"):
        befores, afters = old.of[aspect], new.of[aspect]
        for name in sorted(set(befores) | set(afters)):
            before, after = befores.get(name), afters.get(name)
            if before != after:
                return place_of(name, before or b"", after or b""), [f"{aspect} {name}:"] + unified(lines_of(before), lines_of(after))
    return "-", []


def classes(old, new):
    """Returns the kinds of differences, as a dictionary from the name of a kind to the number of its occurrences.

    Example of a name: `rows: external-body left: reason: http-status -> timeout`. It contains the kind and the outcome of
    the row in OLD, the field that differs, and both values.
    """
    found = collections.Counter()
    for name in sorted(set(old.of["rows"]) | set(new.of["rows"])):
        rows = [by_mail(it.of["rows"].get(name, b"")) for it in (old, new)]
        for mail in dict.fromkeys(list(rows[0]) + list(rows[1])):
            before, after = ([json.loads(line) for line in it.get(mail, []) if line[:1] == "{"] for it in rows)
            if before == after:
                continue
            if len(before) != len(after):
                left = [row for row in before if row not in after]
                more = [row for row in after if row not in before]
                found.update(f"rows: {sign} {row.get('kind')} {row.get('outcome')} {row.get('reason')}" for sign, some in (("-", left), ("+", more)) for row in some)
                continue
            for one, other in zip(before, after):
                for field in dict.fromkeys(list(one) + list(other)):
                    if one.get(field) != other.get(field):
                        change = "" if isinstance(one.get(field), (int, dict, list)) else f": {str(one.get(field))[:40]} -> {str(other.get(field))[:40]}"
                        found[f"rows: {one.get('kind')} {one.get('outcome')}: {field}{change}"] += 1
    for aspect in ("output", "status", "requests"):
        befores, afters = old.of[aspect], new.of[aspect]
        for name in set(befores) | set(afters):
            before, after = befores.get(name), afters.get(name)
            if before != after:
                how = "only NEW has it" if before is None else "only OLD has it" if after is None else "differs"
                found[f"{aspect}: {how if aspect == 'output' else f'{before!r:.60} -> {after!r:.60}' if aspect == 'status' else 'differ'}"] += 1
    return dict(found)


def by_mail(rows):
    """Returns a dictionary from a mail (source and number of the message) to the lines of its rows."""
    found = {}
    for line in rows.decode("utf-8", "surrogateescape").splitlines():
        try:
            row = json.loads(line)
            key = f"{row.get('source')} message {row.get('index')}"
        except ValueError:
            key = "a line that is not JSON"
        found.setdefault(key, []).append(line)
    return found


def place_of(name, before, after):
    """Returns a text for people that says where two outputs differ: the name of the output, for an mbox the number of the
    message, and the position of the first byte that differs.
    """
    at = next((at for at, (one, other) in enumerate(zip(before, after)) if one != other), min(len(before), len(after)))
    messages = len(re.findall(rb"(?m)^From ", before[:at]))
    return name + (f" message {messages}" if messages else "") + f" byte {at}"


def lines_of(octets):
    return ["(no such file)"] if octets is None else octets.decode("utf-8", "backslashreplace").split("\n")


def unified(before, after, longest=40):
    """Returns a unified diff of two lists of lines, with at most `longest` lines and 400 characters in a line."""
    lines = list(difflib.unified_diff(before, after, "OLD", "NEW", lineterm="", n=1))
    shown = [line if len(line) < 400 else line[:400] + "..." for line in lines[:longest]]
    return shown + ([f"... and {len(lines) - longest} more lines"] if len(lines) > longest else [])


def details(old, new, aspects):
    """Returns a few lines for each aspect that differs: the number of differences, and the first one as a diff."""
    lines = []
    for aspect in aspects:
        names = sorted(set(old.of[aspect]) | set(new.of[aspect]))
        names = [name for name in names if old.of[aspect].get(name) != new.of[aspect].get(name)]
        lines.append(f"{aspect}: {len(names)} differ; the first is {names[0]}")
        if aspect != "rows":
            lines += unified(lines_of(old.of[aspect].get(names[0])), lines_of(new.of[aspect].get(names[0])), 12)
    return lines

"""Runs a program with one option set over one case, and compares what two programs did."""

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

# A source of mail: the name for people, and the file or directory. `files` is the directory for --attachments.
Case = collections.namedtuple("Case", "name source files is_generated", defaults=(None, False))
ASPECTS = ("output", "rows", "stderr", "status", "requests")
LONGEST_RUN = 300
# Fields of rows that contain sentences.
SENTENCES = ("detail", "remark", "remarks", "notes")

# The masks: what two runs of one program over the same input may do differently. Nothing else is masked. Each has the
# aspects it is applied to. "prose" is what a command prints for people: stderr, and the standard output of `inspect`.
MASKS = [
    # aspects, pattern, replacement, reason
    (("rows",), rb'"time":"[^"]*"', b'"time":"TIME"', "when the run began"),
    (("rows",), rb'"ms":\d+', b'"ms":0', "how long a retrieval took"),
    (("rows",), rb'"retrieved_at":"[^"]*"', b'"retrieved_at":"TIME"', "when the server answered"),
    (("rows",), rb'"record":"urn:uuid:[^"]*"', b'"record":"UUID"', "records have random names"),
    (("provenance",), rb'retrieved="[^"]*"', b'retrieved="TIME"', "the clock of --provenance"),
    (("provenance",), rb"=_embody_[0-9a-f]{24}", b"=_embody_BOUNDARY", "boundaries are hashes of parts, which have that clock"),
    (("prose",), rb"(?<= in )(?:\d+ h )?(?:\d+ min )?[\d.]+ s\b", b"TIME", "how long the run took"),
    (("prose",), rb"[\d.]+ [KMGT]iB are free", b"SIZE are free", "how full the disk is"),
    (("rows", "prose"), rb"127\.0\.0\.1:\d{4,5}", b"127.0.0.1:PORT", "the port of the scripted server"),
    (("rows", "prose", "output"), rb"/[\w./-]*/referee-run-\d+(?=/)", b"RUN", "the temporary directory of a run"),
]


def masked(octets, aspect):
    for aspects, pattern, replacement, _ in MASKS:
        if aspect in aspects:
            octets = re.sub(pattern, replacement, octets)
    return octets


class Outcome:
    """What one program did: for each aspect a dictionary of names and bytes."""

    def __init__(self):
        self.of = {aspect: {} for aspect in ASPECTS}

    def without_sentences(self):
        """The same without texts that are for people."""
        self.of["stderr"] = {}
        self.of["rows"] = {name: without_sentences(octets, SENTENCES) for name, octets in self.of["rows"].items()}
        self.of["output"] = {
            name: without_sentences(octets, SENTENCES) if octets[:1] == b"{" else b""
            for name, octets in self.of["output"].items() if name.startswith("stdout")
        } | {name: octets for name, octets in self.of["output"].items() if not name.startswith("stdout")}
        return self

    def digests(self):
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
    """The directory in which a worker runs programs: always the same path, so that two programs are given the same names."""

    def __init__(self, root, server, ignores_sentences=False):
        self.root, self.server, self.case = root, server, None
        self.ignores_sentences = ignores_sentences
        self.root.mkdir(parents=True, exist_ok=True)

    def prepare(self, case):
        """Copies the source of a case to this place, and empties it of what the last run left."""
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
        """Runs all steps of an option set and returns their Outcome."""
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
        """Runs one process. Its standard output is a file in `out` if `to` is a name."""
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
            status, stdout, stderr = "longer than LONGEST_RUN", late.stdout or b"", late.stderr or b""
        outcome.of["status"][label] = str(status).encode()
        outcome.of["stderr"][label] = masked(stderr, "prose")
        if to:
            (self.root / "out" / to).write_bytes(stdout)
        elif stdout:
            aspect = "prose" if stdout[:1] != b"{" else "rows"
            outcome.of["output"][f"stdout {label}"] = masked(masked(stdout, aspect), "prose")

    def collect(self, outcome, name):
        """Reads every file that the steps left, apart from the cache, whose names and dates are its own."""
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
                    # The name is a hash of the absolute path of the mailbox, which the mask above has replaced in the file.
                    relative = relative.with_name(hashlib.sha256(octets).hexdigest()[:16])
                outcome.of["output"][str(relative)] = masked(octets, "provenance") if name == "provenance" else octets


def warc(octets):
    """What a WARC file holds, without dates and names of records: type, URL, media type and digest of each record, sorted."""
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
    """Rows without these fields, whose sentences may be reworded at any time."""
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
    """The aspects in which two outcomes differ. `name` is the option set."""
    return [aspect for aspect in ASPECTS if old[aspect] != new[aspect] and not (aspect == "requests" and name in sets.GROWTH)]


def first_mail(old, new):
    """The first mail that differs, by its rows, else by its output; and the difference in its rows as a unified diff."""
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
    """What kinds of differences there are, with how often each occurs: `rows: deleted: media_type: text/plain -> image/png`."""
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
    """Where two outputs begin to differ: in an mbox, the number of the message."""
    at = next((at for at, (one, other) in enumerate(zip(before, after)) if one != other), min(len(before), len(after)))
    messages = len(re.findall(rb"(?m)^From ", before[:at]))
    return name + (f" message {messages}" if messages else "") + f" byte {at}"


def lines_of(octets):
    return ["(no such file)"] if octets is None else octets.decode("utf-8", "backslashreplace").split("\n")


def unified(before, after, longest=40):
    lines = list(difflib.unified_diff(before, after, "OLD", "NEW", lineterm="", n=1))
    shown = [line if len(line) < 400 else line[:400] + "..." for line in lines[:longest]]
    return shown + ([f"... and {len(lines) - longest} more lines"] if len(lines) > longest else [])


def details(old, new, aspects):
    """A few lines for each aspect that differs, for the report."""
    lines = []
    for aspect in aspects:
        names = sorted(set(old.of[aspect]) | set(new.of[aspect]))
        names = [name for name in names if old.of[aspect].get(name) != new.of[aspect].get(name)]
        lines.append(f"{aspect}: {len(names)} differ, first {names[0]}")
        if aspect != "rows":
            lines += unified(lines_of(old.of[aspect].get(names[0])), lines_of(new.of[aspect].get(names[0])), 12)
    return lines

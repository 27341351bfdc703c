"""Proves every result of a program with `embody compare`: `run --compare PROGRAM`, or `run --compare OLD NEW` to prove the
results of an older version.

Each option set and each chain (`sets.CHAINS`) runs over each case. Then `compare` must find that each result is the work of
embody: with its source, and in a chain with each result before it. Results that are not meant to have all mail are skipped.
"""

import itertools
import json
import multiprocessing
import subprocess
import time
from pathlib import Path

import sets

# Option sets that write no mailbox with all mail: `filter --on-failure defer` writes nothing for some mails. A proof uses the
# default limits for depth and parts, so results of lower ones are not proven (docs/compare.md).
SKIPPED = {"defer", "depth", "dry-run", "dry-run-probe", "inspect", "inspect-json", "inspect-probe", "messages", "parts"}
# Option sets in which a format stores no flags, so that flags are lost.
FLAGLESS = {"eml-mboxcl2"}
# What the steps create besides results.
OTHERS = {"tmp", "cache", "store"}
LONGEST_COMPARISON = 600
# Kinds of rows about parts that a run opens, such as winmail.dat.
OPENED = {"tnef", "rtf", "msg", "uuencode"}


def unproven(program, root, old, new):
    """Compares OLD and NEW. Returns the number of messages with changes, and what is not proven, as lines by message."""
    done = subprocess.run(
        ["embody", "compare", "--json", old, new], executable=program, cwd=root, capture_output=True, timeout=LONGEST_COMPARISON,
        check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    counts = rows[-1]["compare"] if rows else {}
    lines = {}
    for row in rows[:-1]:
        lines.setdefault(key_of(row), []).append(
            f"{row.get('source')}, message {row.get('index')}: {row.get('outcome')}: {row.get('detail', '')}")
    sums = sum(counts.get(name, 0) for name in ("identical", "changed", "altered", "missing"))
    if counts and sums != counts["old"]:
        lines[None] = [f"the counts do not add up: {counts}"]
    if not counts:
        lines[None] = [done.stderr.decode("utf-8", "replace").strip()]
    return counts.get("changed", 0), lines


def key_of(row):
    """Returns what is the same for a message in all steps: its position in its file, and the name of a single message."""
    path = Path(row.get("source") or "")
    return (path.name if path.suffix == ".eml" else "", row.get("index"))


def inserted(root, names, is_opened):
    """Returns the messages in which one of the steps with the results `names` opened a part, such as winmail.dat, or inserted
    content in another way.
    """
    paths = [root / f"rows-{name}.json" for name in names]
    rows = [json.loads(line) for path in paths if path.is_file() for line in path.read_text().splitlines()]
    return {key_of(row) for row in rows if row.get("outcome") == "expanded" and (row.get("kind") in OPENED) == is_opened}


def judge(place, task):
    """Runs one option set over one case, and compares its results.

    Returns the number of changed messages, what is not proven, as lines, and the number of messages that are not proven because
    one step retrieved a part and a later step opened it (docs/compare.md).
    """
    case, name, older, program = task
    place.run(older, case, (sets.SETS | sets.CHAINS)[name], name)
    made = sorted(
        (path for path in place.root.iterdir()
         if path.name not in place.kept | OTHERS and not path.name.startswith("rows") and not path.name.endswith(".warc.gz")),
        key=lambda path: path.stat().st_mtime)
    pairs = [(place.source, path.name) for path in made]
    if name in sets.CHAINS or name in ("detach", "detach-thunderbird", "twice"):
        pairs += [(one.name, other.name) for one, other in itertools.combinations(made, 2)]
    changed, lines, known = 0, [], 0
    names = [path.name for path in made]
    for old, new in pairs:
        count, by_message = unproven(program, place.root, old, new)
        changed += count
        # The first step after OLD may have retrieved the part.
        first = names.index(old) + 1 if old in names else 0
        steps = names[first:names.index(new) + 1]
        later = inserted(place.root, steps[:-1], False) & inserted(place.root, steps[1:], True)
        known += sum(len(found) for key, found in by_message.items() if key in later)
        found = [line for key, lines_of in by_message.items() if key not in later for line in lines_of]
        if name in FLAGLESS:
            found = [line for line in found if ": lost-flags: " not in line]
        lines += [f"{name}: {case.name}: {old} {new}: {line}" for line in found]
    return changed, lines, known


def run(tasks, jobs, start, worker):
    """Proves all results, prints what is not proven, and returns the exit status. `worker` calls `judge` in a process that
    `start` prepared.
    """
    begun, changed, failed, opened_later = time.monotonic(), 0, 0, 0
    with multiprocessing.Pool(jobs, *start) as pool:
        for count, lines, known in pool.imap_unordered(worker, tasks, chunksize=1):
            changed += count
            opened_later += known
            failed += len(lines)
            for line in lines:
                print(line, flush=True)
    print(f"{len(tasks)} results with {changed} changed messages ({time.monotonic() - begun:.0f} s): {failed} not proven")
    if opened_later:
        print(f"{opened_later} more are not proven: a later run opened a part that a run had retrieved (docs/compare.md)")
    return 1 if failed else 0

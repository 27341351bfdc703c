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

import sets

# Option sets that write no mailbox with all mail: `filter --on-failure defer` writes nothing for some mails. A proof uses the
# default limits for depth and parts, so results of lower ones are not proven (docs/compare.md).
SKIPPED = {"defer", "depth", "dry-run", "dry-run-probe", "inspect", "inspect-json", "inspect-probe", "messages", "parts"}
# Option sets in which a format stores no flags, so that flags are lost.
FLAGLESS = {"eml-mboxcl2"}
# What the steps create besides results.
OTHERS = {"tmp", "cache", "store"}
LONGEST_COMPARISON = 600


def unproven(program, root, old, new):
    """Compares OLD and NEW. Returns the number of messages with changes, and what is not proven, as lines."""
    done = subprocess.run(
        ["embody", "compare", "--json", old, new], executable=program, cwd=root, capture_output=True, timeout=LONGEST_COMPARISON,
        check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    counts = rows[-1]["compare"] if rows else {}
    lines = [f"{row.get('source')}, message {row.get('index')}: {row.get('outcome')}: {row.get('detail', '')}" for row in rows[:-1]]
    sums = sum(counts.get(name, 0) for name in ("identical", "changed", "altered", "missing"))
    if counts and sums != counts["old"]:
        lines.append(f"the counts do not add up: {counts}")
    if not counts:
        lines.append(done.stderr.decode("utf-8", "replace").strip())
    return counts.get("changed", 0), lines


def judge(place, task):
    """Runs one option set over one case, and compares its results. Returns the number of changed messages and the lines."""
    case, name, older, program = task
    place.run(older, case, (sets.SETS | sets.CHAINS)[name], name)
    made = sorted(
        (path for path in place.root.iterdir()
         if path.name not in place.kept | OTHERS and not path.name.startswith("rows") and not path.name.endswith(".warc.gz")),
        key=lambda path: path.stat().st_mtime)
    pairs = [(place.source, path.name) for path in made]
    if name in sets.CHAINS or name in ("detach", "detach-thunderbird", "twice"):
        pairs += [(one.name, other.name) for one, other in itertools.combinations(made, 2)]
    changed, lines = 0, []
    for old, new in pairs:
        count, found = unproven(program, place.root, old, new)
        changed += count
        if name in FLAGLESS:
            found = [line for line in found if ": lost-flags: " not in line]
        lines += [f"{name}: {case.name}: {old} {new}: {line}" for line in found]
    return changed, lines


def run(tasks, jobs, start, worker):
    """Proves all results, prints what is not proven, and returns the exit status. `worker` calls `judge` in a process that
    `start` prepared.
    """
    begun, changed, failed = time.monotonic(), 0, 0
    with multiprocessing.Pool(jobs, *start) as pool:
        for count, lines in pool.imap_unordered(worker, tasks, chunksize=1):
            changed += count
            failed += len(lines)
            for line in lines:
                print(line, flush=True)
    print(f"{len(tasks)} results with {changed} changed messages ({time.monotonic() - begun:.0f} s): {failed} not proven")
    return 1 if failed else 0

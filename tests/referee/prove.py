"""Checks that the referee finds differences: `run --prove PROGRAM`.

For each mutation, a script is written that runs PROGRAM and then changes one aspect of its outcome. The referee compares
PROGRAM with the script, and must find a difference in this aspect only. The mutation "nothing" changes nothing, and the
referee must find no difference.
"""

import sys

# The script of a mutation.
WRAPPER = """#!{python}
import os, re, subprocess, sys, urllib.request
program, mutation = {program!r}, {mutation!r}
arguments = sys.argv[1:]
done = subprocess.run(["embody"] + arguments, executable=program, capture_output=True)
stdout, stderr, status = done.stdout, done.stderr, done.returncode
output = arguments[arguments.index("--output") + 1]
report = arguments[arguments.index("--report") + 1]
first = sorted(os.listdir(output))[0]

def change(path, edit):
    octets = open(path, "rb").read()
    edited = edit(octets)
    assert edited != octets, "the mutation changes nothing"
    open(path, "wb").write(edited)

def swapped(rows):
    lines = rows.splitlines(keepends=True)
    at = next(at for at in range(len(lines) - 1) if lines[at] != lines[at + 1])
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    return b"".join(lines)

if mutation == "a byte of the output":
    change(os.path.join(output, first), lambda octets: octets[:-1] + bytes([octets[-1] ^ 1]))
elif mutation == "a missing mail":
    os.unlink(os.path.join(output, first))
elif mutation == "an additional file":
    open("left.tmp", "w").close()
elif mutation == "a sentence of a row":
    change(report, lambda rows: rows.replace(b" bytes of ", b" octets of ", 1))
elif mutation == "the order of two rows":
    change(report, swapped)
elif mutation == "a reason":
    change(report, lambda rows: rows.replace(b'"reason":"http-status"', b'"reason":"timeout"', 1))
elif mutation == "a missing row":
    change(report, lambda rows: rows.split(b"\\n", 1)[1])
elif mutation == "a sentence of stderr":
    stderr = stderr.replace(b"embody: ", b"embody; ", 1)
elif mutation == "the exit status":
    status += 1
elif mutation in ("a repeated request", "an additional request"):
    proxy = arguments[arguments.index("--proxy") + 1]
    named = re.search(rb'"final_url":"(http:[^"]*)"', open(report, "rb").read())[1].decode()
    url = named if mutation == "a repeated request" else "http://new.example.org/a.png?is=fit"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(dict(http=proxy)))
    opener.open(url).read()
sys.stdout.buffer.write(stdout)
sys.stderr.buffer.write(stderr)
sys.exit(status)
"""
# The mutations, and the aspects in which the referee must find a difference.
MUTATIONS = {
    "nothing": (), "a byte of the output": ("output",), "a missing mail": ("output",), "an additional file": ("output",),
    "a sentence of a row": ("rows",), "the order of two rows": ("rows",), "a reason": ("rows",), "a missing row": ("rows",),
    "a sentence of stderr": ("stderr",), "the exit status": ("status",), "a repeated request": ("requests",),
    "an additional request": ("requests",),
}


def prove(program, case, judge, work):
    """Compares `program` with each mutation, with the option set `embed` over one case, and prints the results.

    `judge` is the function of `run` that compares two programs. The scripts are written to the directory `work`. Returns
    the exit status: 0 if the referee found the expected difference for every mutation.
    """
    status = 0
    for number, (mutation, expected) in enumerate(MUTATIONS.items()):
        wrapper = work / f"mutation-{number}"
        wrapper.write_text(WRAPPER.format(python=sys.executable, program=program, mutation=mutation))
        wrapper.chmod(0o755)
        found = tuple(judge((case, "embed", program, str(wrapper), None)).get("aspects", ()))
        shown = [f"a difference in {', '.join(aspects)}" if aspects else "no difference" for aspects in (found, expected)]
        wrong = "" if found == expected else f"  WRONG: expected {shown[1]}"
        print(f'mutation "{mutation}": the referee found {shown[0]}{wrong}')
        status |= found != expected
    return int(status)

"""Proves that the referee finds what it looks for: `run --prove PROGRAM`.

Each mutation is a program that runs the given one and then spoils one thing. The referee must find no difference
between the program and itself, and for each mutation a difference in exactly the aspects that it spoils.
"""

import sys

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
elif mutation == "a mail that is missing":
    os.unlink(os.path.join(output, first))
elif mutation == "a file that was left behind":
    open("left.tmp", "w").close()
elif mutation == "a sentence of a row":
    change(report, lambda rows: rows.replace(b" bytes of ", b" octets of ", 1))
elif mutation == "the order of two rows":
    change(report, swapped)
elif mutation == "a reason":
    change(report, lambda rows: rows.replace(b'"reason":"http-status"', b'"reason":"timeout"', 1))
elif mutation == "a row that is missing":
    change(report, lambda rows: rows.split(b"\\n", 1)[1])
elif mutation == "a sentence of stderr":
    stderr = stderr.replace(b"embody: ", b"embody; ", 1)
elif mutation == "the exit status":
    status += 1
elif mutation in ("a request that was sent before", "another request"):
    proxy = arguments[arguments.index("--proxy") + 1]
    named = re.search(rb'"final_url":"(http:[^"]*)"', open(report, "rb").read())[1].decode()
    url = named if mutation.endswith("before") else "http://new.example.org/a.png?is=fit"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(dict(http=proxy)))
    opener.open(url).read()
sys.stdout.buffer.write(stdout)
sys.stderr.buffer.write(stderr)
sys.exit(status)
"""
MUTATIONS = {
    "nothing": (), "a byte of the output": ("output",), "a mail that is missing": ("output",), "a file that was left behind": ("output",),
    "a sentence of a row": ("rows",), "the order of two rows": ("rows",), "a reason": ("rows",), "a row that is missing": ("rows",),
    "a sentence of stderr": ("stderr",), "the exit status": ("status",), "a request that was sent before": ("requests",),
    "another request": ("requests",),
}


def prove(program, case, judge, work):
    """Judges each mutation with the option set `embed` over one case. Returns the exit status."""
    status = 0
    for number, (mutation, expected) in enumerate(MUTATIONS.items()):
        wrapper = work / f"mutation-{number}"
        wrapper.write_text(WRAPPER.format(python=sys.executable, program=program, mutation=mutation))
        wrapper.chmod(0o755)
        found = tuple(judge((case, "embed", program, str(wrapper), None)).get("aspects", ()))
        print(f"{mutation}: {'differs in ' + ', '.join(found) if found else 'no difference'}" + ("" if found == expected else "  WRONG"))
        status |= found != expected
    return int(status)

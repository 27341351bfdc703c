"""The mail program embody, from Python.

    import embody

    for content in embody.messages("takeout.zip"):
        message = email.message_from_bytes(content, policy=email.policy.default)

    for row in embody.rows("inspect", "takeout.zip"):
        if "kind" in row:
            print(row["source"], row["index"], row["kind"], row.get("reason"))

    for row in embody.rows("embed", "takeout.zip", "--output", "kept.mbox"):
        if row["outcome"] == "left":
            print(row["url"], row["reason"])

The package holds the program, and this module runs it: ``embody`` on the command line, ``python -m embody``, and what is here are
the same. ``embody --help`` has its commands and options; docs/reasons.md of embody says what is in a row. Arguments are words as
on a command line, no shell sees them, and names of files may be ``str``, ``bytes`` or ``os.PathLike``.

No function retrieves anything unless an argument allows it (``--fetch``; the command ``embed`` asks web servers).
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any, TypeAlias

__all__ = ["Argument", "Error", "messages", "program", "rows", "run"]

#: A word of a command line, or the name of a file.
Argument: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class Error(Exception):
    """The program could not do all that it was asked to do.

    What it did stays done, and what was read or said before was given: of a mailbox that is damaged the messages in front of
    the damage.
    """

    #: The command line, the program first.
    arguments: list[Argument]
    #: The exit status: 1 if something could not be read or written, 2 for a wrong command line, 75 if a filter is to be run again
    #: later, and the negative number of a signal that ended the program.
    status: int
    #: What the program said on standard error.
    stderr: str

    def __init__(self, arguments: list[Argument], status: int, stderr: str) -> None:
        what = f"embody ended with status {status}" if status else "what embody printed has no end"
        super().__init__(stderr.strip() or what)
        self.arguments = arguments
        self.status = status
        self.stderr = stderr

    def __reduce__(self) -> tuple[type[Exception], tuple[list[Argument], int, str]]:
        return Error, (self.arguments, self.status, self.stderr)


def program() -> Path:
    """The program that came with this module; in a checkout, or if it was taken away, the one on ``PATH``.

    Raises FileNotFoundError if there is none.
    """
    package = Path(__file__).resolve().parent.parent
    # pip install, with --user and with --target.
    folders = [
        Path(sysconfig.get_path("scripts")),
        Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))),
        package / "bin",
    ]
    # With --prefix, PREFIX/lib/pythonX.Y/site-packages.
    if package.name == "site-packages":
        folders.append(package.parents[2] / "bin")
    for folder in folders:
        if os.access(folder / "embody", os.X_OK):
            return folder / "embody"
    found = shutil.which("embody")
    if found is None:
        raise FileNotFoundError(f"there is no program embody in {', '.join(map(str, folders))}, nor on PATH")
    return Path(found)


def run(*arguments: Argument, input: bytes = b"") -> bytes:
    """Runs the program and returns what it wrote to standard output.

        filled = embody.run("filter", input=Path("in.eml").read_bytes())

    Raises Error for every exit status but 0.
    """
    words = _words(*arguments)
    done = subprocess.run(words, input=input, capture_output=True)
    if done.returncode:
        raise Error(words, done.returncode, _text(done.stderr))
    return done.stdout


def messages(*sources: Argument, format: str = "auto") -> Generator[bytes, None, None]:
    """The messages of mailboxes, byte for byte, one after the other.

    A source is an mbox, a Maildir, an MH folder, a message, a zip or tar archive of mboxes, or a folder of these, compressed or
    not; ``format`` says which, if embody cannot know. Headers and line ends are those of the source. A separator line is no part
    of a message, and what an mbox quotes for it (``>From``) is not quoted here. Nothing is put in, written, locked or retrieved.

    At most a few messages are in memory, however large a mailbox is. What cannot be read is named in an Error, behind all that
    could be.
    """
    # An option's name is never a source.
    words = _words("inspect", "--messages", f"--format={format}", "--", *sources)
    return _messages(_Process(words))


def rows(command: str, *arguments: Argument, input: bytes = b"") -> Generator[dict[str, Any], None, None]:
    """The rows of the report of a run: what was, or would be, done to each reference in the mail, and why not.

    ``command`` is ``inspect``, which changes nothing, or one that does: ``convert``, ``embed``, ``detach``, ``restore``,
    ``filter``. What a filter writes is not kept: name ``--output``. The run begins with the call.

    Rows of ``inspect`` come while it reads; a last one, ``{"survey": {...}}``, has the survey of mailboxes. Those of other
    commands come when the run has ended. Raises Error behind the last row if the run failed.
    """
    if command == "inspect":
        return _rows_of_inspect(_Process(_words(command, "--json", *arguments), input))
    folder = tempfile.TemporaryDirectory(prefix="embody-")
    report = Path(folder.name, "report.jsonl")
    process = _Process(_words(command, "--report", report, *arguments), input, keeps_stdout=False)
    return _rows_of_report(process, report, folder)


def _words(*arguments: Argument) -> list[Argument]:
    return [program(), *arguments]


def _text(stderr: bytes) -> str:
    return stderr.decode("utf-8", "replace")


class _Process:
    """The program at work. Its errors go to a file: nobody has to read two pipes at a time."""

    def __init__(self, words: list[Argument], input: bytes = b"", keeps_stdout: bool = True) -> None:
        self.words = words
        self.is_whole = True
        self.stderr = tempfile.TemporaryFile()
        with tempfile.TemporaryFile() as stdin, open(os.devnull, "wb") as nowhere:
            stdin.write(input)
            stdin.seek(0)
            stdout = subprocess.PIPE if keeps_stdout else nowhere
            self.process = subprocess.Popen(words, stdin=stdin, stdout=stdout, stderr=self.stderr)

    @property
    def stdout(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    def rows(self, lines: IO[bytes]) -> Iterator[Any]:
        """The objects of whole lines: the last one is not, if the program was killed."""
        for line in lines:
            if not line.endswith(b"\n"):
                self.is_whole = False
                break
            yield json.loads(line)

    def check(self) -> None:
        """Waits for the end, and raises what was wrong."""
        status = self.process.wait()
        if status or not self.is_whole:
            self.stderr.seek(0)
            raise Error(self.words, status, _text(self.stderr.read()))

    def __enter__(self) -> "_Process":
        return self

    def __exit__(self, *_: object) -> None:
        """Ends a program whose output nobody wants any more; one that writes mailboxes was waited for."""
        if self.process.stdout is not None:
            self.process.stdout.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.stderr.close()


def _messages(process: _Process) -> Generator[bytes, None, None]:
    with process:
        for head in process.rows(process.stdout):
            octets = process.stdout.read(head["bytes"])
            process.is_whole = process.stdout.read(1) == b"\n"
            if not process.is_whole:
                break
            yield octets
        process.check()


def _rows_of_inspect(process: _Process) -> Generator[dict[str, Any], None, None]:
    with process:
        yield from process.rows(process.stdout)
        process.check()


def _rows_of_report(
    process: _Process, report: Path, folder: "tempfile.TemporaryDirectory[str]"
) -> Generator[dict[str, Any], None, None]:
    with folder, process:
        process.process.wait()
        # None was made if the command line was wrong.
        if report.exists():
            with report.open("rb") as lines:
                yield from process.rows(lines)
        process.check()

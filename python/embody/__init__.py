"""Runs the mail program embody from Python.

    import embody

    for content in embody.messages("takeout.zip"):
        message = email.message_from_bytes(content, policy=email.policy.default)

    for row in embody.rows("inspect", "takeout.zip"):
        if "kind" in row:
            print(row["source"], row["index"], row["kind"], row.get("reason"))

    for row in embody.rows("embed", "takeout.zip", "--output", "kept.mbox"):
        if row["outcome"] == "left":
            print(row["url"], row["reason"])

The Python package contains the program. The command ``embody``, the command ``python -m embody`` and the functions of this
module run the same program. ``embody --help`` lists its commands and options, and docs/reasons.md of embody describes the
rows. Arguments are passed to the program unchanged, without a shell. A file name can be ``str``, ``bytes`` or
``os.PathLike``.

These commands use the network:

* ``embed`` and ``recover`` retrieve pictures and attachments from web servers, unless ``--offline`` is an argument.
* ``inspect`` asks web servers with ``--probe``.
* ``filter``, ``convert``, ``restore`` and ``milter`` retrieve content only with ``--fetch``.
* Every command that reads mailboxes also reads accounts on IMAP servers, if a source is a URL such as
  ``imaps://user@host/``. ``detach`` and ``restore`` use a server if ``--store`` is a URL.

All other commands, and ``messages()`` for files, make no network requests.
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

#: An argument of the program: a word, such as an option, or a file name.
Argument: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class Error(Exception):
    """The program failed, or could not process everything.

    The changes that the program made before the error are not undone. An iterator returns everything that the program
    printed before the error, and then raises the error: for a damaged mailbox, it first returns the messages before the
    damage.
    """

    #: The command line. Its first element is the program.
    arguments: list[Argument]
    #: The exit status: 1 if something could not be read or written, 2 for a wrong command line, or 75 if a filter should
    #: be run again later. If a signal ended the program, the status is the negative number of the signal.
    status: int
    #: The text that the program wrote to standard error.
    stderr: str

    def __init__(self, arguments: list[Argument], status: int, stderr: str) -> None:
        what = f"embody ended with status {status}" if status else "the output of embody ends too early"
        super().__init__(stderr.strip() or what)
        self.arguments = arguments
        self.status = status
        self.stderr = stderr

    def __reduce__(self) -> tuple[type[Exception], tuple[list[Argument], int, str]]:
        return Error, (self.arguments, self.status, self.stderr)


def program() -> Path:
    """Returns the path of the program that was installed with this module.

    If there is no such program, for example in a checkout, returns the path of ``embody`` on ``PATH``. Raises
    FileNotFoundError if there is no ``embody`` on ``PATH`` either.
    """
    package = Path(__file__).resolve().parent.parent
    # The directories to which pip installs programs: by default, with --user, and with --target.
    folders = [
        Path(sysconfig.get_path("scripts")),
        Path(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))),
        package / "bin",
    ]
    # With --prefix, pip installs this module to PREFIX/lib/pythonX.Y/site-packages, and the program to PREFIX/bin.
    if package.name == "site-packages":
        folders.append(package.parents[2] / "bin")
    for folder in folders:
        if os.access(folder / "embody", os.X_OK):
            return folder / "embody"
    found = shutil.which("embody")
    if found is None:
        searched = ", ".join(map(str, folders))
        raise FileNotFoundError(f"cannot find the program embody in {searched} or on PATH; add its directory to PATH")
    return Path(found)


def run(*arguments: Argument, input: bytes = b"") -> bytes:
    """Runs the program and returns its standard output.

        filled = embody.run("filter", input=Path("in.eml").read_bytes())

    Raises Error if the exit status is not 0.
    """
    words = _words(*arguments)
    done = subprocess.run(words, input=input, capture_output=True)
    if done.returncode:
        raise Error(words, done.returncode, _text(done.stderr))
    return done.stdout


def messages(*sources: Argument, format: str = "auto") -> Generator[bytes, None, None]:
    """Returns the messages of mailboxes, one after the other, byte for byte.

    A source is an mbox, a Maildir, an MH folder, a single message, a zip or tar archive of mboxes, or a directory of these.
    It can be compressed. Set ``format`` if embody cannot recognise the format. Headers and line endings are not changed.
    The separator lines of an mbox are not part of the messages, and quoted lines (``>From``) are returned without the
    quoting. References are not replaced by their content. Nothing is written, locked or retrieved.

    Only a few messages are in memory at a time, even if a mailbox is large. If something cannot be read, Error is raised
    after all messages that could be read.
    """
    # After `--`, the program does not mistake a source such as `--json` for an option.
    words = _words("inspect", "--messages", f"--format={format}", "--", *sources)
    return _messages(_Process(words))


def rows(command: str, *arguments: Argument, input: bytes = b"") -> Generator[dict[str, Any], None, None]:
    """Runs a command and returns the rows of its report. A row contains the outcome of one reference in the mail, and the
    reason if the reference was not replaced.

    ``command`` is ``inspect``, which changes no mail, or a command that changes mail: ``embed``, ``recover``, ``convert``,
    ``detach``, ``restore`` or ``filter``. The standard output of these commands is discarded, so add ``--output`` to keep the changed
    mail. The run starts when this function is called, not with the first row.

    The rows of ``inspect`` are returned while it reads. Its last row, ``{"survey": {...}}``, is a summary of the mailboxes.
    The rows of other commands are returned after the run has ended. If the run failed, Error is raised after the last row.
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
    """A running program. Its standard error is written to a file. Two pipes would have to be read at the same time, because
    the program stops as soon as one of them is full.
    """

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
        """Returns the objects of complete lines. If the program was killed, its last line can be incomplete."""
        for line in lines:
            if not line.endswith(b"\n"):
                self.is_whole = False
                break
            yield json.loads(line)

    def check(self) -> None:
        """Waits until the program has ended, and raises Error if it failed or its output is incomplete."""
        status = self.process.wait()
        if status or not self.is_whole:
            self.stderr.seek(0)
            raise Error(self.words, status, _text(self.stderr.read()))

    def __enter__(self) -> "_Process":
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the program if the caller stopped reading its output. A program that writes mailboxes has normally
        ended before, because its rows are read only after its end.
        """
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
        # If the command line is wrong, the program writes no report.
        if report.exists():
            with report.open("rb") as lines:
                yield from process.rows(lines)
        process.check()

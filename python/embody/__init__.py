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

    with embody.Service("--store", "/srv/store") as service:
        small = service.detach(content)
        assert service.restore(small) == content

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

import http.client
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import urllib.parse
from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeAlias

__all__ = ["Argument", "Error", "Problem", "Service", "messages", "program", "rows", "run"]

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

    The rows of ``inspect`` are returned while it reads. Its last row, ``{"kind": "survey", "survey": {...}}``, is a
    summary of the mailboxes.
    The rows of other commands are returned after the run has ended. If the run failed, Error is raised after the last row.
    """
    if command == "inspect":
        return _rows_of_inspect(_Process(_words(command, "--json", *arguments), input))
    folder = tempfile.TemporaryDirectory(prefix="embody-")
    report = Path(folder.name, "report.jsonl")
    process = _Process(_words(command, "--report", report, *arguments), input, keeps_stdout=False)
    return _rows_of_report(process, report, folder)


class Problem(Exception):
    """A service refused a request, or could not complete it. The text of the exception says what to do."""

    #: The status of the response, such as 413 for a message that is too large.
    status: int
    #: The query parameter that is wrong, if any.
    parameter: str | None

    def __init__(self, status: int, detail: str, parameter: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.parameter = parameter

    def __reduce__(self) -> tuple[type[Exception], tuple[int, str, str | None]]:
        return Problem, (self.status, str(self), self.parameter)


class _Connection(http.client.HTTPConnection):
    """A connection to a socket in the file system."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


def _sent(
    connection: _Connection, method: str, path: str, body: bytes | IO[bytes] | None
) -> http.client.HTTPResponse:
    """Sends a request. If the service responds before it has read the whole body, this is also the response."""
    try:
        connection.request(method, path, body)
    except (BrokenPipeError, ConnectionResetError):
        return connection.getresponse()
    return connection.getresponse()


class Service:
    """A running ``embody serve``, which only this process can use. It is faster than a process for each message.

        with embody.Service("--store", "/srv/store") as service:
            small = service.detach(mail, larger_than="1M")
            assert service.restore(small) == mail

    The arguments are options of ``embody serve``. Keyword arguments of the methods are options of the request, with ``_`` in
    place of ``-``: ``service.filter(mail, max_growth="1M", mark=True)``. They can only narrow the options of the service.
    docs/serve.md describes them.

    One service processes one request at a time. Threads must use a service of their own, or a lock. The service ends with
    the ``with`` statement, or with ``close``.
    """

    def __init__(self, *options: Argument) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="embody-")
        path = os.path.join(self._folder.name, "socket")
        self._words: list[Argument] = _words("serve", "--quiet", f"--listen=unix:{path}", *options)
        self._stderr = tempfile.TemporaryFile()
        self._connection = _Connection(path)
        self._others: set[_Connection] = set()
        try:
            self._process = subprocess.Popen(self._words, stdin=subprocess.DEVNULL, stderr=self._stderr)
        except BaseException:
            self._stderr.close()
            self._folder.cleanup()
            raise
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _wait(self) -> None:
        while True:
            try:
                return self._connection.connect()
            except OSError:
                self._connection.close()
            status = self._process.poll()
            if status is not None:
                raise Error(self._words, status, self._said())
            time.sleep(0.005)

    def _said(self) -> str:
        self._stderr.seek(0)
        return _text(self._stderr.read())

    def __enter__(self) -> "Service":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the service. It can be called several times."""
        # The service would wait for clients that have not read all messages of a mailbox.
        for connection in self._connection, *self._others:
            connection.close()
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        self._stderr.close()
        self._folder.cleanup()

    def filter(self, message: bytes, **options: str | int | bool) -> bytes:
        """Returns the message with the external content that the options allow."""
        return self._post("filter", message, options)

    def embed(self, message: bytes, **options: str | int | bool) -> bytes:
        """Returns the message with the pictures that its HTML displays."""
        return self._post("embed", message, options)

    def recover(self, message: bytes, **options: str | int | bool) -> bytes:
        """Returns the message with missing attachments put back."""
        return self._post("recover", message, options)

    def detach(self, message: bytes, **options: str | int | bool) -> bytes:
        """Returns the message with its large attachments moved into the store."""
        return self._post("detach", message, options)

    def restore(self, message: bytes, **options: str | int | bool) -> bytes:
        """Returns the message with detached attachments put back, byte for byte."""
        return self._post("restore", message, options)

    def inspect(self, message: bytes, **options: str | int | bool) -> list[dict[str, Any]]:
        """Returns the rows about the references in the message."""
        rows: list[dict[str, Any]] = json.loads(self._post("inspect", message, options))["rows"]
        return rows

    def messages(self, mailbox: bytes | IO[bytes], **options: str | int | bool) -> Generator[bytes, None, dict[str, Any]]:
        """Returns the messages of a mailbox, one after the other. The value of the generator is the report.

        The mailbox is ``bytes``, or a file that is open for reading. Raises Error if the answer is incomplete.
        """
        # The caller need not read all messages, so this request has a connection of its own.
        connection = _Connection(self._connection.path)
        self._others.add(connection)
        report: dict[str, Any] | None = None
        try:
            response = self._ask("messages", mailbox, options, connection)
            with tarfile.open(fileobj=io.BufferedReader(response), mode="r|") as archive:
                for member in archive:
                    content = archive.extractfile(member)
                    data = content.read() if content else b""
                    if member.name == "report.json":
                        report = json.loads(data)
                    else:
                        yield data
        except (tarfile.TarError, http.client.HTTPException) as error:
            raise Error(self._words, 0, f"the answer of the service is incomplete: {error}") from None
        finally:
            connection.close()
            self._others.discard(connection)
        if report is None:
            raise Error(self._words, 0, "the answer of the service is incomplete")
        return report

    def object(self, sha256: str) -> bytes:
        """Returns a detached attachment by the SHA-256 of its content."""
        with self._answer("GET", f"objects/{urllib.parse.quote(sha256, safe='')}", None) as response:
            return response.read()

    def _post(self, verb: str, message: bytes, options: dict[str, str | int | bool]) -> bytes:
        with self._ask(verb, message, options) as response:
            return response.read()

    def _ask(
        self,
        verb: str,
        body: bytes | IO[bytes],
        options: dict[str, str | int | bool],
        connection: _Connection | None = None,
    ) -> http.client.HTTPResponse:
        values = {
            name.replace("_", "-"): int(value) if isinstance(value, bool) else value
            for name, value in options.items()
        }
        query = f"?{urllib.parse.urlencode(values)}" if values else ""
        return self._answer("POST", verb + query, body, connection)

    def _answer(
        self, method: str, path: str, body: bytes | IO[bytes] | None, connection: _Connection | None = None
    ) -> http.client.HTTPResponse:
        connection = connection or self._connection
        for is_last in False, True:
            try:
                response = _sent(connection, method, f"/v1/{path}", body)
                break
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                # The service closes a connection that was idle for half a minute. The body of a file cannot be sent again.
                if is_last or not isinstance(body, bytes | None) or self._process.poll() is not None:
                    raise self._ended(error) from None
        if response.status == 200:
            return response
        with response:
            problem = json.loads(response.read())
        raise Problem(response.status, problem["detail"], problem.get("parameter"))

    def _ended(self, error: Exception) -> Error:
        status = self._process.poll()
        return Error(self._words, status or 0, self._said() or str(error))


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

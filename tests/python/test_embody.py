"""Tests the Python module with the program. Both are found as for any user: the module with PYTHONPATH or in site-packages,
and the program next to the module or on PATH.

tests/it/cli/python.rs runs this file for the module in the checkout, and tests/packages/wheel for the installed wheel.
"""

import base64
import gzip
import hashlib
import mailbox
import os
import pickle
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import embody

REFERENCE = (
    b"Subject: one\nMIME-Version: 1.0\nContent-Type: message/external-body; access-type=URL;\n"
    b' URL="data:,put%20in"\n\nContent-Type: text/plain\n\n'
)
MAILS = [
    b"Subject: lines\n\nFrom a@example.org Sat Jan  3 01:05:34 1996\n>From him\n>>From her\n",
    b'Subject: ours\n\n{"source":"m","index":9,"bytes":5}\nhello\n\n',
    b"Subject: octets\n\nnul \0, 8-bit \xff\xfe, bare \r, none\n\n\n",
    b"Subject: crlf\r\n\r\nhello\r\n",
    REFERENCE,
    b"Subject: large\n\n" + b"0123456789\n" * 100_000,
]


def mbox(mails: list[bytes]) -> bytes:
    """Returns an mbox with these messages in the format mboxrd."""
    text = b""
    for mail in mails:
        end = b"\r\n" if mail.endswith(b"\r\n") else b"\n"
        lines = mail.splitlines(keepends=True) if b"\r " not in mail else [line + b"\n" for line in mail.split(b"\n")[:-1]]
        quoted = [b">" + line if line.lstrip(b">").startswith(b"From ") else line for line in lines]
        text += b"From a@example.org Sat Jan  3 01:05:34 1996" + end + b"".join(quoted) + end
    return text


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.mbox = self.folder / "m.mbox"
        self.mbox.write_bytes(mbox(MAILS))

    def fake(self, script: str) -> None:
        """Replaces the program by a shell script."""
        program = self.folder / "embody"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        patch = mock.patch.object(embody, "program", lambda: program)
        patch.start()
        self.addCleanup(patch.stop)


class Messages(Case):
    def test_an_mbox_gives_the_octets_of_each_message(self) -> None:
        self.assertEqual(list(embody.messages(self.mbox)), MAILS)
        self.assertEqual(list(embody.messages(str(self.mbox))), MAILS)
        self.assertEqual(list(embody.messages(os.fsencode(self.mbox))), MAILS)

    def test_so_do_archives_folders_and_what_is_compressed(self) -> None:
        with zipfile.ZipFile(self.folder / "takeout.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(self.mbox, "Takeout/Mail/Inbox.mbox")
        (self.folder / "m.gz").write_bytes(gzip.compress(self.mbox.read_bytes()))
        for name in "takeout.zip", "m.gz":
            with self.subTest(name):
                self.assertEqual(list(embody.messages(self.folder / name)), MAILS)
        maildir = mailbox.Maildir(self.folder / "Maildir")
        for mail in MAILS:
            maildir.add(mail)
        self.assertEqual(sorted(embody.messages(self.folder / "Maildir")), sorted(MAILS))
        (self.folder / "7").write_bytes(MAILS[2])
        found = embody.messages(self.folder / "Maildir", self.folder / "m.gz")
        self.assertEqual(len(list(found)), 2 * len(MAILS))

    def test_a_name_is_never_an_option_and_a_format_can_be_said(self) -> None:
        here = Path.cwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, here)
        Path("--json").write_bytes(MAILS[1])
        self.assertEqual(list(embody.messages("--json")), [MAILS[1]])
        Path("drafts").mkdir()
        Path("drafts/1").write_bytes(MAILS[0])
        self.assertEqual(list(embody.messages("drafts", format="mh")), [MAILS[0]])
        with self.assertRaises(embody.Error) as caught:
            list(embody.messages("drafts", format="no such form"))
        self.assertEqual(caught.exception.status, 2)

    def test_what_is_damaged_is_an_error_behind_the_messages_in_front(self) -> None:
        packed = gzip.compress(mbox([MAILS[1], os.urandom(300_000).hex().encode() + b"\n", MAILS[1]]))
        cut = self.folder / "cut.gz"
        cut.write_bytes(packed[: len(packed) // 2])
        found = []
        with self.assertRaises(embody.Error) as caught:
            for message in embody.messages(cut):
                found.append(message)
        self.assertEqual(found[0], MAILS[1])
        self.assertIn("cut.gz", caught.exception.stderr)
        self.assertIn("cut.gz", str(caught.exception))
        self.assertEqual(caught.exception.status, 1)
        self.assertIn(cut, caught.exception.arguments)
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.status, again.stderr), (1, caught.exception.stderr))
        with self.assertRaises(embody.Error):
            list(embody.messages(self.folder / "missing"))

    def test_output_that_ends_too_soon_is_an_error_whatever_the_status(self) -> None:
        for script in (
            """printf '{"source":"m","index":1,"bytes":5}\\nhel'""",
            """printf '{"source":"m","index":1,"bytes":5}\\nhello'""",
            """printf '{"source":"m","ind'; kill -9 $$""",
            """printf '{"source":"m","index":1,"bytes":5}\\nhello\\n{"source"'""",
        ):
            with self.subTest(script):
                self.fake(script)
                with self.assertRaises(embody.Error):
                    list(embody.messages("m"))

    def test_messages_come_while_the_program_reads_and_it_ends_with_them(self) -> None:
        self.fake("""echo $$ >"$0.pid"; printf '{"source":"m","index":1,"bytes":2}\\nab\\n'; exec sleep 600""")
        found = embody.messages("m")
        self.assertEqual(next(found), b"ab")
        number = int((self.folder / "embody.pid").read_text())
        os.kill(number, 0)
        found.close()
        with self.assertRaises(ProcessLookupError):
            os.kill(number, 0)


class Rows(Case):
    def test_inspect_gives_rows_and_the_survey(self) -> None:
        rows = list(embody.rows("inspect", self.mbox))
        row = next(row for row in rows if row.get("kind") == "external-body")
        self.assertEqual((row["index"], row["outcome"], row["url"]), (5, "would-expand", "data:,put%20in"))
        self.assertEqual(row["source"], str(self.mbox))
        self.assertEqual(list(rows[-1]), ["kind", "survey"])

    def test_a_run_gives_the_rows_of_its_report_and_its_result(self) -> None:
        new = self.folder / "new.mbox"
        rows = list(embody.rows("convert", self.mbox, "--output", new))
        self.assertEqual([(row["index"], row["outcome"]) for row in rows], [(5, "expanded")])
        changed = [(old, new) for old, new in zip(MAILS, embody.messages(new)) if old != new]
        self.assertEqual(len(changed), 1)
        self.assertTrue(changed[0][1].endswith(b"\n\nput in\n"), changed)

    def test_a_run_begins_with_the_call(self) -> None:
        new = self.folder / "new.mbox"
        rows = embody.rows("convert", self.mbox, "--output", new)
        until = time.monotonic() + 60
        while not new.exists() and time.monotonic() < until:
            time.sleep(0.01)
        self.assertTrue(new.exists())
        self.assertEqual(len(list(rows)), 1)

    def test_a_filter_takes_its_message_from_the_call(self) -> None:
        rows = list(embody.rows("filter", input=REFERENCE))
        self.assertEqual([row["outcome"] for row in rows], ["expanded"])

    def test_a_wrong_command_line_and_what_cannot_be_read_are_errors(self) -> None:
        wrong: list[tuple[str, list[str | Path], int]] = [
            ("convert", [self.mbox], 2),
            ("inspect", ["--no-such-option"], 2),
            ("inspect", [self.folder / "missing"], 1),
            ("convert", [self.folder / "missing", "--output", self.folder / "new"], 1),
            ("filter", ["--no-such-option"], 75),
        ]
        for command, words, status in wrong:
            with self.subTest(words), self.assertRaises(embody.Error) as caught:
                list(embody.rows(command, *words))
            self.assertEqual(caught.exception.status, status, caught.exception.stderr)
            self.assertTrue(caught.exception.stderr)

    def test_rows_come_before_the_error(self) -> None:
        packed = gzip.compress(mbox([REFERENCE, os.urandom(300_000).hex().encode() + b"\n"]))
        (self.folder / "cut.gz").write_bytes(packed[: len(packed) // 2])
        for command in "inspect", "convert":
            more: list[str | Path] = ["--output", self.folder / "new.mbox"] if command == "convert" else []
            rows = embody.rows(command, self.folder / "cut.gz", *more)
            self.assertEqual(next(rows)["kind"], "external-body")
            with self.assertRaises(embody.Error):
                list(rows)


class Program(Case):
    def test_run_gives_what_was_written_and_raises_what_was_said(self) -> None:
        filled = embody.run("filter", input=REFERENCE)
        self.assertTrue(filled.endswith(b"\n\nput in"), filled)
        with self.assertRaises(embody.Error) as caught:
            embody.run("inspect", self.folder / "missing")
        self.assertIn("missing", str(caught.exception))
        with self.assertRaises(embody.Error) as caught:
            self.fake("kill -9 $$")
            embody.run("filter")
        self.assertEqual(caught.exception.status, -9)

    def test_the_module_is_the_program(self) -> None:
        words = [sys.executable, "-m", "embody"]
        said = subprocess.run([*words, "--version"], capture_output=True, check=True)
        self.assertEqual(said.stdout, embody.run("--version"))
        done = subprocess.run([*words, "filter"], input=REFERENCE, capture_output=True)
        self.assertEqual(done.stdout, embody.run("filter", input=REFERENCE))
        done = subprocess.run([*words, "convert"], capture_output=True)
        self.assertEqual(done.returncode, 2)

    def test_without_a_program_it_says_where_it_looked(self) -> None:
        with (
            mock.patch("os.access", return_value=False),
            mock.patch("shutil.which", return_value=None),
            self.assertRaisesRegex(FileNotFoundError, "PATH"),
        ):
            embody.program()


class Services(Case):
    CONTENT = bytes(range(256)) * 1000

    def setUp(self) -> None:
        super().setUp()
        symbols = base64.encodebytes(self.CONTENT)
        self.mail = (
            b"Subject: one\nMIME-Version: 1.0\nContent-Type: application/pdf\n"
            b"Content-Transfer-Encoding: base64\n\n" + symbols
        )
        self.store = self.folder / "store"

    def test_a_detached_mail_is_restored_byte_for_byte(self) -> None:
        with embody.Service("--store", self.store) as service:
            small = service.detach(self.mail, larger_than="1k")
            self.assertLess(len(small), 2000)
            self.assertEqual(service.restore(small), self.mail)
            self.assertEqual(service.object(hashlib.sha256(self.CONTENT).hexdigest()), self.CONTENT)
            self.assertEqual(service.inspect(small)[0]["kind"], "attachment")
            for mail in MAILS:
                self.assertEqual(service.restore(mail), mail)
                self.assertEqual(service.filter(mail), embody.run("filter", "--quiet", input=mail))

    def test_options_of_a_request_are_passed_on_and_errors_are_named(self) -> None:
        with embody.Service("--store", self.store, "--max-request", "1M") as service:
            marked = service.filter(REFERENCE, mark=True, on_failure="leave")
            self.assertIn(b"X-Embody: expanded=1", marked)
            with self.assertRaises(embody.Problem) as raised:
                service.filter(REFERENCE, fetch="https")
            self.assertEqual((raised.exception.status, raised.exception.parameter), (400, "fetch"))
            with self.assertRaises(embody.Problem) as raised:
                service.filter(b"x" * (5 << 20))
            self.assertEqual(raised.exception.status, 413)
            copy = pickle.loads(pickle.dumps(raised.exception))
            self.assertEqual((copy.status, str(copy)), (413, str(raised.exception)))
            self.assertEqual(service.filter(b"Subject: x\n\n"), b"Subject: x\n\n")

    def test_messages_of_a_mailbox_come_from_bytes_and_files(self) -> None:
        with embody.Service() as service:
            self.assertEqual(list(service.messages(self.mbox.read_bytes())), MAILS)
            with self.mbox.open("rb") as file:
                messages = service.messages(file)
                self.assertEqual(next(messages), MAILS[0])
            report = None
            reading = service.messages(self.mbox.read_bytes(), format="mbox")
            while report is None:
                try:
                    next(reading)
                except StopIteration as end:
                    report = end.value
            self.assertEqual(report["announced"], len(MAILS))
            with self.assertRaises(embody.Problem):
                list(service.messages(b"\x7fELF\0\0\0"))

    def test_the_service_ends_with_the_statement_and_leaves_nothing(self) -> None:
        with embody.Service() as service:
            process, folder = service._process, Path(service._folder.name)
            self.assertEqual(stat.S_IMODE((folder / "socket").stat().st_mode), 0o600)
        self.assertEqual(process.returncode, 0)
        self.assertFalse(folder.exists())
        service.close()
        with self.assertRaises(embody.Error) as raised:
            embody.Service("--nonsense")
        self.assertEqual(raised.exception.status, 2)
        self.assertIn("--nonsense", str(raised.exception))

    def test_a_service_that_is_killed_raises_an_error(self) -> None:
        with embody.Service() as service:
            service._process.kill()
            service._process.wait()
            with self.assertRaises(embody.Error):
                service.filter(b"Subject: x\n\n")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Detaches and restores the mails of a directory with embody serve, and compares each byte. Reads a mailbox of Outlook.

    client.py http://127.0.0.1:9997 DIRECTORY [MAILBOX.pst]

The token of --token-file is in the variable EMBODY_TOKEN, if the service needs one. Only the standard library is used.
"""

import io
import json
import os
import sys
import tarfile
import urllib.error
import urllib.request
from pathlib import Path


class Embody:
    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url
        self.fields = {"Authorization": f"Bearer {token}"} if token else {}

    def post(self, path: str, body: bytes) -> bytes:
        request = urllib.request.Request(self.url + path, body, self.fields, method="POST")
        try:
            with urllib.request.urlopen(request) as response:
                return response.read()
        except urllib.error.HTTPError as error:
            # The service explains each error in a sentence (RFC 9457).
            raise RuntimeError(json.load(error)["detail"]) from None

    def detach(self, mail: bytes) -> bytes:
        return self.post("/v1/detach?larger-than=1k", mail)

    def restore(self, mail: bytes) -> bytes:
        return self.post("/v1/restore", mail)

    def messages(self, mailbox: bytes) -> dict[str, bytes]:
        with tarfile.open(fileobj=io.BytesIO(self.post("/v1/messages", mailbox))) as archive:
            files = {member.name: archive.extractfile(member).read() for member in archive}
        # An answer without report.json is incomplete.
        report = json.loads(files.pop("report.json"))
        if report["announced"] != len(files):
            print("not read:", report["unreadable"], file=sys.stderr)
        return files


embody = Embody(sys.argv[1], os.environ.get("EMBODY_TOKEN"))
count = 0
for path in sorted(Path(sys.argv[2]).iterdir()):
    mail = path.read_bytes()
    small = embody.detach(mail)
    if embody.restore(small) != mail:
        sys.exit(f"{path} was not restored")
    count += 1
print(f"{count} mails restored")
for mailbox in sys.argv[3:]:
    print(f"{len(embody.messages(Path(mailbox).read_bytes()))} messages read")

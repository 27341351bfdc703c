"""Prepares the cases of the referee: generated mailboxes, the samples, and public corpora.

Public corpora contain mail of other people. They are read from a cache directory outside of this repository, and are
never added to the repository. --corpora or the variable EMBODY_CORPORA names the cache directory. It contains each corpus
as `OWNER+NAME/repo` (a bare git directory), or as `OWNER/NAME`, `OWNER+NAME` or `NAME` (a clone or a plain directory).
"""

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import mails
from compare import Case

ROOT = Path(__file__).resolve().parents[2]
LOOKS_LIKE_MAIL = re.compile(rb"(?:From [^\n]*\n)?(?:[!-9;-~]+[ \t]*:[^\n]*\n(?:[ \t][^\n]*\n)*)")

# The public corpora: repository on GitHub, kind, and a pattern of the paths of the files that are used. The kinds are:
# "mails": each file is a message
# "mboxes": each file is an mbox, and becomes a case
# "inbox": a repository of public-inbox, in which each commit contains a message
# "texts": monthly texts of the archive of a Mailman list, with their attachments
CORPORA = [
    ("stalwartlabs/mail-parser", "mails", r"^resources/eml/.*\.eml$"),
    ("jstedfast/MimeKit", "mails", r"^UnitTests/TestData/(?!mbox/).*\.(eml|msg|txt)$"),
    ("jstedfast/MimeKit", "mboxes", r"^UnitTests/TestData/.*mbox.*\.txt$"),
    ("apache/james-mime4j", "mails", r"^(core|dom|mbox)/src/test/resources/.*\.(msg|eml)$"),
    ("apache/james-mime4j", "mboxes", r"^mbox/src/test/resources/.*rlug"),
    ("notmuch/notmuch", "mails", r"^test/corpora/"),
    ("twisted/pipermail", "texts", r"^[\w-]+/[12]\d\d\d-[A-Z][a-z]+\.txt$"),
    ("imagej/pipermail", "texts", r"^[\w-]+/[12]\d\d\d-[A-Z][a-z]+\.txt$"),
    ("linux-mailinglist-archives/usrp-users.lists.ettus.com.0", "inbox", ""),
    ("linux-mailinglist-archives/openbmc.lists.ozlabs.org.0", "inbox", ""),
    ("linux-mailinglist-archives/iommu.lists.linux-foundation.org.0", "inbox", ""),
    ("rf-peixoto/phishing_pot", "mails", r"^email/.*\.eml$"),
    ("mikel/mail", "mails", r"^spec/fixtures/emails/.*\.eml$"),
    ("ikvk/imap_tools", "mails", r"^tests/messages/.*\.eml$"),
    ("Webklex/php-imap", "mails", r"^tests/messages/.*\.eml$"),
    ("zbateson/mail-mime-parser", "mails", r"^tests/_data/emails/m\d+\.txt$"),
    ("php-mime-mail-parser/php-mime-mail-parser", "mails", r"^tests/mails/m\d+$"),
    ("nodemailer/mailparser", "mails", r"^test/fixtures/.*\.eml$"),
    ("mailgun/flanker", "mails", r"^tests/fixtures/messages/.*\.eml$"),
    ("MailCore/mailcore2", "mails", r"^unittest/data/(parser|summary)/input/.*\.(eml|txt)$"),
    ("SpamScope/mail-parser", "mails", r"^tests/mails/mail_"),
    ("rjbs/Email-MIME", "mails", r"^t/Mail/"),
    ("jhillyerd/enmime", "mails", r"testdata/.*\.raw$"),
    ("GOVCERT-LU/eml_parser", "mails", r"^samples/.*\.eml$"),
]
# Number of mails in one case (an "inbox" case has twice as many), maximum size of a monthly text in bytes, and number of
# monthly texts of one corpus if --most is 400.
MAILS_IN_A_CASE, LARGEST_TEXT, TEXTS = 40, 1 << 20, 8


class Files:
    """The files of a corpus, in a git directory or a plain directory. `place` is None if the cache lacks the corpus."""

    def __init__(self, cache, name):
        owner, short = name.split("/")
        places = [cache / f"{owner}+{short}/repo", cache / owner / short, cache / f"{owner}+{short}", cache / short]
        self.place = next((place for place in places if place.is_dir() and any(place.iterdir())), None)
        self.git = None
        if self.place:
            for git in (self.place, self.place / ".git"):
                if (git / "HEAD").is_file() and (git / "objects").is_dir():
                    self.git = git

    def names(self):
        """Returns the sorted paths of all files."""
        if self.git:
            listed = subprocess.run(
                ["git", f"--git-dir={self.git}", "ls-tree", "-r", "-z", "--name-only", "HEAD"], check=True, capture_output=True).stdout
            return sorted(name.decode("utf-8", "surrogateescape") for name in listed.split(b"\0") if name)
        return sorted(str(path.relative_to(self.place)) for path in self.place.rglob("*") if path.is_file())

    def read(self, names):
        """Yields the path and the bytes of each of these files. Files that the git directory lacks are omitted."""
        if self.git:
            yield from self.objects((name, f"HEAD:{name}") for name in names)
        else:
            yield from ((name, (self.place / name).read_bytes()) for name in names)

    def objects(self, wanted):
        """Yields name and bytes of git objects. `wanted` contains pairs of a name and a revision of the object."""
        process = subprocess.Popen(["git", f"--git-dir={self.git}", "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for name, revision in wanted:
            if "\n" in revision:
                continue
            process.stdin.write(revision.encode("utf-8", "surrogateescape") + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline().split()
            if answer[-1] == b"missing":
                continue
            octets = process.stdout.read(int(answer[2]))
            process.stdout.read(1)
            yield name, octets
        process.stdin.close()
        process.wait()

    def messages(self, most):
        """Returns at most `most` messages of a public-inbox repository, evenly distributed over all commits."""
        log = subprocess.run(["git", f"--git-dir={self.git}", "log", "--reverse", "--format=%H"], check=True, capture_output=True, text=True).stdout
        commits = spread(log.split(), most)
        return [octets for _, octets in self.objects((commit, f"{commit}:m") for commit in commits)]


def spread(items, most):
    """Returns at most `most` items, evenly distributed over the list."""
    items = list(items)
    return items if len(items) <= most else [items[at * len(items) // most] for at in range(most)]


def by_hash(items, most):
    """Returns at most `most` items, sorted. The hashes of the items decide which items are chosen."""
    chosen = sorted(items, key=lambda item: hashlib.sha256(item.encode("utf-8", "surrogateescape")).digest())[:most]
    return sorted(chosen)


def mbox_of(messages):
    """Returns an mbox (mboxrd) of these messages, with the same separator line before each message."""
    lines = []
    for octets in messages:
        quoted = re.sub(rb"(?m)^(>*From )", rb">\1", octets)
        lines.append(b"From list@example.org Tue May 14 10:00:01 2024\n" + quoted + (b"\n" if octets.endswith(b"\n") else b"\n\n"))
    return b"".join(lines)


def prepared(cache, work, most, wanted):
    """Writes the cases of the public corpora below `work`. Returns the cases, and the names of corpora that the cache lacks.

    `most` is the value of --most. If `wanted` (the words of --only) is not empty, only corpora that can have a case whose
    name contains one of the words are used, because it takes long to write the cases of a corpus. Cases that an earlier
    run has written are used again.
    """
    cases, skipped = [], []
    for name, kind, pattern in CORPORA:
        base = work / f"{name.replace('/', '+')}-{kind}-{most}"
        if wanted and not any(may_name_a_case(word, base.name) for word in wanted):
            continue
        files = Files(cache, name) if cache else None
        if not files or not files.place or (kind == "inbox" and not files.git):
            skipped.append(name)
            continue
        if not (base / "done").exists():
            shutil.rmtree(base, ignore_errors=True)
            base.mkdir(parents=True)
            WRITERS[kind](files, base, pattern, most)
            (base / "done").touch()
        for source in sorted(path for path in base.iterdir() if path.name.startswith("case-")):
            attached = base / ("files-" + source.name.removeprefix("case-").split(".")[0])
            cases.append(Case(f"{base.name}/{source.name}", source, attached if attached.is_dir() else None))
    return cases, skipped


def may_name_a_case(word, base):
    """Returns true if the directory name `base` of a corpus contains `word`, or if `word` names cases of this corpus, such as
    `case-001` or the end of `base` and `/case-001`.
    """
    folder, _, case = word.rpartition("/")
    return word in base or (base.endswith(folder) and case.startswith("case-"))


def is_wanted(case, words):
    """Returns true if the name of a case contains one of the words of --only, or if --only is not used."""
    return not words or any(word in case for word in words)


def write_mails(files, base, pattern, most):
    """Writes directories of mails. A file is omitted if it does not begin with a header field (after an optional mbox
    separator line).
    """
    names = by_hash([name for name in files.names() if re.search(pattern, name)], 4 * most)
    chosen = []
    for name, octets in files.read(names):
        if LOOKS_LIKE_MAIL.match(octets.lstrip(b"\r\n")[:4000].replace(b"\r\n", b"\n")):
            chosen.append((name, octets))
        if len(chosen) == most:
            break
    for at, (name, octets) in enumerate(chosen):
        folder = base / f"case-{at // MAILS_IN_A_CASE:03}"
        folder.mkdir(exist_ok=True)
        short = re.sub(r"[^\w-]+", "-", name.rsplit("/", 1)[-1])[:40]
        (folder / f"{at:05}-{short}.eml").write_bytes(octets)


def write_mboxes(files, base, pattern, most):
    """Writes all mboxes; `most` is not used."""
    names = [name for name in files.names() if re.search(pattern, name) and not name.endswith("summary.txt")]
    for at, (_, octets) in enumerate(files.read(names)):
        if octets.startswith(b"From "):
            (base / f"case-{at:03}.mbox").write_bytes(octets)


def write_texts(files, base, pattern, most):
    """Writes monthly texts, and the attachments to which they refer. Very short and very long texts are omitted."""
    everything = files.names()
    texts = [name for name in everything if re.search(pattern, name)]
    known = set(everything)
    count = 0
    for name, octets in files.read(by_hash(texts, 4 * TEXTS)):
        if not 50_000 < len(octets) <= LARGEST_TEXT or count == max(1, TEXTS * most // 400):
            continue
        (base / f"case-{count:03}.txt").write_bytes(octets)
        tails = set(re.findall(rb"/(attachments/\d{8}/[0-9a-f]{8}/[\w.-]+)", octets))
        folder = name.rsplit("/", 1)[0]
        wanted = [f"{folder}/{tail.decode()}" for tail in sorted(tails) if f"{folder}/{tail.decode()}" in known]
        for attached, content in files.read(wanted):
            path = base / f"files-{count:03}" / attached.removeprefix(folder + "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        count += 1


def write_inbox(files, base, pattern, most):
    """Writes mboxes with messages of a public-inbox repository; `pattern` is not used."""
    messages = files.messages(most)
    for at in range(0, len(messages), 2 * MAILS_IN_A_CASE):
        (base / f"case-{at // (2 * MAILS_IN_A_CASE):03}.mbox").write_bytes(mbox_of(messages[at:at + 2 * MAILS_IN_A_CASE]))


WRITERS = {"mails": write_mails, "mboxes": write_mboxes, "texts": write_texts, "inbox": write_inbox}


def generated_name(seed, count):
    """Returns the first part of the names of all cases with generated mails."""
    return f"generated-{seed}-{count}"


def generated(work, seed, count, is_large):
    """Writes generated mailboxes below `work`, and returns their cases: directories of mails, an mbox, a Maildir, and
    mailboxes of Apple Mail and Eudora.

    `count` is the number of mails in the directories of mails. If `is_large` is true, a case with three mails is added
    that need many retrievals or contain many references.
    """
    base = work / generated_name(seed, count)
    shutil.rmtree(base, ignore_errors=True)
    base.mkdir(parents=True)
    cases = []

    def add(name, source, files=None):
        cases.append(Case(f"{base.name}/{name}", source, files))

    for at in range(0, count, MAILS_IN_A_CASE):
        numbers = range(at, min(at + MAILS_IN_A_CASE, count))
        folder, files = base / f"mails-{at:04}", base / f"files-{at:04}"
        mails.write_mails(folder, seed, numbers)
        mails.write_attachments(files, seed, numbers)
        add(folder.name, folder, files)
    numbers = range(100_000, 100_000 + count // 3)
    mails.write_attachments(base / "files-mbox", seed, numbers)
    (base / "mails.mbox").write_bytes(mails.mbox(seed, numbers))
    add("mails.mbox", base / "mails.mbox", base / "files-mbox")
    mails.write_maildir(base / "Maildir", seed, range(200_000, 200_000 + count // 5))
    add("Maildir", base / "Maildir")
    mails.write_apple(base / "apple", seed)
    add("apple", base / "apple")
    mails.write_eudora(base / "eudora", seed)
    add("eudora", base / "eudora")
    if is_large:
        folder = base / "large"
        folder.mkdir()
        (folder / "chain-31.eml").write_bytes(mails.chain_mail(31))
        (folder / "many.eml").write_bytes(mails.many_references(9_000, 30))
        (folder / "rivals.eml").write_bytes(mails.failing_rivals(16, 4 << 20))
        add("large", folder)
    return cases


def samples(work):
    """Copies the messages in samples/ of this repository to a directory, and returns their case in a list."""
    folder = work / "samples"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in sorted((ROOT / "samples").rglob("*.in.eml")):
        name = str(path.relative_to(ROOT / "samples")).replace("/", "-")
        shutil.copyfile(path, folder / name.replace(".in.eml", ".eml"))
    return [Case("samples", folder)]


def cache_directory(named):
    """Returns the directory that --corpora (`named`) or EMBODY_CORPORA names, or None."""
    value = named or os.environ.get("EMBODY_CORPORA")
    return Path(value).resolve() if value else None

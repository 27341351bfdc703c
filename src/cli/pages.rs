//! The text of the long help and the manual pages besides the options. A line at the margin that ends with a colon
//! begins a section; a line with two blanks in front is explained by those with six.

/// A page with the paragraphs that several have.
pub(super) fn whole(page: &str) -> String {
    let page = page.replace("{values}", VALUES);
    page.replace("{size}", SIZE).replace("{config}", CONFIG)
}

const SIZE: &str = "\
Values:
  SIZE
      25M, 1.5M, 512k, 1e6, 1000: bytes; k, M, G and T are powers of two (1M is
      1,048,576), and so are KiB and MiB; kB and MB are powers of ten";

const VALUES: &str = "\
{size}
  DUR
      20s, 500ms, 1m30s
  PAT of a host
      www.example.org, or *.example.org for all hosts beneath it (.example.org
      is the same); a denied address is denied whatever name leads to it
  FROM=TO of --map
      Starts of URLs. TO ends behind its host (https://new.example/), or where
      FROM ends (http:=https:)
  An option that is given twice
      The last one wins; lists (SCHEME, PAT, CIDR, DIR, FROM=TO and
      the N of --allow-port) add up";

const CONFIG: &str = "  FILE of --config
      Options in TOML, under their long names without the hyphens in front";

pub(super) const EMBODY: &str = "\
Examples:
  embody filter --fetch https < in.eml > out.eml
      One message; what is behind https URLs is put in
  embody inspect ~/Mail/archive.mbox
      What a mailbox holds, and what would become of it

Exit status:
  0
      Everything was done
  1
      Something could not be read or written
  2
      The command line is wrong
  75
      From filter: anything but a whole message on stdout

Files:
  embody.toml
      Options in TOML; read only when --config names it

See also:
  procmail(1), maildrop(1), mbox(5), maildir(5)
  RFC 2017, RFC 2046 section 5.2.3, RFC 2397, RFC 2557
";

pub(super) const FILTER: &str = "\
Examples:
  embody filter --fetch https < in.eml > out.eml
      What is behind https URLs is put in
  embody filter --fetch https --allow-host .example.org < in.eml > out.eml
      The same, but only from hosts beneath example.org
  embody filter --config /etc/embody.toml
      As mail systems call it

{values}

Exit status:
  0
      A whole message is on stdout
  75
      Anything else, and nothing is on stdout: mail systems keep the message
      and try again later. With --on-failure defer that includes temporary
      failures: time-outs, refused connections, status 408, 429 and 5xx.
      Stopped by SIGINT, SIGTERM or SIGHUP, too

Files:
{config}
  FILE of --report
      JSON lines are appended, each in one write; several runs may share it.
      docs/reasons.md explains fields and reasons
  DIR of --cache
      Answers of servers, and where nobody answers; docs/cache.md explains what
      is kept, for how long, and who may read it

See also:
  embody(1), embody-convert(1), embody-inspect(1), procmail(1), maildrop(1)
";

pub(super) const CONVERT: &str = "\
Examples:
  embody convert --in-place --backup .old ~/Mail/archive.mbox
      In place; the old mailbox stays as archive.mbox.old
  embody convert --fetch https --dry-run --probe --in-place ~/Mail
      Which sources answer (HEAD, then GET; ftp and file are read); nothing is
      written
  embody convert ~/Maildir --output ~/Maildir.new
      Beside the old one
  embody convert 2024-January.txt.gz --output 2024-January.mbox.zst
      gzip, zstd, bzip2 and xz are read wherever they are, and written if the
      name says so; in place a compressed file stays compressed
  embody convert takeout-001.tgz --output mail.mbox
      The mboxes of a zip or tar archive become one; nothing is unpacked
  embody convert --range 8388608-16777216 archive.mbox --output part-2
      What begins in these bytes; embody split says where to cut

{values}

Exit status:
  0
      Everything was done
  1
      Something could not be read or written, is damaged, or is no mailbox
  2
      The command line is wrong
  128 and the signal's number
      Stopped by a signal

Files:
  SOURCE.lock
      The dotlock of an mbox while it is replaced
{config}
  FILE of --report
      JSON lines are appended, each in one write
  DIR of --cache
      Answers of servers, and where nobody answers; docs/cache.md explains what
      is kept, for how long, and who may read it

See also:
  embody(1), embody-filter(1), embody-inspect(1), mbox(5), maildir(5)
";

pub(super) const EMBED: &str = "\
Examples:
  embody embed ~/Mail/archive.mbox --output kept.mbox
      convert with --embed data,remote --fetch http,https
  embody embed --dry-run ~/Maildir --in-place
      How many pictures there are, and where; no network requests are made
  embody embed --in-place --backup .old --trackers blank ~/Mail/archive.mbox
      In place; invisible pictures, which tell that a mail was read, become
      blank, without network requests
  embody embed < in.eml > out.eml
      One message, as filter does it

{values}

Exit status:
  0
      Everything was done
  1
      Something could not be read or written, is damaged, or is no mailbox
  2
      The command line is wrong
  75
      Of one message: anything but a whole message on stdout
  128 and the signal's number
      Stopped by a signal

Files:
  SOURCE.lock
      The dotlock of an mbox while it is replaced
{config}

See also:
  embody(1), embody-convert(1), embody-filter(1), embody-inspect(1)
";

pub(super) const RECOVER: &str = "\
Examples:
  embody recover ~/Mail/archive.mbox --output whole.mbox
      convert with --fetch http,https and --follow of everything that stands for
      an attachment
  embody recover --attachments ~/list/attachments 2024-May.txt --output may.mbox
      The folder of the list comes first, and then its server
  embody recover --offline ~/Library/Mail/V10 --output mail
      Only what Apple's Mail kept beside its mailboxes; no network requests
  embody recover --dry-run ~/Maildir --in-place
      How much is missing, and where it was; nothing is retrieved
  embody recover < in.eml > out.eml
      One message, as filter does it

{values}

Exit status:
  0
      Everything was done. An attachment that is gone is left, and the sum says
      so
  1
      Something could not be read or written, is damaged, or is no mailbox; or
      files are missing, and none of them is below DIR of --attachments
  2
      The command line is wrong
  75
      Of one message: anything but a whole message on stdout
  128 and the signal's number
      Stopped by a signal

Files:
  SOURCE.lock
      The dotlock of an mbox while it is replaced
{config}

See also:
  embody(1), embody-convert(1), embody-embed(1), embody-inspect(1)
";

pub(super) const SPLIT: &str = "\
Examples:
  embody split --size 128M ~/Mail > ranges.jsonl
      Each line is a range for convert --range
  embody split --count archive.mbox
      With the messages of each range

{size}

Lines:
  path, from, to
      The file, and the bytes: messages that begin in them
  messages
      How many those are, with --count
  message_id
      The first message's Message-ID
  length, mtime
      The file's: convert --expect LENGTH:MTIME refuses another
  kind
      mbox or message
  quoting
      How the mbox quotes: mboxo, mboxrd or mboxcl2
  whole
      Why the file is one range: it is a single message, compressed, an
      archive, an MMDF mailbox, or an mbox in which each message has a
      Content-Length that is right

A Maildir or MH folder has no ranges, and is named on stderr; files without mail are, too.

Exit status:
  0
      All sources were split
  1
      Something could not be read, or is no mailbox
  2
      The command line is wrong, or a source cannot be split
  141
      The reader of a pipe on stdout closed it, as head does; nothing is said

Files:
  SOURCE
      Read, never written

See also:
  embody(1), embody-convert(1), mbox(5), parallel(1)
";

pub(super) const DETACH: &str = "\
Examples:
  embody detach --store /srv/store < in.eml > out.eml
      One message; attachments of 100k and more go into the store
  embody detach --store /srv/store --base-url https://files.example.org/ --in-place ~/Maildir
      A Maildir in place; the attachments' URLs are those of a web server that
      serves the store
  embody detach --store /srv/store --dry-run ~/Mail/archive.mbox
      What would be saved

{size}
  PAT of a media type
      application/pdf, or video/* for all of them
  FORM
      external-body is message/external-body with a URL (RFC 2017); thunderbird
      is what Thunderbird writes, which shows a link

Exit status:
  0
      Everything was done: a whole message is on stdout, or the mailboxes are
      written
  1
      With --output or --in-place: something could not be read or written
  2
      With --output or --in-place: the command line is wrong
  75
      As a filter: anything but a whole message on stdout. With --on-failure
      defer that includes a store that fails for a while
  128 and the signal's number
      Stopped by a signal; as a filter that is 75, too

Files:
  DIR/ab/cd/SHA256
      The attachments in the store, by the hash of their bytes
{config}
  FILE of --report
      JSON lines are appended, each in one write

See also:
  embody(1), embody-restore(1), mbox(5), maildir(5), RFC 2017
";

pub(super) const RESTORE: &str = "\
Examples:
  embody restore --store /srv/store < in.eml > out.eml
      One message, as it was before detach
  embody restore --store /srv/store --in-place ~/Maildir
      A Maildir in place
  embody restore --fetch https --allow-host files.example.org < in.eml
      From the web server that serves the store
  embody restore --store /srv/store --dry-run ~/Mail/archive.mbox
      Whether all attachments are there, each read and its hash compared

{size}
  DUR
      20s, 500ms, 1m30s
  FROM=TO of --map
      Starts of URLs: where a store has moved that is asked over the network

Exit status:
  0
      Everything was done: a whole message is on stdout, or the mailboxes are
      written. An attachment that is not there is left, and said so
  1
      With --output or --in-place: something could not be read or written
  2
      With --output or --in-place: the command line is wrong
  75
      As a filter: anything but a whole message on stdout. With --on-failure
      defer that includes a store or a server that fails for a while
  128 and the signal's number
      Stopped by a signal; as a filter that is 75, too

Files:
{config}
  FILE of --report
      JSON lines are appended, each in one write

See also:
  embody(1), embody-detach(1), mbox(5), maildir(5), RFC 2017
";

pub(super) const INSPECT: &str = "\
Examples:
  embody inspect --fetch https message.eml
      The parts of a message and what filter would do with the same options
  embody inspect --fetch https --probe --json ~/Mail/archive.mbox
      One JSON object for each reference, each source asked whether it answers
  embody inspect --html survey.html ~/Mail
      What is in mailboxes, in numbers, tables and plots, and what to do about it

The survey of mailboxes:
  Dates, attachments by size and type, what detach would save and which of
  them are duplicates, pictures by host, trackers, data: URLs, links and
  references, and with --probe who answers. It is printed in lines, by --json
  as the last line, by --html as a page. docs/survey.md of embody says
  what each field of it is, how it is counted, and where the bounds are.

{values}

Exit status:
  0
      Everything was read
  1
      Something could not be read
  2
      The command line is wrong
  141
      The reader of a pipe on stdout closed it, as head does; nothing is said

Files:
{config}

See also:
  embody(1), embody-filter(1), embody-convert(1)
";

pub(super) const COMPARE: &str = "\
Examples:
  embody compare archive.mbox kept.mbox
      After embody embed archive.mbox --output kept.mbox: every message of
      archive.mbox is in kept.mbox, identical or with its pictures embedded
  embody compare ~/Maildir /backup/Maildir
      Before you delete the first
  embody compare takeout.zip imaps://user@mail.example.org/
      Whether a server has all the mail of an archive

How messages are compared:
  Line endings, quoted From lines, flags, and fields that mailboxes write do
  not count. Then a message of OLD is identical to one of NEW; or NEW has one
  that embody made of it: with pictures embedded, attachments detached with
  their digest or restored, links made absolute, references filled; or it is
  altered otherwise; or it is missing. The order of messages and their folders
  do not count.

  Flags (read, replied, forwarded, flagged, draft, deleted) that OLD has and
  NEW lost are named, if both mailboxes can hold flags.

{size}

Exit status:
  0
      No message of OLD is missing in NEW or altered otherwise
  1
      Some are, or lost flags, or some mail could not be read
  2
      The command line is wrong

Files:
  TMPDIR
      Where descriptions of messages that are not identical are kept during
      the run, and copies of mail on servers

See also:
  embody-convert(1), embody-embed(1), embody-detach(1)
";

#[cfg(all(unix, feature = "milter"))]
pub(super) const MILTER: &str = "\
Examples:
  embody milter --listen unix:/run/embody/milter.sock --fetch https
      What is behind https URLs is put into the mail that Postfix or Sendmail
      hands over there
  embody milter --listen inet:8891 --config /etc/embody.toml --max-message 9M
      The same, on a port of 127.0.0.1

Values:
  ADDRESS
      unix:/path, inet:host:port, or inet:port, which is on 127.0.0.1. Who
      can connect can have any mail worked on

{values}

Signals:
  HUP
      The options are read again, with the configuration file, and the report
      is opened again; sockets and connections stay
  TERM, INT
      Messages under way are answered, then the process ends with 0

Exit status:
  0
      Stopped by a signal
  1
      It could not listen
  2
      The command line is wrong

Files:
{config}
  FILE of --report
      JSON lines are appended, each in one write; source is the queue id

See also:
  embody(1), embody-filter(1), postconf(5), systemd.socket(5)
";

pub(super) const STORE: &str = "\
Examples:
  embody store check /var/store ~/Maildir ~/Mail
      Hashes every object, and looks for the object of every reference
  embody store check /var/store
      Hashes every object
  embody store gc /var/store ~/Maildir ~/Mail
      Lists objects that no mail names, with their sizes
  embody store gc --delete /var/store ~/Maildir ~/Mail
      Removes those of them that are older than a day

Exit status:
  0
      All is well; for gc, all mailboxes were read
  1
      An object is damaged or missing, something could not be read whole, or
      mail of a user of the store was not named: then gc removes nothing
  2
      The command line is wrong
  128 and the signal's number
      Stopped by a signal
  141
      The reader of a pipe on stdout closed it, as head does; nothing is said

Files:
  DIR/ab/cd/SHA256
      An object, under the SHA-256 of its bytes
  DIR/.lock
      Held by whoever puts objects, and alone by gc while it removes some
  DIR/.users
      Who puts objects there; gc removes none while the mail of one was not read
  DIR/.tmp
      What is being written

See also:
  embody(1), embody-inspect(1), RFC 2017
";

pub(super) const SCHEMES: &str = "\
Examples:
  embody schemes > schemes.md
      The tables, in Markdown

Exit status:
  0
      The tables are on stdout
  1
      They could not be written
  141
      The reader of a pipe on stdout closed it, as head does; nothing is said

Files:
  none

See also:
  embody(1), embody-filter(1), RFC 2718
";

pub(super) const MAN: &str = "\
Examples:
  embody man /usr/local/share/man/man1
      All pages, for man(1) to find
  embody man | man -l -
      The page embody(1), without installing it

Exit status:
  0
      The pages are written
  1
      They could not be written
  141
      The reader of a pipe on stdout closed it, as head does; nothing is said

Files:
  DIR/embody.1, DIR/embody-filter.1, and one for each other command
      What is written; DIR is made if it is not there

See also:
  embody(1), man(1)
";

pub(super) const COMPLETIONS: &str = "\
Examples:
  embody completions bash > ~/.local/share/bash-completion/completions/embody
      For bash
  embody completions zsh > ~/.zfunc/_embody
      For zsh, where fpath names ~/.zfunc

Exit status:
  0
      The script is on stdout
  1
      It could not be written
  141
      The reader of a pipe on stdout closed it, as head does; nothing is said

Files:
  none

See also:
  embody(1), bash(1), zsh(1), fish(1)
";

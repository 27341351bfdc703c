//! Servers that lie, lack a required capability, or refuse a command: the old message is kept, and a wrong copy is removed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::mails::{command, mail, rows};
use super::scripted::Scripted;

/// The behavior of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Nature {
    Honest,
    OtherOctets,
    StoresNothing,
    OtherDate,
    NoUidplus,
    NoAppendUid,
    QuotaFull,
    /// The quota is full, and the server supports REPLACE.
    QuotaFullWithReplace,
    DropsKeywords,
    RefusesToDelete,
    /// The server confirms an expunge, but keeps the message.
    ExpungesNothing,
    LacksRights,
    /// The sizes are wrong.
    Lies,
    /// Gmail. With `gives_back`, it responds to APPEND with the UID of the existing message.
    Gmail {
        gives_back: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) uid: u32,
    pub(super) gmail: u64,
    pub(super) flags: Vec<String>,
    pub(super) labels: String,
    pub(super) date: String,
    pub(super) text: String,
}

pub(super) struct Model {
    nature: Nature,
    pub(super) uidvalidity: u32,
    pub(super) next: u32,
    pub(super) inbox: Vec<Stored>,
    pub(super) trash: Vec<Stored>,
    /// Sequence number of each UID in the last response to a FETCH of this UID alone. Removals by other connections are not
    /// reported, so the number is still valid on the connection that sent this FETCH.
    numbers: BTreeMap<u32, usize>,
}

pub(super) const DATE: &str = " 3-Jan-2020 10:00:00 +0100";

impl Model {
    pub(super) fn new(nature: Nature) -> Self {
        // One attachment, in ASCII.
        let text = String::from_utf8(mail(1, 8000).octets)
            .unwrap()
            .replace('\u{fc}', "ue")
            .replace('\u{df}', "ss");
        let old = Stored {
            uid: 5,
            gmail: 500,
            flags: vec!["\\Seen".into(), "Keyword".into()],
            labels: "\"\\\\Important\" Work".into(),
            date: DATE.into(),
            text,
        };
        Self {
            nature,
            uidvalidity: 7,
            next: 6,
            inbox: vec![old],
            trash: Vec::new(),
            numbers: BTreeMap::new(),
        }
    }

    fn is_gmail(&self) -> bool {
        matches!(self.nature, Nature::Gmail { .. })
    }

    fn capabilities(&self) -> String {
        let mut all = "IMAP4rev1 AUTH=PLAIN SASL-IR MOVE".to_owned();
        if self.nature != Nature::NoUidplus {
            all.push_str(" UIDPLUS");
        }
        if self.nature == Nature::QuotaFullWithReplace {
            all.push_str(" REPLACE");
        }
        if self.nature == Nature::LacksRights {
            all.push_str(" ACL");
        }
        if self.is_gmail() {
            all.push_str(" X-GM-EXT-1");
        }
        all
    }

    pub(super) fn answer(&mut self, command: &str) -> Option<String> {
        let words: Vec<&str> = command.split(' ').collect();
        let ok = |text: String| Some(format!("{text}TAG OK done\r\n"));
        match words.as_slice() {
            ["greeting", ..] => Some(format!("* OK [CAPABILITY {}] hi\r\n", self.capabilities())),
            ["CAPABILITY", ..] => ok(format!("* CAPABILITY {}\r\n", self.capabilities())),
            ["LIST", ..] if self.is_gmail() => ok(
                "* LIST () \"/\" INBOX\r\n* LIST (\\All) \"/\" All\r\n* LIST (\\Trash) \"/\" Bin\r\n".into(),
            ),
            ["SELECT" | "EXAMINE", ..] => ok(format!(
                "* {} EXISTS\r\n* OK [UIDVALIDITY {}] valid\r\n* OK [UIDNEXT {}] next\r\n\
                 * OK [PERMANENTFLAGS (\\Seen \\Deleted \\Flagged \\*)] all\r\n",
                self.inbox.len(),
                self.uidvalidity,
                self.next
            )),
            ["MYRIGHTS", ..] => ok("* MYRIGHTS INBOX lrsw\r\n".into()),
            ["UID", "SEARCH", ..] => {
                let found = self.inbox.iter().filter(|it| {
                    !command.contains("UNDELETED") || !it.flags.iter().any(|flag| flag == "\\Deleted")
                });
                let uids: String = found.map(|it| format!(" {}", it.uid)).collect();
                ok(format!("* SEARCH{uids}\r\n"))
            }
            ["UID", "FETCH", set, ..] => ok(self.fetched(set, command)),
            ["APPEND", ..] | ["UID", "REPLACE", ..] => Some(self.appended(command, words[0] == "UID")),
            ["UID", "STORE", ..] => Some(self.stored(&words)),
            ["UID", "EXPUNGE", uid] => {
                let uid: u32 = uid.parse().unwrap();
                let keeps = uid == 5 && self.nature == Nature::ExpungesNothing;
                self.inbox.retain(|it| keeps || it.uid != uid || !it.flags.contains(&"\\Deleted".to_owned()));
                ok(format!("* {} EXPUNGE\r\n", self.numbers.get(&uid).copied().unwrap_or_default()))
            }
            ["UID", "MOVE", uid, folder] => {
                assert_eq!(folder.trim_matches('"'), "Bin");
                let uid: u32 = uid.parse().unwrap();
                let at = self.inbox.iter().position(|it| it.uid == uid).unwrap();
                let moved = self.inbox.remove(at);
                self.trash.push(moved);
                ok(format!("* OK [COPYUID 8 {uid} 1] moved\r\n* 1 EXPUNGE\r\n"))
            }
            _ => None,
        }
    }

    fn fetched(&mut self, set: &str, command: &str) -> String {
        let is_asked = |uid: u32| {
            set.split(',').any(|range| {
                let (first, last) = range.split_once(':').unwrap_or((range, range));
                let last = last.parse().unwrap_or(u32::MAX);
                (first.parse().unwrap()..=last).contains(&uid)
            })
        };
        let mut text = String::new();
        for (at, it) in self
            .inbox
            .iter()
            .enumerate()
            .filter(|(_, it)| is_asked(it.uid))
        {
            let (number, uid) = (at + 1, it.uid);
            if set == uid.to_string() {
                self.numbers.insert(uid, number);
            }
            let lie = if self.nature == Nature::Lies { 2 } else { 0 };
            text.push_str(&match command {
                _ if command.contains("X-GM-MSGID") => format!(
                    "* {number} FETCH (UID {uid} X-GM-MSGID {} X-GM-LABELS ({}))\r\n",
                    it.gmail, it.labels
                ),
                _ if command.contains("BODY.PEEK[HEADER") => {
                    let (head, _) = it.text.split_once("\r\n\r\n").unwrap_or_default();
                    format!(
                        "* {number} FETCH (UID {uid} BODY[HEADER.FIELDS (MESSAGE-ID)] {{{}}}\r\n{head}\r\n\r\n)\r\n",
                        head.len() + 4
                    )
                }
                _ if command.contains("BODY.PEEK[]") => {
                    let digits = command.split_once("[]<").map(|(_, rest)| rest.split('.').next().unwrap());
                    let from: usize = digits.unwrap_or("0").parse().unwrap();
                    let rest = it.text.get(from..).unwrap_or_default();
                    format!("* {number} FETCH (UID {uid} BODY[]<{from}> {{{}}}\r\n{rest})\r\n", rest.len())
                }
                _ => format!(
                    "* {number} FETCH (UID {uid} FLAGS ({}) INTERNALDATE \"{}\" RFC822.SIZE {} \
                     BODYSTRUCTURE ((\"text\" \"plain\" NIL NIL NIL \"8bit\" 30 3)(\"application\" \"pdf\" NIL NIL NIL \"base64\" 8000) \"mixed\"))\r\n",
                    it.flags.join(" "),
                    it.date,
                    it.text.len() + lie
                ),
            });
        }
        text
    }

    fn appended(&mut self, command: &str, is_replace: bool) -> String {
        let is_full = matches!(
            self.nature,
            Nature::QuotaFull | Nature::QuotaFullWithReplace
        );
        if is_full && !is_replace && self.inbox.iter().map(|it| it.text.len()).sum::<usize>() > 5000
        {
            return "TAG NO [OVERQUOTA] the disk is full\r\n".into();
        }
        let (head, text) = command.split_once('}').unwrap();
        let mut text = text.to_owned();
        let list = head.split_once('(').unwrap().1.split(')').next().unwrap();
        let mut flags: Vec<String> = list.split_whitespace().map(str::to_owned).collect();
        let mut date = head
            .split('"')
            .find(|word| word.contains(":00:00"))
            .unwrap()
            .to_owned();
        let uid = self.next;
        self.next += 1;
        match self.nature {
            Nature::OtherOctets => text.insert_str(0, "X-Exchange: was here\r\n"),
            Nature::OtherDate => date = date.replace("2020", "2026"),
            Nature::DropsKeywords => flags.retain(|flag| flag != "Keyword"),
            Nature::StoresNothing => {
                return format!("TAG OK [APPENDUID {} {uid}] done\r\n", self.uidvalidity);
            }
            Nature::Gmail { gives_back: true } => {
                return "TAG OK [APPENDUID 7 5] done\r\n".into();
            }
            _ => {}
        }
        if is_replace {
            self.inbox.clear();
        }
        self.inbox.push(Stored {
            uid,
            gmail: 1000,
            flags,
            labels: String::new(),
            date,
            text,
        });
        match self.nature {
            Nature::NoAppendUid => "TAG OK done\r\n".into(),
            _ => {
                let code = format!("[APPENDUID {} {uid}]", self.uidvalidity);
                format!("* OK {code} there\r\nTAG OK {code} done\r\n")
            }
        }
    }

    fn stored(&mut self, words: &[&str]) -> String {
        let uid: u32 = words[2].parse().unwrap();
        let is_added = words[3].starts_with('+');
        let list = words[4..].join(" ").trim_matches(['(', ')']).to_owned();
        if self.nature == Nature::RefusesToDelete && uid == 5 && list.contains("\\Deleted") {
            return "TAG NO you may not\r\n".into();
        }
        let drops = self.nature == Nature::DropsKeywords;
        for it in self.inbox.iter_mut().filter(|it| it.uid == uid) {
            if words[3].contains("X-GM-LABELS") {
                it.labels = list.clone();
                continue;
            }
            for flag in list.split(' ') {
                it.flags.retain(|there| there != flag);
                if is_added && !(drops && flag == "Keyword") {
                    it.flags.push(flag.to_owned());
                }
            }
        }
        "TAG OK done\r\n".into()
    }
}

/// Returns the exit status of a run with this server, its output, and its row, which is null if there is none.
fn answered(
    options: &[&str],
    answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
) -> (i32, String, Value) {
    let server = Scripted::answering(answer);
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path(), "detach", &server.url("INBOX"))
        .args(options)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let row = rows(folder.path()).into_iter().next().unwrap_or_default();
    (output.status.code().unwrap(), said, row)
}

/// Returns the state of the server after a run, its exit status, its output, and the reason in the row.
fn detached(nature: Nature, options: &[&str]) -> (Arc<Mutex<Model>>, i32, String, String) {
    let model = Arc::new(Mutex::new(Model::new(nature)));
    let answering = Arc::clone(&model);
    let (status, said, row) = answered(options, move |command| {
        answering.lock().unwrap().answer(command)
    });
    let reason = row["reason"]
        .as_str()
        .or(row["outcome"].as_str())
        .unwrap_or_default()
        .to_owned();
    (model, status, said, reason)
}

#[test]
fn a_message_stays_as_it_was_where_the_server_does_not_do_what_it_says() {
    for (nature, reason, status) in [
        (Nature::OtherOctets, "altered-by-server", 0),
        (Nature::StoresNothing, "altered-by-server", 1),
        (Nature::OtherDate, "altered-by-server", 0),
        (Nature::DropsKeywords, "flags-not-kept", 0),
        (Nature::QuotaFull, "quota-full", 1),
        (Nature::QuotaFullWithReplace, "quota-full", 1),
        (Nature::RefusesToDelete, "server-refused", 1),
        (Nature::ExpungesNothing, "server-refused", 1),
        (Nature::Lies, "wrong-size", 0),
        (Nature::NoUidplus, "", 2),
        (Nature::LacksRights, "not-read", 1),
        (Nature::Gmail { gives_back: true }, "altered-by-server", 0),
    ] {
        let (model, found, said, why) = detached(nature, &[]);
        assert_eq!(
            (why.as_str(), found),
            (reason, status),
            "{nature:?}: {said}"
        );
        let model = model.lock().unwrap();
        let before = Model::new(nature);
        assert_eq!(model.inbox.len(), 1, "{nature:?}: {:?}", model.inbox);
        let (old, now) = (&before.inbox[0], &model.inbox[0]);
        assert_eq!((old.uid, &old.flags), (now.uid, &now.flags), "{nature:?}");
        assert_eq!(old.text, now.text, "{nature:?}");
        assert!(model.trash.is_empty(), "{nature:?}");
    }
    let (_, _, said, _) = detached(Nature::NoUidplus, &[]);
    assert!(
        said.contains("UIDPLUS") && said.contains("nothing was changed"),
        "{said}"
    );
    let (_, _, said, _) = detached(Nature::LacksRights, &[]);
    assert!(said.contains("do not have all rights"), "{said}");
    // The attachment was not examined, so there is no advice about its size, and nothing about files.
    let has_advice = said.contains("No attachment has") || said.contains("this file");
    assert!(!has_advice, "{said}");
}

#[test]
fn server_that_lists_no_folders_is_not_taken_for_options_that_exclude_all() {
    let server = Scripted::instead("LIST", "TAG OK done\r\n");
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path(), "detach", &server.url(""))
        .arg("--dry-run")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(!said.contains("options exclude"), "{said}");
}

#[test]
fn a_server_without_condstore_or_without_appenduid_has_its_message_replaced() {
    for nature in [Nature::Honest, Nature::NoAppendUid] {
        let (model, status, said, why) = detached(nature, &[]);
        assert_eq!(
            (why.as_str(), status),
            ("detached", 0),
            "{nature:?}: {said}"
        );
        let model = model.lock().unwrap();
        assert_eq!(model.inbox.len(), 1, "{nature:?}");
        let now = &model.inbox[0];
        assert_eq!((now.uid, now.date.as_str()), (6, DATE));
        assert_eq!(now.flags, ["\\Seen", "Keyword"]);
        assert!(now.text.contains("X-Embody-Detached"));
    }
}

#[test]
fn gmail_labels_are_kept_and_the_old_message_is_moved_to_the_trash() {
    let nature = Nature::Gmail { gives_back: false };
    let (model, status, said, why) = detached(nature, &[]);
    assert_eq!((why.as_str(), status), ("detached", 0), "{said}");
    let model = model.lock().unwrap();
    assert_eq!(model.inbox.len(), 1);
    assert_eq!(model.inbox[0].labels, "\\Important \"Work\"");
    assert_eq!(model.trash.len(), 1);
    assert_eq!(model.trash[0].uid, 5);
}

#[test]
fn replace_is_used_where_there_is_no_room_and_it_was_asked_for() {
    let (model, status, said, why) = detached(Nature::QuotaFullWithReplace, &["--replace"]);
    assert_eq!((why.as_str(), status), ("detached", 0), "{said}");
    let model = model.lock().unwrap();
    assert_eq!(model.inbox.len(), 1);
    assert!(model.inbox[0].text.contains("X-Embody-Detached"));
}

#[test]
fn as_many_connections_are_made_as_there_is_work_for_and_no_more_than_were_asked_for() {
    for (asked, count, limit, wanted) in [
        (None, 40, usize::MAX, 2),
        (Some("1"), 40, usize::MAX, 1),
        (Some("4"), 40, usize::MAX, 4),
        (None, 8, usize::MAX, 1),
        // A server that permits a single connection.
        (Some("4"), 40, 1, 1),
    ] {
        let mut model = Model::new(Nature::Honest);
        let one = model.inbox[0].clone();
        let mails = (5..5 + count).map(|uid| Stored { uid, ..one.clone() });
        model.inbox = mails.collect();
        model.next = 5 + count;
        let model = Arc::new(Mutex::new((model, 0_usize)));
        let answering = Arc::clone(&model);
        let server = Scripted::answering(move |command| {
            let mut model = answering.lock().unwrap();
            if command.starts_with("AUTHENTICATE") {
                if model.1 >= limit {
                    return Some("TAG NO [LIMIT] too many connections\r\n".into());
                }
                model.1 += 1;
            }
            model.0.answer(command)
        });
        let folder = tempfile::tempdir().unwrap();
        let mut command = command(folder.path(), "detach", &server.url("INBOX"));
        if let Some(asked) = asked {
            command.args(["--connections", asked]);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{asked:?}: {said}");
        let model = model.lock().unwrap();
        assert_eq!(model.1, wanted, "{asked:?}, {count} mails");
        assert_eq!(model.0.inbox.len(), count as usize);
        let is_done = |it: &Stored| it.uid >= 5 + count && it.text.contains("X-Embody-Detached");
        assert!(model.0.inbox.iter().all(is_done), "{asked:?}");
    }
}

/// Flags that another program sets between the last check of a message and its mark.
#[test]
fn flags_set_just_before_the_replacement_are_copied_to_the_new_message() {
    let model = Arc::new(Mutex::new((Model::new(Nature::Honest), false)));
    let answering = Arc::clone(&model);
    let (status, _, row) = answered(&[], move |command| {
        let mut model = answering.lock().unwrap();
        if command.starts_with("UID STORE 5 +FLAGS (\\Deleted)") {
            model.0.inbox[0].flags = vec!["\\Seen".into(), "\\Flagged".into()];
            model.1 = true;
        }
        model.0.answer(command)
    });
    assert_eq!(status, 0);
    let model = model.lock().unwrap();
    assert!(model.1, "no such command");
    assert_eq!(model.0.inbox.len(), 1);
    assert_eq!(model.0.inbox[0].uid, 6);
    assert_eq!(model.0.inbox[0].flags, ["\\Seen", "\\Flagged"]);
    let detail = row["detail"].to_string();
    assert!(detail.contains("copied to the new message"), "{detail}");
}

/// Dovecot does this to one of a hundred messages that are marked and expunged at once while another connection changes the
/// same folder.
#[test]
fn message_whose_expunge_is_delayed_is_replaced() {
    let model = Arc::new(Mutex::new((Model::new(Nature::ExpungesNothing), None)));
    let answering = Arc::clone(&model);
    let (status, _, row) = answered(&[], move |command| {
        let (model, first) = &mut *answering.lock().unwrap();
        if command.starts_with("UID EXPUNGE 5") {
            let first = first.get_or_insert_with(Instant::now);
            if first.elapsed() > Duration::from_millis(300) {
                model.nature = Nature::Honest;
            }
        }
        model.answer(command)
    });
    assert_eq!(status, 0);
    assert_eq!(row["outcome"], "detached", "{row}");
    let (model, _) = &*model.lock().unwrap();
    assert_eq!(model.inbox.len(), 1);
    assert_eq!(model.inbox[0].flags, ["\\Seen", "Keyword"]);
}

/// Another program marked the message, so it must not be expunged.
#[test]
fn a_message_that_changed_before_its_mark_is_not_expunged() {
    let model = Arc::new(Mutex::new((Model::new(Nature::Honest), 0)));
    let answering = Arc::clone(&model);
    let (status, _, row) = answered(&[], move |command| {
        let (model, expunged) = &mut *answering.lock().unwrap();
        if command.starts_with("UID STORE 5") {
            model.inbox[0].flags.push("\\Deleted".into());
            return Some("TAG OK [MODIFIED 5] another one was faster\r\n".into());
        }
        *expunged += usize::from(command.starts_with("UID EXPUNGE 5"));
        model.answer(command)
    });
    // The other program may be another run of embody, which takes the new message for its own.
    assert_eq!(status, 1);
    assert_eq!(row["reason"], "changed-meanwhile", "{row}");
    let (model, expunged) = &*model.lock().unwrap();
    assert_eq!((model.inbox.len(), expunged), (2, &0));
    assert_eq!(model.inbox[0].flags, ["\\Seen", "Keyword", "\\Deleted"]);
}

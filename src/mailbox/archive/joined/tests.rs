use super::super::entries::MboxEntry;
use super::super::members::Member;
use super::*;
use crate::mailbox::flag_losses::FlagLosses;

struct Texts(Vec<&'static str>, &'static str);

impl Members for Texts {
    fn next(&mut self) -> io::Result<Option<Member>> {
        let next = (!self.0.is_empty()).then(|| self.0.remove(0));
        self.1 = next.unwrap_or_default();
        let closed = self.1.starts_with('!').then_some("encrypted");
        Ok(next.map(|text| Member {
            name: text.as_bytes().to_vec(),
            closed,
            without_mail: None,
        }))
    }
}

impl Read for Texts {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.1.starts_with('~') {
            return Err(io::Error::other(CompressionDamage::of_member(
                "damaged".to_owned(),
            )));
        }
        if self.1.starts_with('#') {
            let damage = CompressionDamage::of_archive("the end".to_owned(), false);
            return Err(io::Error::other(damage));
        }
        let length = self.1.len().min(into.len()).min(1);
        let (now, rest) = self.1.split_at(length);
        into[..length].copy_from_slice(now.as_bytes());
        self.1 = rest;
        Ok(length)
    }
}

struct NoEntries;

impl EntryMaker for NoEntries {
    fn entry(&mut self, _: &str, _: &[u8], _: StartKind) -> Result<MboxEntry, String> {
        Err("not a message".to_owned())
    }

    fn uses_keyword_files(&self, _: &str) -> bool {
        false
    }

    fn is_keyword_file(&self, _: &str) -> bool {
        false
    }

    fn add_keyword_file(&mut self, _: &str, _: &[u8], _: &mut FlagLosses) {}

    fn unused_flags(&self, _: &str, _: &[u8]) -> Option<&'static str> {
        None
    }
}

const RULES: MemberRules = MemberRules {
    judge,
    entries: || Box::new(NoEntries),
};

fn limits() -> ArchiveLimits {
    ArchiveLimits {
        expanded: 1 << 20,
        stop: Stop::default(),
    }
}

fn judge(_: &[u8], start: &[u8]) -> MemberVerdict {
    match start.first() {
        Some(b'F') => MemberVerdict::Taken,
        Some(b'S') => MemberVerdict::Left("a message"),
        _ => MemberVerdict::Skipped("text"),
    }
}

#[test]
fn joined_mboxes_are_separated_by_an_empty_line_and_unread_files_are_reported() {
    for (texts, expected, left) in [
        (
            vec!["F1\n\n", "F2\n", "F3", "F4\r\n\r\n", "F5"],
            "F1\n\nF2\n\nF3\n\nF4\r\n\r\nF5",
            "",
        ),
        (vec!["F", "x", "", "F2"], "F\n\nF2", ""),
        (
            vec!["S", "F", "!", "!"],
            "F",
            "3 files in the archive were not read: S (a message), ! (encrypted), ! (encrypted)",
        ),
        (
            vec!["F", "!x"],
            "F",
            "a file in the archive was not read: !x (encrypted)",
        ),
        (vec!["x", ""], "", "the archive contains no mbox"),
        (
            vec!["~x", "F"],
            "F",
            "a file in the archive was not read: ~x (damaged)",
        ),
        (
            vec!["S", "F1", "F2#", "F3"],
            "F1\n\nF2",
            "the end; a file in the archive was not read: S (a message)",
        ),
    ] {
        let skipped = Arc::<Mutex<SkippedMember>>::default();
        let mut joined = ArchiveReader::new(
            Texts(texts, ""),
            RULES,
            &skipped,
            (limits(), LookAhead::Stream),
        );
        let mut out = Vec::new();
        let text =
            |error: Option<io::Error>| error.map(|error| error.to_string()).unwrap_or_default();
        let said = joined.read_to_end(&mut out).err();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(text(said), left);
        let again = joined.read(&mut [0; 9]).err();
        assert_eq!(text(again), left);
        let skipped = skipped.lock().unwrap();
        assert!(
            skipped
                .named
                .iter()
                .all(|one| *one == ("x".to_owned(), "text"))
        );
    }
}

#[test]
fn mbox_after_a_damaged_archive_member_starts_without_an_empty_line() {
    let texts = Texts(vec!["F1\n\n", "F2~", "S~", "F3", "F4"], "");
    let mut joined =
        ArchiveReader::new(texts, RULES, &Arc::default(), (limits(), LookAhead::Stream));
    let mut said = Vec::new();
    let mut all = Vec::new();
    for _ in 0..2 {
        let mut out = Vec::new();
        let error = joined.read_to_end(&mut out).unwrap_err();
        said.push(error.downcast::<CompressionDamage>().unwrap());
        all.push(String::from_utf8(out).unwrap());
    }
    assert_eq!(all, ["F1\n\nF2", "F3\n\nF4"]);
    assert!(said[0].goes_on && !said[0].whole);
    assert!(!said[1].goes_on && said[1].whole);
    assert_eq!(
        said[1].to_string(),
        "2 files in the archive were not read: F2~ (damaged; the complete messages before the damage were read), S~ (a message)"
    );
}

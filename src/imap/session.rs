//! A connection that is logged in: the commands as methods, one after the other.
//!
//! What a server says unasked is kept: [`ImapSession::events`]. A failure for which [`ImapFailure::is_passing`] holds ends the session,
//! and a new one may do better; all others leave it usable unless they are [`ImapFailure::Bye`].

/// A folder as LIST gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemoteFolder {
    /// As the server spells it: in modified UTF-7 (RFC 3501 §5.1.3). Commands take this.
    pub(crate) name: String,
    /// What stands between its levels; none: it has none.
    pub(crate) delimiter: Option<char>,
    /// In lower case, with their backslash: `\noselect`, `\all`, `\trash`.
    pub(crate) attributes: Vec<String>,
    /// Whether it lies in a namespace of other users or in a shared one (RFC 2342).
    pub(crate) is_shared: bool,
}

/// What SELECT or EXAMINE says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selected {
    pub(crate) folder: String,
    /// Never 0: a folder without one is refused.
    pub(crate) uidvalidity: u32,
    /// 0 if the server does not say it.
    pub(crate) uidnext: u32,
    pub(crate) exists: u32,
    /// None: no CONDSTORE, or not for this folder (NOMODSEQ).
    pub(crate) highest_modseq: Option<u64>,
    /// As the server spells them; `\*` among them: new keywords may be made.
    pub(crate) permanent_flags: Vec<String>,
    /// The letters of MYRIGHTS (RFC 4314); none without ACL.
    pub(crate) rights: Option<String>,
    pub(crate) is_read_only: bool,
}

/// When a message came, as the server says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InternalDate {
    /// The server's own text without quotation marks, which APPEND takes back: ` 1-Jan-2020 10:00:00 +0100`.
    pub(crate) text: String,
    /// Seconds since 1970 began.
    pub(crate) seconds: i64,
}

/// What FETCH says of a message besides its content.
#[derive(Clone, Debug)]
pub(crate) struct Metadata {
    pub(crate) uid: u32,
    /// As the server spells them, in its order; `\Recent` is not among them.
    pub(crate) flags: Vec<String>,
    pub(crate) internal_date: InternalDate,
    /// RFC822.SIZE: no promise.
    pub(crate) size: u64,
    pub(crate) modseq: Option<u64>,
    /// None if it was not asked for, or cannot be read: such a message may have anything in it.
    pub(crate) structure: Option<BodyPart>,
}

/// What only Gmail has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GmailMetadata {
    pub(crate) uid: u32,
    pub(crate) message_id: u64,
    /// As the server spells them, without quotation marks.
    pub(crate) labels: Vec<String>,
}

/// What a server said unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// So many messages are in the folder now.
    Exists(u32),
    /// The message with this number, no UID, is gone.
    Expunged(u32),
    /// Messages with these UIDs are gone.
    Vanished(String),
    /// A message has other flags now.
    Flags { number: u32, uid: Option<u32>, flags: Vec<String>, modseq: Option<u64> },
}

/// What STORE does to the flags that a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagChange {
    Add,
    Remove,
    Replace,
}

/// What became of STORE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Done { modseq: Option<u64> },
    /// The message changed since: MODIFIED (RFC 7162 §3.1.3). Nothing was stored.
    Modified,
    /// There is no such message any more, as far as the server says.
    Gone,
}

impl ImapSession {
    /// Connects, by TLS unless the account says otherwise, and logs in.
    pub(crate) fn open(account: &Account, stop: &Stop) -> Result<Self, ImapFailure>;

    /// Whether the server has `name`, which is in upper case: `UIDPLUS`, `X-GM-EXT-1`.
    pub(crate) fn has(&self, name: &str) -> bool;

    /// All folders that the account's URL and options mean, `\Noselect` ones not, in the order of their names.
    pub(crate) fn folders(&mut self, account: &Account) -> Result<Vec<RemoteFolder>, ImapFailure>;

    /// All folders that LIST gives for a pattern.
    pub(crate) fn list(&mut self, pattern: &str) -> Result<Vec<RemoteFolder>, ImapFailure>;

    /// EXAMINE: nothing changes, no flag either.
    pub(crate) fn examine(&mut self, folder: &str) -> Result<Selected, ImapFailure>;

    /// SELECT, with CONDSTORE where there is one, and MYRIGHTS where there is ACL.
    pub(crate) fn select(&mut self, folder: &str) -> Result<Selected, ImapFailure>;

    /// UID SEARCH with criteria as they go over the wire: `LARGER 1000 UNDELETED`. In ascending order.
    pub(crate) fn search(&mut self, criteria: &str) -> Result<Vec<u32>, ImapFailure>;

    /// UID SEARCH HEADER `field` `text`, both as literals or quoted; `more` stands before: `UNDELETED`.
    pub(crate) fn search_header(&mut self, more: &str, field: &str, text: &str) -> Result<Vec<u32>, ImapFailure>;

    /// What the messages are like, pipelined; each is handed on as it comes. UIDs that are not there any more are left out.
    pub(crate) fn fetch_metadata(
        &mut self,
        uids: &[u32],
        with: Structure, // Structure::Wanted or ::NotWanted
        each: &mut dyn FnMut(Metadata) -> Result<(), ImapFailure>,
    ) -> Result<(), ImapFailure>;

    /// The whole of each message, in pieces, pipelined, in the order of `messages` (UID, RFC822.SIZE). `sink` gets each
    /// piece, and then is told that the message is whole, or that it is gone.
    pub(crate) fn fetch_bodies(
        &mut self,
        messages: &[(u32, u64)],
        sink: &mut dyn FnMut(u32, BodyPiece<'_>) -> Result<(), ImapFailure>, // BodyPiece::Octets(&[u8]) | Whole | Gone
    ) -> Result<(), ImapFailure>;

    /// The whole of one message; none if it is gone. More than `most` octets are a failure.
    pub(crate) fn fetch_body(&mut self, uid: u32, size: u64, most: usize) -> Result<Option<Vec<u8>>, ImapFailure>;

    /// APPEND: UIDVALIDITY and UID of the new message where the server says them (UIDPLUS).
    pub(crate) fn append(
        &mut self,
        folder: &str,
        flags: &[String],
        date: &InternalDate,
        content: &[u8],
    ) -> Result<Option<(u32, u32)>, ImapFailure>;

    /// REPLACE (RFC 8508) of a message of the selected folder by a new one in `folder`.
    pub(crate) fn replace(
        &mut self,
        uid: u32,
        folder: &str,
        flags: &[String],
        date: &InternalDate,
        content: &[u8],
    ) -> Result<Option<(u32, u32)>, ImapFailure>;

    /// UID STORE of one message.
    pub(crate) fn store_flags(
        &mut self,
        uid: u32,
        change: FlagChange,
        flags: &[String],
        unchanged_since: Option<u64>,
    ) -> Result<Stored, ImapFailure>;

    /// UID EXPUNGE of this one message alone (UIDPLUS).
    pub(crate) fn uid_expunge(&mut self, uid: u32) -> Result<(), ImapFailure>;

    /// UID MOVE (RFC 6851); UIDVALIDITY and UID in the other folder where the server says them.
    pub(crate) fn uid_move(&mut self, uid: u32, folder: &str) -> Result<Option<(u32, u32)>, ImapFailure>;

    /// X-GM-MSGID and X-GM-LABELS.
    pub(crate) fn fetch_gmail(&mut self, uids: &[u32]) -> Result<Vec<GmailMetadata>, ImapFailure>;

    /// STORE +X-GM-LABELS, or -X-GM-LABELS.
    pub(crate) fn store_gmail_labels(&mut self, uid: u32, change: FlagChange, labels: &[String]) -> Result<(), ImapFailure>;

    /// Used and allowed octets of the quota of a folder (RFC 2087); none where there is none.
    pub(crate) fn quota(&mut self, folder: &str) -> Result<Option<(u64, u64)>, ImapFailure>;

    /// NOOP: lets the server say what happened.
    pub(crate) fn noop(&mut self) -> Result<(), ImapFailure>;

    /// What came unasked since this was called last, in its order.
    pub(crate) fn events(&mut self) -> Vec<Event>;

    /// Octets that were read and written so far, beneath TLS not counted twice.
    pub(crate) fn traffic(&self) -> (u64, u64);

    /// LOGOUT; what the server says to it does not matter.
    pub(crate) fn logout(self);
}

// ImapFailure (failure.rs):
// Connect, Tls, Login(text), Refused { command: &'static str, code: Option<String>, text: String } (a NO or BAD),
// Bye(text), Cut(io::Error), Timeout, Protocol(&'static str), TooLarge, Interrupted (the run is to stop), Run(crate::Error)
//   is_passing(): Cut, Timeout, Bye, Connect: a new session may do better.
// BodyPart (structure.rs):
// pub(crate) struct BodyPart { pub(crate) media_type: String /* lower case: "image/png" */, pub(crate) encoding: String,
//   pub(crate) size: u64, pub(crate) disposition: Option<String>, pub(crate) filename: Option<String>, pub(crate) parameters,
//   pub(crate) children: Vec<BodyPart> }  with fn all(&self) -> iterator over all parts

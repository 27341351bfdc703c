//! Lists the messages of a folder with SEARCH (RFC 3501 §6.4.4), and compares their number with EXISTS.
//!
//! Some servers omit messages from the result of SEARCH, with notice (MESSAGELIMIT, RFC 9738) or without. Some answer only with
//! ESEARCH (RFC 4731, RFC 9051), and some refuse SEARCH. EXISTS is the number of messages in the folder. If SEARCH finds fewer,
//! the messages are requested by sequence number. Messages that are not found in this way either are counted for the report.
//! Otherwise they would be missing silently. The result of a search with criteria cannot be compared with EXISTS, so a second
//! search for all messages shows whether the server finds them all.
//!
//! Other programs can delete messages at any time. The server reports that with EXPUNGE, which is counted as well. It must not
//! send EXPUNGE during a FETCH by sequence number (RFC 3501 §7.4.1), so the sequence numbers stay valid until the last request.

use std::collections::BTreeSet;

use super::account::FolderChoice;
use super::command::ImapCommand;
use super::failure::ImapFailure;
use super::fetch::{item, items, uid};
use super::internal_date::whole_year;
use super::response::{ResponseValue, ServerResponse};
use super::search::found_uids;
use super::session::{ImapSession, SelectResponse};

/// Number of messages in one FETCH by sequence number.
const RANGE: u32 = 1000;
/// Maximum number of repetitions while a folder is listed. A FETCH is repeated for the sequence numbers for which the
/// server did not respond.
const MOST_REPEATS: u32 = 300;
/// Number of consecutive ranges without any response after which all further messages count as missing.
const MOST_SILENT_RANGES: u32 = 5;
/// Maximum number of deletions by other programs that are taken into account during one listing. Each deletion shifts
/// the numbers of all later messages, so a huge number of them would take quadratic time.
const MOST_EXPUNGED: u32 = 10_000;

/// Criteria that select messages. The default selects all messages.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub(crate) struct Criteria {
    uid: Option<u32>,
    /// Limits for the date of a message, in the format of SEARCH. The message is from the day `since` or later, and
    /// from a day earlier than `before`.
    since: Option<String>,
    before: Option<String>,
    /// Whether messages with `\Deleted` are excluded.
    is_undeleted: bool,
    /// Size that a message must exceed, in bytes.
    larger: Option<u32>,
    /// Search keys for header fields. Only the server can evaluate them.
    headers: String,
}

impl Criteria {
    /// Returns the criteria for selecting messages that the URL and the options of the user give.
    pub(crate) fn of(choice: &FolderChoice) -> Self {
        Self {
            uid: choice.uid,
            since: choice.since.clone(),
            before: choice.before.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn undeleted(self) -> Self {
        Self {
            is_undeleted: true,
            ..self
        }
    }

    pub(crate) fn larger(self, bytes: u32) -> Self {
        Self {
            larger: Some(bytes),
            ..self
        }
    }

    pub(crate) fn with_headers(self, keys: String) -> Self {
        Self {
            headers: keys,
            ..self
        }
    }

    pub(crate) fn without_headers(&self) -> Self {
        Self {
            headers: String::new(),
            ..self.clone()
        }
    }

    /// Returns the criteria as search keys of IMAP.
    pub(crate) fn search(&self) -> String {
        let mut keys = Vec::new();
        if self.is_undeleted {
            keys.push("UNDELETED".to_owned());
        }
        keys.extend(self.uid.map(|uid| format!("UID {uid}")));
        keys.extend(self.since.iter().map(|day| format!("SINCE {day}")));
        keys.extend(self.before.iter().map(|day| format!("BEFORE {day}")));
        keys.extend(self.larger.map(|bytes| format!("LARGER {bytes}")));
        if !self.headers.is_empty() {
            keys.push(self.headers.trim().to_owned());
        }
        if keys.is_empty() {
            "ALL".to_owned()
        } else {
            keys.join(" ")
        }
    }

    /// Returns whether a message matches the criteria, without the header fields. A message also matches if the server did not
    /// return enough metadata to decide.
    fn fits(&self, message: &SequenceMetadata) -> bool {
        let is_at = |wanted: &Option<String>, is_meant: fn(u32, u32) -> bool| {
            let wanted = wanted.as_deref().and_then(day);
            wanted
                .zip(message.day)
                .is_none_or(|(wanted, found)| is_meant(found, wanted))
        };
        self.uid.is_none_or(|uid| uid == message.uid)
            && is_at(&self.since, |found, wanted| found >= wanted)
            && is_at(&self.before, |found, wanted| found < wanted)
            && !(self.is_undeleted && message.is_deleted)
            && self
                .larger
                .zip(message.size)
                .is_none_or(|(wanted, size)| size > u64::from(wanted))
    }
}

/// Converts a date to a number, so that dates can be compared: a later date has a larger number. Returns `None` if the
/// text does not start with a date.
fn day(text: &str) -> Option<u32> {
    let mut parts = text.split_ascii_whitespace().next()?.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let months = "janfebmaraprmayjunjulaugsepoctnovdec";
    let month = month.to_ascii_lowercase();
    let at = months
        .find(&month)
        .filter(|at| at % 3 == 0 && month.len() == 3)?;
    let digits = year.len();
    let (day, year): (u32, u32) = (day.parse().ok()?, year.parse().ok()?);
    let year = whole_year(year, digits);
    ((1..=31).contains(&day) && (1..=9999).contains(&year))
        .then(|| year * 10_000 + u32::try_from(at).unwrap_or(0) / 3 * 100 + day)
}

/// Result of listing a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FolderContents {
    /// UIDs of the messages that match the criteria, in ascending order.
    pub(crate) uids: Vec<u32>,
    /// UIDs of all messages, in ascending order. Empty if the listing did not need them.
    pub(crate) all: Vec<u32>,
    /// Number of messages for which the server returns no UID, although EXISTS counts them. Some of them may match the
    /// criteria.
    pub(crate) missing: u32,
}

impl FolderContents {
    /// Returns the UID that the user selected, if the folder has no message with this UID.
    pub(crate) fn absent(&self, choice: &FolderChoice) -> Option<u32> {
        let is_listed = |uid: &u32| {
            let lists = [&self.uids, &self.all];
            lists.iter().any(|uids| uids.binary_search(uid).is_ok())
        };
        choice.uid.filter(|uid| !is_listed(uid))
    }

    /// Returns the report about [`missing`](Self::missing) messages, or `None` if the count is zero.
    pub(crate) fn about_missing(&self) -> Option<String> {
        let what = match self.missing {
            0 => return None,
            1 => "1 message".to_owned(),
            count => format!("{count} messages"),
        };
        let found = self.uids.len().max(self.all.len());
        Some(format!(
            "the server announced {what} more than the {found} that it lists, and sent nothing when embody requested the missing messages by their numbers; these messages were not processed"
        ))
    }
}

/// Result of one SEARCH.
#[derive(Default)]
struct SearchResult {
    uids: Vec<u32>,
    /// Whether messages may be missing in the result, because the server refused the search, ended it early, or sent an
    /// unreadable response.
    is_cut: bool,
    is_refused: bool,
}

/// Metadata of a message from a FETCH by sequence number.
struct SequenceMetadata {
    uid: u32,
    is_deleted: bool,
    size: Option<u64>,
    day: Option<u32>,
}

/// Messages of a folder by sequence number, as far as the server has returned them.
#[derive(Default)]
struct NumberedMessages {
    /// Current number of messages in the folder.
    count: u32,
    /// Messages in the order of their sequence numbers, starting with number 1. `None` for a message that was not returned.
    told: Vec<Option<SequenceMetadata>>,
    /// Highest sequence number that was requested.
    asked: u32,
    /// Number of messages for which a response was received.
    known: u32,
    /// Number of messages that other programs deleted during the listing.
    expunged: u32,
}

impl NumberedMessages {
    /// Processes a response about the folder. Returns whether the response belongs to a FETCH.
    fn hear(&mut self, read: &ServerResponse<'_>) -> bool {
        let ServerResponse::Numbered(number, word, _) = read else {
            return false;
        };
        let at = usize::try_from(*number)
            .unwrap_or(usize::MAX)
            .wrapping_sub(1);
        match word.as_str() {
            "EXISTS" => self.count = *number,
            "EXPUNGE" => {
                self.count = self.count.saturating_sub(1);
                self.expunged = self.expunged.saturating_add(1);
                // Removing an element moves all elements after it. The limit prevents quadratic time if a server sends a huge
                // number of EXPUNGE responses.
                if at < self.told.len() && self.expunged <= MOST_EXPUNGED {
                    self.known -= u32::from(self.told.remove(at).is_some());
                    self.asked = self.asked.saturating_sub(1);
                }
            }
            "FETCH" if (1..=self.asked).contains(number) => {
                let Some(found) = items(read).ok().flatten().and_then(|it| numbered(&it)) else {
                    return true;
                };
                if self.told.len() <= at {
                    self.told.resize_with(at + 1, || None);
                }
                self.known += u32::from(self.told[at].replace(found).is_none());
                return true;
            }
            _ => {}
        }
        false
    }

    fn is_told(&self, number: u32) -> bool {
        let at = usize::try_from(number)
            .unwrap_or(usize::MAX)
            .wrapping_sub(1);
        self.told.get(at).is_some_and(Option::is_some)
    }

    /// Returns the ranges of sequence numbers, first and last, for which no response was received.
    fn untold(&self, first: u32, last: u32) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for number in (first..=last).filter(|number| !self.is_told(*number)) {
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == number => *end = number,
                _ => ranges.push((number, number)),
            }
        }
        ranges
    }
}

fn numbered(items: &[[ResponseValue<'_>; 2]]) -> Option<SequenceMetadata> {
    let flags = item(items, "FLAGS")
        .and_then(ResponseValue::list)
        .unwrap_or_default();
    let date = item(items, "INTERNALDATE").and_then(ResponseValue::text);
    Some(SequenceMetadata {
        uid: uid(items)?,
        is_deleted: flags
            .iter()
            .filter_map(ResponseValue::octets)
            .any(|flag| flag.eq_ignore_ascii_case(b"\\Deleted")),
        size: item(items, "RFC822.SIZE").and_then(ResponseValue::size),
        day: date.and_then(|date| day(&date)),
    })
}

impl ImapSession {
    /// Lists the messages of the selected folder that match the criteria. If SEARCH finds as many messages as EXISTS counts, no
    /// other commands are sent.
    pub(crate) fn list_messages(
        &mut self,
        selected: &SelectResponse,
        criteria: &Criteria,
    ) -> Result<FolderContents, ImapFailure> {
        let mut listing = FolderContents::default();
        let mut messages = NumberedMessages {
            count: selected.exists,
            ..NumberedMessages::default()
        };
        if messages.count == 0 {
            return Ok(listing);
        }
        let is_all = *criteria == Criteria::default();
        let has_ranges = self.has("ESEARCH") || self.has("IMAP4REV2");
        // With ESEARCH (RFC 4731), the UIDs of all messages are a few ranges instead of a number for each message.
        let all_keys = if has_ranges {
            "RETURN (ALL) ALL"
        } else {
            "ALL"
        };
        let own_keys = criteria.search();
        let keys = if is_all { all_keys } else { &own_keys };
        let mut found = self.counted_search(keys, &mut messages)?;
        let are_gaps_listed = found.uids.len() > messages.count as usize;
        if is_all && has_ranges && (found.is_refused || are_gaps_listed) {
            found = self.counted_search("ALL", &mut messages)?;
        }
        if found.is_refused && !criteria.headers.is_empty() {
            // Some servers refuse to search certain header fields. The search is repeated without header fields. Its result
            // then contains more messages than necessary, but misses none.
            found = self.counted_search(&criteria.without_headers().search(), &mut messages)?;
        }
        let all = if is_all {
            None
        } else {
            Some(self.counted_search(all_keys, &mut messages)?)
        };
        let is_short = |it: &SearchResult, count: u32| {
            it.is_cut || u32::try_from(it.uids.len()).unwrap_or(u32::MAX) < count
        };
        let is_short = match &all {
            Some(all) => found.is_cut || is_short(all, messages.count),
            None => is_short(&found, messages.count),
        };
        listing.uids = found.uids;
        listing.all = all.map(|all| all.uids).unwrap_or_default();
        if !is_short {
            return Ok(listing);
        }
        self.number(&mut messages, is_all)?;
        let mut meant: BTreeSet<u32> = listing.uids.iter().copied().collect();
        let mut every: BTreeSet<u32> = meant.iter().chain(&listing.all).copied().collect();
        for message in messages.told.iter().flatten() {
            every.insert(message.uid);
            if criteria.fits(message) {
                meant.insert(message.uid);
            }
        }
        let known = u32::try_from(every.len()).unwrap_or(u32::MAX);
        listing.missing = messages.count.saturating_sub(known);
        listing.uids = meant.into_iter().collect();
        listing.all = every.into_iter().collect();
        Ok(listing)
    }

    /// Requests messages by sequence number. If `is_all` is set, no selection is necessary, so only UIDs are requested,
    /// without flags, dates and sizes.
    fn number(&mut self, messages: &mut NumberedMessages, is_all: bool) -> Result<(), ImapFailure> {
        let wanted = if is_all {
            "(UID)"
        } else {
            "(UID FLAGS INTERNALDATE RFC822.SIZE)"
        };
        let (mut repeats, mut silent) = (0, 0);
        let mut first = 1;
        while first <= messages.count && silent < MOST_SILENT_RANGES {
            let last = first.saturating_add(RANGE - 1).min(messages.count);
            messages.asked = last;
            let mut open = vec![(first, last)];
            let mut is_any = false;
            while let Some((from, to)) = open.pop() {
                let before = messages.known;
                let text = format!("FETCH {from}:{to} {wanted}");
                let done = self
                    .exchange
                    .run(ImapCommand::new("FETCH", &text), &mut |read| {
                        Ok(messages.hear(read))
                    });
                match done {
                    Ok(_) => {}
                    Err(why) if why.leaves_session() && !why.is_passing() => {}
                    Err(why) => return Err(why),
                }
                let rest = messages.untold(from, to.min(messages.count));
                let is_new = messages.known > before;
                is_any |= is_new;
                if rest.is_empty() || repeats >= MOST_REPEATS {
                    continue;
                }
                repeats += 1;
                match is_new {
                    // The server answers each command only partially, so the remaining ranges are requested again.
                    true => open.extend(rest),
                    false if from < to => {
                        let middle = from + (to - from) / 2;
                        open.extend([(middle + 1, to), (from, middle)]);
                    }
                    false => {}
                }
            }
            silent = if is_any { 0 } else { silent + 1 };
            first = last + 1;
        }
        // NOOP lets the server report messages that were deleted during the FETCH commands.
        if messages.known < messages.count {
            let noop = ImapCommand::new("NOOP", "NOOP");
            let done = self.exchange.run(noop, &mut |read| {
                messages.hear(read);
                Ok(false)
            });
            match done {
                Ok(_) | Err(ImapFailure::Refused { .. }) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Sends UID SEARCH, and processes the changes of the number of messages that the server reports during the search.
    fn counted_search(
        &mut self,
        criteria: &str,
        messages: &mut NumberedMessages,
    ) -> Result<SearchResult, ImapFailure> {
        let (found, is_answered) = self.counted_search_once(criteria, messages)?;
        // Some servers send no SEARCH response if no message matches. The response may also be lost, so the search is repeated
        // once.
        if is_answered || found.is_cut {
            Ok(found)
        } else {
            Ok(self.counted_search_once(criteria, messages)?.0)
        }
    }

    /// Sends UID SEARCH as [`counted_search`](Self::counted_search). Also returns whether the server sent a result.
    fn counted_search_once(
        &mut self,
        criteria: &str,
        messages: &mut NumberedMessages,
    ) -> Result<(SearchResult, bool), ImapFailure> {
        let mut found = SearchResult::default();
        let mut is_answered = false;
        let command = ImapCommand::new("SEARCH", &format!("UID SEARCH {criteria}"));
        let done = self.exchange.run(command, &mut |read| {
            messages.hear(read);
            match found_uids(read, &mut found.uids) {
                Ok(is_answer) => {
                    is_answered |= is_answer;
                    Ok(is_answer)
                }
                Err(_) => {
                    found.is_cut = true;
                    Ok(true)
                }
            }
        });
        match done {
            Ok(done) => found.is_cut |= done.code == "MESSAGELIMIT",
            Err(ref why @ ImapFailure::Refused { .. }) if !why.is_passing() => {
                found.is_cut = true;
                found.is_refused = true;
            }
            Err(why) => return Err(why),
        }
        found.uids.sort_unstable();
        found.uids.dedup();
        Ok((found, is_answered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imap::response::response;

    #[test]
    fn criteria_mean_to_a_listing_what_they_mean_to_a_search() {
        let choice = FolderChoice {
            since: Some("3-Jan-2020".into()),
            before: Some("1-Feb-2020".into()),
            ..FolderChoice::default()
        };
        let criteria = Criteria::of(&choice).undeleted().larger(1000);
        assert_eq!(
            criteria.search(),
            "UNDELETED SINCE 3-Jan-2020 BEFORE 1-Feb-2020 LARGER 1000"
        );
        assert_eq!(Criteria::default().search(), "ALL");
        let message = |date: &str, size, is_deleted| SequenceMetadata {
            uid: 7,
            is_deleted,
            size,
            day: day(date),
        };
        for (date, size, is_deleted, is_meant) in [
            (" 3-Jan-2020 00:00:00 +1300", Some(1001), false, true),
            ("03-Jan-2020", Some(1001), false, true),
            ("03-Jan-20 10:00:00 +0100", Some(1001), false, true),
            ("02-Jan-2020 23:59:59 -1100", Some(1001), false, false),
            ("31-Jan-2020 23:59:59 +0000", Some(1001), false, true),
            ("01-Feb-2020 00:00:00 +0000", Some(1001), false, false),
            ("05-Jan-2020 00:00:00 +0000", Some(1000), false, false),
            ("05-Jan-2020 00:00:00 +0000", Some(1001), true, false),
            ("05-Jan-2020 00:00:00 +0000", None, false, true),
            ("NIL", Some(1001), false, true),
        ] {
            let message = message(date, size, is_deleted);
            assert_eq!(criteria.fits(&message), is_meant, "{date} {size:?}");
        }
    }

    #[test]
    fn numbers_of_messages_follow_what_is_expunged() {
        let mut messages = NumberedMessages {
            count: 4,
            asked: 4,
            ..NumberedMessages::default()
        };
        for line in [
            &b"* 1 FETCH (UID 11)\r\n"[..],
            b"* 3 FETCH (UID 13)\r\n",
            b"* 9 FETCH (UID 19)\r\n",
            b"* 2 EXPUNGE\r\n",
        ] {
            messages.hear(&response(line).unwrap());
        }
        // The message with number 2 was deleted before the server returned it. The message with number 3 then became number 2.
        assert_eq!(messages.count, 3);
        assert_eq!(messages.untold(1, 3), [(3, 3)]);
        messages.hear(&response(b"* 5 EXISTS\r\n").unwrap());
        assert_eq!(messages.untold(1, messages.count), [(3, 5)]);
    }
}

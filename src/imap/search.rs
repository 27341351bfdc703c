//! Parses the results of SEARCH, including the ESEARCH responses that some servers send instead (RFC 4731, RFC 9051).

use super::fetch::uids_of;
use super::response::{ResponseValue, ServerResponse, number, values};
use super::wire::LONGEST;

/// Parses a SEARCH or ESEARCH response, and appends its UIDs to `found`. Returns false for any other response.
///
/// # Errors
/// A description of the malformed response. UIDs before the error are appended.
pub(super) fn found_uids(
    read: &ServerResponse<'_>,
    found: &mut Vec<u32>,
) -> Result<bool, &'static str> {
    const TOO_MUCH: &str = "the server found more messages than a folder can contain";
    let ServerResponse::Data(word, rest) = read else {
        return Ok(false);
    };
    match word.as_str() {
        "SEARCH" => {
            for digits in rest.split(|byte| *byte == b' ').filter(|it| !it.is_empty()) {
                // The list of UIDs can end with `(MODSEQ 917162500)`, which is not a UID.
                if digits.starts_with(b"(") {
                    break;
                }
                let uid = number(digits)
                    .and_then(|uid| u32::try_from(uid).ok())
                    .filter(|uid| *uid > 0);
                found.push(uid.ok_or(
                    "the server sent a SEARCH response with something other than numbers",
                )?);
            }
        }
        "ESEARCH" => {
            let all = values(rest)?;
            let mut values = all.iter();
            let mut count = None;
            let before = found.len();
            while let Some(value) = values.next() {
                match value {
                    ResponseValue::Atom(name) if name.eq_ignore_ascii_case(b"ALL") => {
                        let set = values
                            .next()
                            .and_then(ResponseValue::text)
                            .unwrap_or_default();
                        let most = LONGEST.saturating_sub(found.len());
                        found.extend(uids_of(&set, most).ok_or(
                            "the server sent an ESEARCH response with something other than numbers",
                        )?);
                    }
                    ResponseValue::Atom(name) if name.eq_ignore_ascii_case(b"COUNT") => {
                        count = values.next().and_then(ResponseValue::number);
                    }
                    _ => {}
                }
            }
            let got = (found.len() - before) as u64;
            if count.is_some_and(|count| count != got) {
                return Err(
                    "the server sent an ESEARCH response whose count differs from the number of messages in the response",
                );
            }
        }
        _ => return Ok(false),
    }
    if found.len() > LONGEST {
        Err(TOO_MUCH)
    } else {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imap::response::response;

    #[test]
    fn search_and_esearch_find_the_same_messages() {
        for (line, uids) in [
            (&b"* SEARCH 2 3 5\r\n"[..], Ok(vec![2, 3, 5])),
            (b"* SEARCH 2 3 5 (MODSEQ 917162500)\r\n", Ok(vec![2, 3, 5])),
            (b"* SEARCH\r\n", Ok(vec![])),
            (
                b"* ESEARCH (TAG \"e5\") UID ALL 2:3,5\r\n",
                Ok(vec![2, 3, 5]),
            ),
            (
                b"* ESEARCH (TAG \"e5\") UID COUNT 3 ALL 5,2:3\r\n",
                Ok(vec![5, 2, 3]),
            ),
            (b"* ESEARCH (TAG \"e5\") UID\r\n", Ok(vec![])),
            (b"* ESEARCH UID MIN 2 ALL 2\r\n", Ok(vec![2])),
            (b"* SEARCH 2 x\r\n", Err(())),
            (b"* SEARCH 0\r\n", Err(())),
            (b"* ESEARCH (TAG \"e5\") UID ALL\r\n", Err(())),
            (b"* ESEARCH (TAG \"e5\") UID ALL 1:4294967295\r\n", Err(())),
            (b"* ESEARCH (TAG \"e5\") UID COUNT 9 ALL 2:3\r\n", Err(())),
            (b"* ESEARCH (TAG \"e5\" UID ALL 2\r\n", Err(())),
        ] {
            let mut found = Vec::new();
            let read = found_uids(&response(line).unwrap(), &mut found)
                .map(|_| found)
                .map_err(|_| ());
            assert_eq!(read, uids, "{}", line.escape_ascii());
        }
    }
}

//! Finds an archive after other bytes in a file: a zip archive after a program, a picture or other data, and a tar archive or
//! compressed data after a shell script. embody does not read such archives. A file counts as not read if a member of its
//! archive may be mail.

use std::fs::File;
use std::io::{self, Cursor, Read as _};
use std::sync::Arc;

use flate2::bufread::DeflateDecoder;
use rawzip::CompressionMethod;

use super::members::Members;
use super::names::is_name_of_mail;
use super::tar::{ForwardSkip, Tar};
use super::zip::Zip;
use crate::mailbox::Stop;
use crate::mailbox::compressed::{CompressionDamage, Decoder, MAGIC, Method};
use crate::mailbox::file::{PackedFile, PackedReader, octets_at};
use crate::mailbox::forms::archive::{BLOCK, EmbeddedMail, is_tar};
use crate::span::{front, rest_or_empty};

/// Decides whether a member is mail or may be mail, by its name and the start of its content.
pub(crate) type MemberJudge = fn(&[u8], &[u8]) -> bool;

/// Number of bytes at the end of a file in which the end record of a zip archive is searched for. A comment of up to 64 KiB can
/// follow the record.
const TAIL: usize = (64 << 10) + END_RECORD;

/// Length of the end record of a zip archive, without its comment.
const END_RECORD: usize = 22;

/// Number of bytes at the start of a member that show whether it is mail.
const MEMBER_START: u64 = 4096;

/// Maximum number of members without the name of a mailbox or a message whose content is looked at.
const MOST_LOOKS: usize = 256;

/// Maximum number of places in a script at which the data of an archive can begin.
const MOST_PLACES: usize = 16;

/// Maximum number of decompressed bytes that are searched for members with mail.
const MOST_PLAIN: u64 = 16 << 20;

/// Returns whether a zip archive at the end of a file contains mail. `start` is the start of the file.
pub(crate) fn is_zip_with_mail_at_end(file: &File, start: &[u8], judge: MemberJudge) -> bool {
    ends_with_zip(file, start).unwrap_or(false)
        && file.try_clone().is_ok_and(|file| {
            let packed = PackedFile::new(&Arc::new(file), &Stop::default());
            search(&mut Zip::new(&packed, u64::MAX), judge) == EmbeddedMail::Found
        })
}

/// Returns whether the end of a file may contain the end record of a zip archive.
fn ends_with_zip(file: &File, start: &[u8]) -> io::Result<bool> {
    const MARK: &[u8] = b"PK\x05\x06";
    let length = file.metadata()?.len();
    let tail = length.saturating_sub(TAIL as u64);
    if tail == 0 && length == start.len() as u64 {
        return Ok(memchr::memmem::rfind(start, MARK).is_some());
    }
    let tail = octets_at(file, tail, TAIL)?;
    Ok(memchr::memmem::rfind(&tail, MARK).is_some())
}

/// Returns whether the first bytes of a file contain members of a zip archive, one of which is mail. The list of members, which is
/// at the end of the file, is not read.
pub(crate) fn has_zipped_mail(start: &[u8], judge: MemberJudge) -> bool {
    const MARK: &[u8] = b"PK\x03\x04";
    const HEADER: usize = 30;
    let members = memchr::memmem::find_iter(start, MARK).take(MOST_LOOKS);
    members.into_iter().any(|at| {
        let member = rest_or_empty(start, at);
        let number = |at: usize| {
            let bytes = rest_or_empty(member, at).first_chunk();
            bytes.copied().map_or(0, u16::from_le_bytes)
        };
        let name_end = HEADER + usize::from(number(26));
        let name = member.get(HEADER..name_end).unwrap_or_default();
        let data = rest_or_empty(member, name_end + usize::from(number(28)));
        let mut content = Vec::new();
        match CompressionMethod::from(number(8)) {
            CompressionMethod::STORE => content.extend(front(data, MEMBER_START as usize)),
            CompressionMethod::DEFLATE => {
                // The data can be cut, so a read error is no sign of damage.
                let plain = DeflateDecoder::new(data).take(MEMBER_START);
                let _ = { plain }.read_to_end(&mut content);
            }
            _ => {}
        }
        !name.is_empty() && !content.is_empty() && judge(name, &content)
    })
}

/// Searches the archive in a shell script for mail. `start` is the start of the script. If `file` is `None`, the rest is not read.
/// Returns `None` if the script contains no archive.
pub(crate) fn mail_in_script(
    file: Option<&File>,
    start: &[u8],
    judge: MemberJudge,
) -> Option<EmbeddedMail> {
    if !start.starts_with(b"#!") {
        return None;
    }
    let places = memchr::memchr_iter(b'\n', start).filter_map(|end| {
        let data = rest_or_empty(start, end + 1);
        let is_packed = data.len() >= MAGIC && Method::of_start(data).is_some();
        (is_packed || is_tar(front(data, BLOCK))).then_some((end + 1, data))
    });
    let found = places
        .take(MOST_PLACES)
        .filter_map(|(at, data)| match file.map(File::try_clone) {
            Some(Ok(file)) => {
                let packed = PackedFile::new(&Arc::new(file), &Stop::default());
                let at = at as u64;
                mail_in_data(PackedReader { packed, at }, data, judge)
            }
            _ => mail_in_data(Cursor::new(data.to_vec()).chain(io::empty()), data, judge),
        });
    found.reduce(EmbeddedMail::more)
}

/// Searches a tar archive, or compressed data, for mail. `start` is the start of the data. Returns `None` if the data are neither.
fn mail_in_data(data: impl ForwardSkip, start: &[u8], judge: MemberJudge) -> Option<EmbeddedMail> {
    let Some(method) = Method::of_start(front(start, MAGIC)) else {
        return Some(search(&mut Tar::new(data), judge));
    };
    let mut plain = Decoder::new(method, data, u64::MAX).take(MOST_PLAIN);
    let mut first = Vec::with_capacity(BLOCK);
    // The next read returns a read error again.
    let _ = (&mut plain).take(BLOCK as u64).read_to_end(&mut first);
    if is_tar(&first) {
        return Some(search(
            &mut Tar::new(Cursor::new(first).chain(plain)),
            judge,
        ));
    }
    let _ = plain.take(MEMBER_START).read_to_end(&mut first);
    match first.is_empty() {
        true => None,
        false if judge(b"", &first) => Some(EmbeddedMail::Found),
        false => Some(EmbeddedMail::Without),
    }
}

/// Searches the members of an archive for mail.
fn search(archive: &mut impl Members, judge: MemberJudge) -> EmbeddedMail {
    let (mut looks, mut has_members) = (0, false);
    loop {
        let member = match archive.next() {
            Ok(Some(member)) => member,
            Ok(None) => return EmbeddedMail::Without,
            Err(error) if !has_members || is_complete(&error) => return EmbeddedMail::Without,
            Err(_) => return EmbeddedMail::Unlisted,
        };
        has_members = true;
        let is_named = is_name_of_mail(&member.name);
        if member.without_mail.is_some() || !is_named && looks >= MOST_LOOKS {
            continue;
        }
        looks += 1;
        let mut start = Vec::new();
        let read = archive.take(MEMBER_START).read_to_end(&mut start);
        let is_mail = match member.closed {
            None if read.is_ok() || !start.is_empty() => judge(&member.name, &start),
            // The content cannot be read, so the name decides.
            _ => is_named,
        };
        if is_mail {
            return EmbeddedMail::Found;
        }
    }
}

/// Returns whether all members of an archive were read before an error.
fn is_complete(error: &io::Error) -> bool {
    let inner = error.get_ref();
    let damage = inner.and_then(|inner| inner.downcast_ref::<CompressionDamage>());
    damage.is_some_and(|damage| damage.whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = ::tar::Builder::new(Vec::new());
        for (name, content) in members {
            let mut header = ::tar::Header::new_ustar();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, name, *content).unwrap();
        }
        archive.into_inner().unwrap()
    }

    #[test]
    fn archive_in_a_script_is_searched_as_far_as_it_is_known() {
        let judge: MemberJudge = |_, start| start.starts_with(b"mail");
        let found = |script: &[u8]| mail_in_script(None, script, judge);
        let script = |data: &[u8]| [b"#!/bin/sh\nexit\n", data].concat();
        let other = [0; 2000];
        let with_mail = tar(&[("a", &other), ("b", b"mail")]);
        let without = tar(&[("a", &other), ("b", b"text")]);
        let packed = |plain: &[u8]| zstd::encode_all(plain, 1).unwrap();
        for (data, expected) in [
            (&with_mail[..], Some(EmbeddedMail::Found)),
            (&packed(&with_mail), Some(EmbeddedMail::Found)),
            (&packed(b"mail of some length"), Some(EmbeddedMail::Found)),
            (&without, Some(EmbeddedMail::Without)),
            (&packed(&without), Some(EmbeddedMail::Without)),
            (&packed(b"text of some length"), Some(EmbeddedMail::Without)),
            (&with_mail[..2048], Some(EmbeddedMail::Unlisted)),
            (&packed(&with_mail[..2048]), Some(EmbeddedMail::Unlisted)),
            (b"\x1f\x8b\x08 is the magic number of gzip", None),
            (b"text\n", None),
        ] {
            assert_eq!(found(&script(data)), expected, "{}", data.escape_ascii());
        }
        assert_eq!(found(&[b"text\n", &with_mail[..]].concat()), None);
    }
}

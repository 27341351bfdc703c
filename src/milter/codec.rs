//! The packets of the milter protocol, version 6. Sendmail's libmilter/milter.c and include/libmilter/mfdef.h are its
//! only specification. Postfix's MILTER_README describes the differences of Postfix.
//!
//! A packet consists of its length (4 bytes, big-endian), a byte for the command, and the data of the command. Reading
//! a packet that does not follow these rules gives [`PacketError`].

use std::io::{self, BufRead, Read as _, Write};

/// Maximum size of a packet that is accepted, in bytes. Mail systems send the body in parts of at most 65,535 bytes,
/// and header fields that are not much larger. The limit of libmilter is also slightly above 1 MiB.
pub const LARGEST: usize = (1 << 20) + (1 << 10);

/// Maximum size of the data in one packet that every mail system accepts, in bytes. A longer body is sent in several
/// packets.
pub const CHUNK: usize = 65_535;

/// Flags of the negotiation at the start of a connection (`SMFIF_`): the changes that the filter may make to a message.
pub mod action {
    pub const ADD_FIELDS: u32 = 0x01;
    pub const CHANGE_BODY: u32 = 0x02;
    pub const CHANGE_FIELDS: u32 = 0x10;
    pub const SET_MACROS: u32 = 0x100;
}

/// Flags of the negotiation at the start of a connection (`SMFIP_`): packets that the mail system need not send, and
/// packets that need no reply.
pub mod option {
    pub const NO_CONNECT: u32 = 0x01;
    pub const NO_HELO: u32 = 0x02;
    pub const NO_MAIL: u32 = 0x04;
    pub const NO_RCPT: u32 = 0x08;
    pub const NO_BODY: u32 = 0x10;
    pub const NO_FIELDS: u32 = 0x20;
    /// The filter sends no replies to header fields.
    pub const QUIET_FIELDS: u32 = 0x80;
    pub const NO_UNKNOWN: u32 = 0x100;
    pub const NO_DATA: u32 = 0x200;
    pub const SKIP: u32 = 0x400;
    /// The filter sends no replies to parts of the body.
    pub const QUIET_BODY: u32 = 0x8_0000;
    /// Header field values include the blank after the colon, in both directions.
    pub const LEADING_SPACE: u32 = 0x10_0000;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PacketError {
    #[error("a milter packet of {0} bytes, which is too large")]
    TooLarge(usize),
    #[error("an empty milter packet")]
    Empty,
    #[error("a milter packet with the unknown command {0:#04x}")]
    Unknown(u8),
    #[error("a malformed milter packet with the command '{0}'")]
    Shape(char),
    #[error(
        "a milter packet with the command '{0}', which the protocol does not allow at this point"
    )]
    OutOfOrder(char),
}

impl From<PacketError> for io::Error {
    fn from(malformed: PacketError) -> Self {
        Self::new(io::ErrorKind::InvalidData, malformed)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MilterTerms {
    pub version: u32,
    pub actions: u32,
    pub options: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MilterCommand<'p> {
    Negotiate(MilterTerms),
    /// Pairs of a name and a value, each followed by a NUL byte.
    Macros(&'p [u8]),
    Abort,
    Field {
        name: &'p [u8],
        value: &'p [u8],
    },
    EndOfHeader,
    Body(&'p [u8]),
    /// The last part of the body, usually empty.
    EndOfBody(&'p [u8]),
    /// A step of the SMTP session that embody ignores: CONNECT, HELO, MAIL, RCPT, DATA, or an unknown command. The
    /// value is the byte of the command.
    Event(u8),
    QuitNewConnection,
    Quit,
}

/// Reads one packet. Returns false at the end of the connection, even if it ends inside a packet.
pub fn read_packet(from: &mut impl BufRead, packet: &mut Vec<u8>) -> io::Result<bool> {
    packet.clear();
    if from.by_ref().take(4).read_to_end(packet)? < 4 {
        return Ok(false);
    }
    let (length, _) = number(packet).unwrap_or_default();
    packet.clear();
    match usize::try_from(length).unwrap_or(usize::MAX) {
        0 => Err(PacketError::Empty.into()),
        length @ LARGEST.. => Err(PacketError::TooLarge(length).into()),
        length => Ok(from.by_ref().take(length as u64).read_to_end(packet)? == length),
    }
}

impl<'p> MilterCommand<'p> {
    pub fn read(packet: &'p [u8]) -> Result<Self, PacketError> {
        let (&kind, rest) = packet.split_first().ok_or(PacketError::Empty)?;
        let shape = || PacketError::Shape(char::from(kind));
        Ok(match kind {
            b'O' => Self::Negotiate(MilterTerms::read(rest).ok_or_else(shape)?),
            b'D' => Self::Macros(rest.get(1..).ok_or_else(shape)?),
            b'A' => Self::Abort,
            b'L' => {
                let (name, rest) = text(rest).ok_or_else(shape)?;
                let (value, rest) = text(rest).ok_or_else(shape)?;
                if name.is_empty() || !rest.is_empty() {
                    return Err(shape());
                }
                Self::Field { name, value }
            }
            b'N' => Self::EndOfHeader,
            b'B' => Self::Body(rest),
            b'E' => Self::EndOfBody(rest),
            b'C' | b'H' | b'M' | b'R' | b'T' | b'U' => Self::Event(kind),
            b'K' => Self::QuitNewConnection,
            b'Q' => Self::Quit,
            unknown => return Err(PacketError::Unknown(unknown)),
        })
    }
}

impl MilterTerms {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = number(bytes)?;
        let (actions, rest) = number(rest)?;
        let (options, _) = number(rest)?;
        Some(Self {
            version,
            actions,
            options,
        })
    }
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number), rest))
}

fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(0, bytes)?;
    Some((bytes.get(..end)?, bytes.get(end + 1..)?))
}

pub fn macro_value<'p>(macros: &'p [u8], name: &[u8]) -> Option<&'p [u8]> {
    let mut rest = macros;
    while let Some((found, behind)) = text(rest) {
        let (value, behind) = text(behind)?;
        let bare = found
            .strip_prefix(b"{")
            .and_then(|it| it.strip_suffix(b"}"))
            .unwrap_or(found);
        if bare == name {
            return Some(value);
        }
        rest = behind;
    }
    None
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MilterReply<'r> {
    Negotiate(MilterTerms, Option<&'r [u8]>),
    Continue,
    /// The message is accepted, and the mail system sends no more of it.
    Accept,
    Skip,
    TryLater,
    Progress,
    Body(&'r [u8]),
    Add {
        name: &'r [u8],
        value: &'r [u8],
    },
    /// Inserts a header field. `at` is the position of the new field in the header, counted from 0.
    Insert {
        at: u32,
        name: &'r [u8],
        value: &'r [u8],
    },
    /// Changes the value of a header field. `which` counts the fields with this name, from 1. An empty value removes the
    /// field.
    Change {
        which: u32,
        name: &'r [u8],
        value: &'r [u8],
    },
}

/// The stages of a message for which macros are requested: the end of the body and the end of the header (`SMFIM_`).
const STAGES: [u32; 2] = [5, 6];

impl MilterReply<'_> {
    pub(super) fn packet(&self) -> Vec<u8> {
        let mut packet = Vec::with_capacity(32);
        let _ = self.write(&mut packet);
        packet
    }

    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match *self {
            Self::Negotiate(terms, macros) => {
                let numbers = [terms.version, terms.actions, terms.options];
                let mut rest = numbers.map(u32::to_be_bytes).concat();
                for stage in STAGES {
                    let wanted = macros.map(|it| [&stage.to_be_bytes(), it, b"\0"].concat());
                    rest.extend(wanted.unwrap_or_default());
                }
                write(to, b'O', &[&rest])
            }
            Self::Continue => write(to, b'c', &[]),
            Self::Accept => write(to, b'a', &[]),
            Self::Skip => write(to, b's', &[]),
            Self::TryLater => write(to, b't', &[]),
            Self::Progress => write(to, b'p', &[]),
            Self::Body(octets) => write(to, b'b', &[octets]),
            Self::Add { name, value } => write(to, b'h', &[name, b"\0", value, b"\0"]),
            Self::Insert { at, name, value } => {
                write(to, b'i', &[&at.to_be_bytes(), name, b"\0", value, b"\0"])
            }
            Self::Change { which, name, value } => {
                write(to, b'm', &[&which.to_be_bytes(), name, b"\0", value, b"\0"])
            }
        }
    }
}

fn write(to: &mut impl Write, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
    let octets: usize = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    let length = u32::try_from(octets).map_err(|_| io::ErrorKind::InvalidInput)?;
    to.write_all(&length.to_be_bytes())?;
    to.write_all(&[kind])?;
    parts.iter().try_for_each(|part| to.write_all(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(reply: MilterReply<'_>) -> Vec<u8> {
        let mut packet = Vec::new();
        reply.write(&mut packet).expect("a vector takes all");
        packet
    }

    #[test]
    fn packets_are_those_of_libmilter() {
        let mut bytes = b"\0\0\0\x0dLSubject\0 hi\0rest".as_slice();
        let mut found = b"another".to_vec();
        assert!(read_packet(&mut bytes, &mut found).expect("a length"));
        assert_eq!(bytes, b"rest");
        let (name, value) = (b"Subject".as_slice(), b" hi".as_slice());
        assert_eq!(
            MilterCommand::read(&found),
            Ok(MilterCommand::Field { name, value })
        );
        assert_eq!(written(MilterReply::Continue), b"\0\0\0\x01c");
        let insert = MilterReply::Insert { at: 3, name, value };
        assert_eq!(written(insert), b"\0\0\0\x11i\0\0\0\x03Subject\0 hi\0");
        let terms = MilterTerms {
            version: 6,
            actions: 1,
            options: 2,
        };
        assert_eq!(
            written(MilterReply::Negotiate(terms, Some(b"i"))),
            b"\0\0\0\x19O\0\0\0\x06\0\0\0\x01\0\0\0\x02\0\0\0\x05i\0\0\0\0\x06i\0"
        );
        assert_eq!(
            MilterCommand::read(b"O\0\0\0\x06\0\0\0\x01\0\0\0\x02more"),
            Ok(MilterCommand::Negotiate(terms))
        );
    }

    #[test]
    fn a_macro_is_found_with_and_without_braces() {
        let macros = b"j\0mail.example.org\0{i}\x004XYZ\0";
        assert_eq!(macro_value(macros, b"i"), Some(b"4XYZ".as_slice()));
        assert_eq!(
            macro_value(macros, b"j"),
            Some(b"mail.example.org".as_slice())
        );
        assert_eq!(macro_value(macros, b"mail.example.org"), None);
        assert_eq!(macro_value(b"i\0cut off", b"i"), None);
    }

    #[test]
    fn what_is_no_packet_is_refused() {
        let packet = |mut bytes: &[u8]| {
            let read = read_packet(&mut bytes, &mut Vec::new());
            read.map_err(|why| *why.get_ref().unwrap().downcast_ref().unwrap())
        };
        assert_eq!(packet(b"\0\0\0\0"), Err(PacketError::Empty));
        assert_eq!(
            packet(b"\xff\xff\xff\xffL"),
            Err(PacketError::TooLarge(0xffff_ffff))
        );
        assert_eq!(packet(b""), Ok(false));
        assert_eq!(packet(b"\0\0\0"), Ok(false));
        assert_eq!(packet(b"\0\0\0\x02B"), Ok(false));
        for bytes in [
            b"LSubject\0 hi".as_slice(),
            b"L\0 hi\0",
            b"Lname\0value\0more",
            b"O\0",
            b"D",
        ] {
            let shape = PacketError::Shape(char::from(bytes[0]));
            assert_eq!(
                MilterCommand::read(bytes),
                Err(shape),
                "{}",
                bytes.escape_ascii()
            );
        }
        assert_eq!(MilterCommand::read(b"z"), Err(PacketError::Unknown(b'z')));
    }

    proptest! {
        #[test]
        fn any_octets_give_packets_or_a_refusal(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (mut rest, mut found) = (bytes.as_slice(), Vec::new());
            if let Ok(true) = read_packet(&mut rest, &mut found) {
                prop_assert_eq!(&bytes[4..], [&found, rest].concat());
            }
            if let Ok(MilterCommand::Macros(macros)) = MilterCommand::read(&bytes) {
                let _ = macro_value(macros, b"i");
            }
        }

        #[test]
        fn each_milter_reply_is_written_as_exactly_one_packet(at: u32, name in "[!-9;-~]{1,9}", value in "[ -~\n\t]{0,80}") {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            for reply in [MilterReply::Insert { at, name, value }, MilterReply::Body(value), MilterReply::Skip] {
                let bytes = written(reply);
                let (mut rest, mut found) = (bytes.as_slice(), Vec::new());
                prop_assert!(read_packet(&mut rest, &mut found).expect("a length"));
                prop_assert!(rest.is_empty());
            }
        }
    }
}

//! The header of a `.pst` file: its version, its encoding, and the positions of the two indexes.

use std::io;

use super::super::encoding::PstEncoding;
use super::allowance::Fault;
use super::bytes::{RandomAccess, Width, exact, u16_at};
use super::page::{BLOCKS, NODES, PAGE};

/// Values from the header of a file (MS-PST 2.2.2.6).
#[derive(Clone, Debug)]
pub(in crate::engine::outlook) struct HeaderValues {
    pub width: Width,
    /// `None` if the header names an unknown encoding.
    pub(super) encoding: Option<PstEncoding>,
    pub(super) nodes: u64,
    pub(super) blocks: u64,
    pub(super) damage: Option<String>,
}

/// Length of the header in bytes.
const HEADER: usize = 564;

/// The first bytes of every `.pst` file.
pub const SIGNATURE: &[u8] = b"!BDN";

/// Returns the version of a file, or `None` if it is not a `.pst` file.
pub fn version(start: &[u8]) -> Option<u16> {
    start.strip_prefix(SIGNATURE)?;
    u16_at(start, 10)
}

/// Reads the header of a file, or the whole file if it is shorter.
///
/// # Errors
/// Returns the errors of `bytes`.
pub fn header(bytes: &dyn RandomAccess) -> io::Result<Vec<u8>> {
    let mut header = vec![0; HEADER];
    let length = exact(bytes, 0, &mut header)?;
    header.truncate(length);
    Ok(header)
}

impl HeaderValues {
    pub(super) fn read(bytes: &dyn RandomAccess) -> Result<Self, Fault> {
        let header = &*header(bytes).map_err(|why| format!("the file cannot be read: {why}"))?;
        match version(header) {
            None if header.starts_with(SIGNATURE) => {
                Err("the file ends within its header; get a complete copy, and convert that".to_owned())
            }
            None => Err("the file is not an Outlook mailbox".to_owned()),
            Some(14 | 15) => Self::of(Width::Ansi, header),
            Some(23) => Self::of(Width::Unicode, header),
            Some(36) => Err(
                "the file has the version 36 (Outlook 2013 or later), which embody does not read; export the mailbox to a .pst file in Outlook, and convert that file"
                    .to_owned(),
            ),
            Some(other) => {
                // The version in the header is damaged, so both layouts are tried. They have the offsets of the indexes at
                // different positions, and only the right layout leads to valid pages.
                let widths = [Width::Unicode, Width::Ansi].into_iter();
                let mut starts = widths.filter_map(|width| Self::of(width, header).ok());
                let mut start = starts.find(|start| start.has_trees(bytes)).ok_or_else(|| {
                    format!(
                        "the file has the version {other}, and embody reads the versions 14, 15 and 23; export the mailbox to a new .pst file in Outlook, and convert that file"
                    )
                })?;
                start.damage = Some(format!(
                    "the header of the file is damaged: the header gives the unknown version {other}"
                ));
                Ok(start)
            }
        }
    }

    /// Returns true if the offsets in the header lead to a page of each index.
    fn has_trees(&self, bytes: &dyn RandomAccess) -> bool {
        let trailer = (PAGE - self.width.of_trailer()) as u64;
        let is = |offset: u64, kind| {
            let mut kinds = [0; 2];
            let at = offset.saturating_add(trailer);
            exact(bytes, at, &mut kinds).is_ok_and(|read| read == 2) && kinds == [kind, kind]
        };
        is(self.nodes, NODES) && is(self.blocks, BLOCKS)
    }

    fn of(width: Width, header: &[u8]) -> Result<Self, Fault> {
        let (nodes, blocks, encoding) = match width {
            Width::Ansi => (188, 196, 461),
            Width::Unicode => (224, 240, 513),
        };
        let number = |at| {
            width
                .id(header, at)
                .ok_or("the file ends within its header")
        };
        let encoding = header
            .get(encoding)
            .copied()
            .ok_or("the file ends within its header")?;
        let known = PstEncoding::of(encoding);
        Ok(Self {
            width,
            encoding: known,
            nodes: number(nodes)?,
            blocks: number(blocks)?,
            damage: known.is_none().then(|| {
                format!("the header of the file is damaged: the header gives the unknown encoding {encoding}")
            }),
        })
    }
}

//! Decompresses RTF bodies (MS-OXRTFCP).

use super::rtf::RtfDamage;
use crate::span::front;

/// Initial content of the dictionary (MS-OXRTFCP 2.1.2.1). Compressed streams refer to it.
const DICTIONARY: &[u8] = b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";
const WINDOW: usize = 4096;
const HEADER: usize = 16;
const COMPRESSED: &[u8] = b"LZFu";
const UNCOMPRESSED: &[u8] = b"MELA";

/// Decompresses an RTF body. Also returns the damage, if there is any.
///
/// # Errors
/// Returns [`RtfDamage::Header`] if no RTF can be read.
pub fn decompress(bytes: &[u8]) -> Result<(Vec<u8>, Option<RtfDamage>), RtfDamage> {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(word))
    };
    let (Some(compressed), Some(raw), Some(checksum)) = (word(0), word(4), word(12)) else {
        return Err(RtfDamage::Header);
    };
    let raw = usize::try_from(raw).unwrap_or(usize::MAX);
    let content = &bytes[HEADER..];
    match bytes.get(8..12) {
        Some(UNCOMPRESSED) => {
            // Some programs count 12 bytes of the header in the size of the RTF (`raw`), so content that is up to 12
            // bytes short is not damaged.
            let is_short = raw > content.len().saturating_add(12);
            let rtf = front(content, raw).to_vec();
            Ok((rtf, is_short.then_some(RtfDamage::Truncated)))
        }
        Some(COMPRESSED) => {
            // The compressed size counts everything after its own field: the other 12 bytes of the header, and the
            // content.
            let declared = usize::try_from(compressed)
                .unwrap_or(usize::MAX)
                .saturating_sub(HEADER - 4);
            let packed = front(content, declared);
            let rtf = inflate(packed, raw);
            let damage = match () {
                () if crc(packed) != checksum => Some(RtfDamage::Checksum),
                () if rtf.len() < raw => Some(RtfDamage::Truncated),
                () => None,
            };
            Ok((rtf, damage))
        }
        _ => Err(RtfDamage::Header),
    }
}

/// Decompresses the content. A reference of two bytes expands to at most 17 bytes, so the output is at most about eight times
/// as long as the input.
fn inflate(content: &[u8], raw: usize) -> Vec<u8> {
    let mut window = [b' '; WINDOW];
    let mut write = DICTIONARY.len();
    if let Some(start) = window.get_mut(..write) {
        start.copy_from_slice(DICTIONARY);
    }
    let mut rtf = Vec::with_capacity(raw.min(content.len().saturating_mul(4)));
    let mut bytes = content.iter().copied();
    let mut push = |rtf: &mut Vec<u8>, window: &mut [u8; WINDOW], byte: u8| {
        rtf.push(byte);
        window[write % WINDOW] = byte;
        write = (write + 1) % WINDOW;
        write
    };
    let mut end = DICTIONARY.len();
    'all: while let Some(control) = bytes.next() {
        for bit in 0..8 {
            if rtf.len() >= raw {
                break 'all;
            }
            let Some(first) = bytes.next() else {
                break 'all;
            };
            if control & 1 << bit == 0 {
                end = push(&mut rtf, &mut window, first);
                continue;
            }
            let Some(second) = bytes.next() else {
                break 'all;
            };
            let reference = usize::from(u16::from_be_bytes([first, second]));
            let (offset, length) = (reference >> 4, (reference & 15) + 2);
            if offset == end {
                break 'all;
            }
            for step in 0..length {
                let byte = window[(offset + step) % WINDOW];
                end = push(&mut rtf, &mut window, byte);
            }
        }
    }
    rtf.truncate(raw);
    rtf
}

/// Computes the CRC-32 without the usual inversions at the start and the end (MS-OXRTFCP 2.1.3.2).
fn crc(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = (value >> 1) ^ ((value & 1) * 0xedb8_8320);
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    bytes.iter().fold(0, |crc, byte| {
        crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)]
    })
}

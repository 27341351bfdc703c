//! Detects whether a picture is complete, or contains an image at all, by the structure of its format: PNG, GIF, JPEG
//! and RIFF (WebP).
//!
//! A server can close the connection without having announced the length of the content (RFC 9112 §6.3, item 8), so the
//! content may be cut off. A picture that is complete by its structure can be used. A negative result does not prove
//! that the picture is cut off: browsers also display pictures with a damaged structure.
//!
//! Any input is accepted, and the time is linear.

use memchr::memchr;

/// Length of the signature and the screen descriptor of a GIF, in bytes.
const SCREEN: usize = 13;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Number of bytes that [`may_end_itself`] needs to recognise a format.
pub const FIRST_BYTES: usize = 12;

/// Returns whether content with these first bytes is in a format that marks its own end. `first` must have at least
/// [`FIRST_BYTES`] bytes, unless the whole content is shorter.
pub fn may_end_itself(first: &[u8]) -> bool {
    first.starts_with(PNG)
        || first.starts_with(b"GIF87a")
        || first.starts_with(b"GIF89a")
        || first.starts_with(b"\xff\xd8\xff")
        || (first.starts_with(b"RIFF") && first.get(8..12) == Some(b"WEBP"))
}

/// Returns whether the picture is complete. White space after it is ignored, because scripts on servers sometimes print
/// a line ending after a picture.
pub fn ends_itself(octets: &[u8]) -> bool {
    let rest = if let Some(chunks) = octets.strip_prefix(PNG) {
        after_png(chunks)
    } else if octets.starts_with(b"GIF8") {
        after_gif(octets)
    } else if octets.starts_with(b"RIFF") {
        after_riff(octets)
    } else {
        octets.strip_prefix(b"\xff\xd8").and_then(after_jpeg)
    };
    may_end_itself(octets) && rest.is_some_and(|rest| rest.trim_ascii().is_empty())
}

/// Returns whether a picture contains an image, which may be truncated. Other content can begin with the signature of a
/// picture: a script can begin with `GIF89a=1;`. Returns true for formats without a check.
pub fn has_image(octets: &[u8]) -> bool {
    if octets.starts_with(b"GIF8") {
        image_of_gif(octets).is_some()
    } else if let Some(segments) = octets.strip_prefix(b"\xff\xd8") {
        frame_of_jpeg(segments).is_some()
    } else if let Some(chunks) = octets.strip_prefix(PNG) {
        has_image_of_png(chunks)
    } else if octets.starts_with(b"RIFF") && octets.get(8..12) == Some(b"WEBP") {
        octets.get(12..).is_some_and(has_image_of_webp)
    } else if is_picture_of_boxes(octets) {
        has_image_of_boxes(octets)
    } else {
        true
    }
}

/// Returns whether the chunks of a PNG contain an IDAT with data.
fn has_image_of_png(mut chunks: &[u8]) -> bool {
    while let Some((length, rest)) = chunks.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        match rest.first_chunk() {
            Some(b"IEND") => return false,
            Some(b"IDAT") if length > 0 => return true,
            _ => {}
        }
        let Some(next) = rest.get(4..).and_then(|data| data.get(length..)?.get(4..)) else {
            return false;
        };
        chunks = next;
    }
    false
}

/// Returns whether a file begins as AVIF, HEIC, JPEG XL or JPEG 2000. Videos in MP4 consist of boxes, too.
fn is_picture_of_boxes(octets: &[u8]) -> bool {
    const BRANDS: [&[u8]; 6] = [b"avif", b"avis", b"heic", b"heix", b"mif1", b"msf1"];
    let brand = octets.get(8..12).unwrap_or_default();
    octets.starts_with(b"\0\0\0\x0c")
        || octets.get(4..8) == Some(b"ftyp") && BRANDS.contains(&brand)
}

/// Returns whether the boxes of an ISO base media file (ISO 14496-12 §4.2) contain an image, in AVIF, HEIC, JPEG XL or JPEG
/// 2000: media data, a codestream, or metadata, which can contain the data of the image.
fn has_image_of_boxes(mut boxes: &[u8]) -> bool {
    while let Some((length, rest)) = boxes.split_first_chunk() {
        let Some(kind) = rest.first_chunk() else {
            return false;
        };
        if matches!(
            kind,
            b"mdat" | b"meta" | b"moov" | b"moof" | b"jxlc" | b"jxlp" | b"jp2c"
        ) {
            return true;
        }
        // A length of 0 means the end of the file, and 1 a length of 64 bits. Such a box contains no header.
        let length = u32::from_be_bytes(*length) as usize;
        let Some(next) = boxes.get(length..).filter(|_| length >= 8) else {
            return length < 8;
        };
        boxes = next;
    }
    false
}

/// Returns whether the chunks of a WebP contain an image. The first one is the image, or the header VP8X of a file with further
/// chunks, such as a colour profile before the image (RFC 9649 §2.7).
fn has_image_of_webp(mut chunks: &[u8]) -> bool {
    let mut is_extended = false;
    while let Some((kind, rest)) = chunks.split_first_chunk() {
        match kind {
            b"VP8 " | b"VP8L" | b"ANMF" => return true,
            b"VP8X" => is_extended = true,
            _ if !is_extended => return false,
            _ => {}
        }
        let next = rest.split_first_chunk().and_then(|(length, data)| {
            let length = u32::from_le_bytes(*length) as usize;
            data.get(length..)?.get(length % 2..)
        });
        let Some(next) = next else {
            return false;
        };
        chunks = next;
    }
    false
}

/// Returns the bytes after the introducer of the first image of a GIF.
fn image_of_gif(octets: &[u8]) -> Option<&[u8]> {
    let mut rest = after_colours(octets.get(SCREEN..)?, *octets.get(10)?)?;
    loop {
        let (&introducer, block) = rest.split_first()?;
        rest = match introducer {
            b',' => return Some(block),
            b'!' => after_sub_blocks(block.get(1..)?)?,
            _ => return None,
        };
    }
}

/// Returns the bytes after the first frame marker of a JPEG (SOF, ITU T.81 §B.1.1.3). Decoders skip wrong bytes before
/// a marker.
fn frame_of_jpeg(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        let marked = rest.get(memchr(0xff, rest)?..)?;
        let fill = marked.iter().position(|byte| *byte != 0xff)?;
        let (&marker, behind) = marked.get(fill..)?.split_first()?;
        rest = match marker {
            0xc4 | 0xc8 | 0xcc => after_segment(behind)?,
            0xc0..=0xcf => return Some(behind),
            // The image ends, or a scan starts, before any frame.
            0xd9 | 0xda => return None,
            0x00 | 0x01 | 0xd0..=0xd8 => behind,
            _ => after_segment(behind)?,
        };
    }
}

fn after_segment(behind: &[u8]) -> Option<&[u8]> {
    let length = behind.first_chunk().copied().map(u16::from_be_bytes)?;
    behind.get(usize::from(length)..).filter(|_| length >= 2)
}

/// Skips the chunks of a PNG to the end of IEND (PNG §5.3). Each has a length, a type, data and a CRC.
fn after_png(mut chunks: &[u8]) -> Option<&[u8]> {
    loop {
        let (length, rest) = chunks.split_first_chunk()?;
        let (kind, rest) = rest.split_at_checked(4)?;
        let length = u32::from_be_bytes(*length) as usize;
        chunks = rest.get(length..)?.get(4..)?;
        if kind == b"IEND" {
            return Some(chunks);
        }
    }
}

/// Skips the screen and the blocks of a GIF to the end of the trailer (GIF89a §17 to §27).
fn after_gif(octets: &[u8]) -> Option<&[u8]> {
    let mut rest = after_colours(octets.get(SCREEN..)?, *octets.get(10)?)?;
    loop {
        let (&introducer, block) = rest.split_first()?;
        rest = match introducer {
            b';' => return Some(block),
            // An extension (`!`) consists of a label and data in sub-blocks, which are skipped.
            b'!' => after_sub_blocks(block.get(1..)?)?,
            // An image (`,`) consists of a position and a size, a local colour table, the minimum code size, and data
            // in sub-blocks. All of them are skipped.
            b',' => after_sub_blocks(after_colours(block.get(9..)?, *block.get(8)?)?.get(1..)?)?,
            _ => return None,
        };
    }
}

fn after_colours(octets: &[u8], flags: u8) -> Option<&[u8]> {
    match flags & 0x80 {
        0 => Some(octets),
        _ => octets.get(3 << ((flags & 7) + 1)..),
    }
}

fn after_sub_blocks(mut octets: &[u8]) -> Option<&[u8]> {
    loop {
        let (&length, rest) = octets.split_first()?;
        octets = rest.get(usize::from(length)..)?;
        if length == 0 {
            return Some(octets);
        }
    }
}

/// Skips the content of a RIFF file. If its length is odd, a byte of padding follows.
fn after_riff(octets: &[u8]) -> Option<&[u8]> {
    let length = u32::from_le_bytes(*octets.get(4..)?.first_chunk()?) as usize;
    octets.get(8..)?.get(length..)?.get(length % 2..)
}

/// Skips the segments and scans of a JPEG to the end of EOI (ITU T.81 §B.1). A segment has a length. In a scan, each
/// byte 0xff of the data is followed by a zero.
fn after_jpeg(mut rest: &[u8]) -> Option<&[u8]> {
    let mut has_scan = false;
    loop {
        // A marker may have several bytes 0xff before it, which are skipped (§B.1.1.2).
        let filled = rest.strip_prefix(b"\xff")?;
        let fill = filled.iter().position(|byte| *byte != 0xff)?;
        let (&marker, behind) = filled.get(fill..)?.split_first()?;
        match marker {
            0xd9 => return has_scan.then_some(behind),
            0x01 | 0xd0..=0xd7 => rest = behind,
            0x00 | 0xd8 => return None,
            _ => {
                let length = behind.first_chunk().copied().map(u16::from_be_bytes)?;
                let (segment, after) = behind.split_at_checked(usize::from(length))?;
                // A Multi-Picture file has further pictures after the first EOI, so its end is unknown.
                if marker == 0xe2 && segment.get(2..6) == Some(b"MPF\0") {
                    return None;
                }
                has_scan |= marker == 0xda;
                rest = match marker {
                    0xda => after_scan(after)?,
                    _ => after,
                };
            }
        }
    }
}

/// Skips the compressed data of a scan, including the restart markers in it. Returns the bytes from the next marker
/// after the data.
fn after_scan(mut rest: &[u8]) -> Option<&[u8]> {
    loop {
        rest = rest.get(memchr(0xff, rest)?..)?;
        match rest.get(1)? {
            0x00 | 0xd0..=0xd7 => rest = rest.get(2..)?,
            0xff => rest = rest.get(1..)?,
            _ => return Some(rest),
        }
    }
}

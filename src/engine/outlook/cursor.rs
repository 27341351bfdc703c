//! Reads little-endian numbers and slices of bytes, from the start of a file to its end.

pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(front)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Reads a length-prefixed byte string and its padding to a multiple of four bytes. Returns the bytes without the
    /// padding, which may be missing at the end of the file.
    pub(super) fn sized(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u32()?).ok()?;
        let value = self.take(length)?;
        self.take((length.wrapping_neg() & 3).min(self.rest.len()))?;
        Some(value)
    }
}

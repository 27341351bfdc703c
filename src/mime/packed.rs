//! Variable-length numbers (LEB128): seven bits per byte, lowest first. The eighth bit is set if more bytes follow.

pub(crate) fn write(to: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        to.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

pub(crate) fn read(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&octet, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(octet & 0x7f) << shift;
        if octet < 0x80 {
            return Some(number);
        }
    }
    None
}

//! Text of a mail that goes into a field.

/// Text that may stand in a field.
pub(super) fn token(text: &[u8], without: &[u8]) -> Option<String> {
    const LONGEST: usize = 900;
    let is_fit = |octet: &u8| octet.is_ascii_graphic() && !without.contains(octet);
    let is_one = !text.is_empty() && text.len() <= LONGEST && text.iter().all(is_fit);
    String::from_utf8(text.to_vec()).ok().filter(|_| is_one)
}

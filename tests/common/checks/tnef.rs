//! Checks that TNEF can be read from any bytes, and that the result has a limited size, is the same each time, and is
//! 7-bit text.

use embody::internals::mime::{ScanLimits, scan};
use embody::internals::outlook::{compose, tnef};

pub fn check(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else {
        return;
    };
    let depth = usize::from(choice & 7);
    // Without the signature, most inputs would fail at the first four bytes.
    let bytes = match choice & 0x80 {
        0 => [tnef::SIGNATURE, bytes].concat(),
        _ => bytes.to_vec(),
    };
    let stream = tnef::read(&bytes, depth);
    // Gives lines that end with LF.
    let newline = scan(b"\n", &ScanLimits::default()).newline;
    let written = || {
        let contents = compose::of(&stream.item);
        assert!(contents.leaves().count() <= bytes.len());
        contents.whole().write(newline, &[])
    };
    let lines = written();
    assert!(
        lines.len() <= 2_000 + bytes.len() * 24 * (depth + 1),
        "{}",
        lines.len()
    );
    assert_eq!(lines, written());
    assert!(lines.is_ascii());
    // A truncated file must be readable too.
    let front = tnef::read(bytes.get(..bytes.len() / 2).unwrap_or_default(), depth);
    let _ = compose::of(&front.item).whole();
}

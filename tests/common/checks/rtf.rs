//! Checks that RTF, compressed or not, can be read from any bytes, and that the result has a limited size.

use embody::internals::outlook::{compressed_rtf, rtf};

pub fn check(data: &[u8]) {
    if let Ok((rtf, damage)) = compressed_rtf::decompress(data) {
        assert!(rtf.len() <= data.len() * 9);
        read(&rtf);
        assert_eq!(compressed_rtf::decompress(data), Ok((rtf, damage)));
    }
    for start in [
        "",
        "{\\rtf1\\ansi\\fromhtml1 ",
        "{\\rtf1\\ansi\\fromtext ",
        "{\\rtf1\\ansi ",
    ] {
        read(&[start.as_bytes(), data].concat());
    }
}

fn read(rtf: &[u8]) {
    if let Some(body) = rtf::read(rtf) {
        assert!(body.text.len() <= rtf.len() * 10);
        assert_eq!(rtf::read(rtf), Some(body));
    }
}

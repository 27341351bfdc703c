//! RFC 1864, Content-MD5: the value in the phantom header must be the digest of the content.

use crate::common::mail::{self, assert_left, expand, with_url};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::Policy;
use md5::{Digest as _, Md5};

fn digest(octets: &[u8]) -> String {
    STANDARD.encode(Md5::digest(octets))
}

fn expanded(url: &str, phantom: &str) -> usize {
    expand(&with_url(url, phantom)).1.expanded()
}

/// RFC 1321 appendix A.5: the digest of an empty input is d41d8cd98f00b204e9800998ecf8427e.
#[test]
fn the_digest_of_nothing_is_known_from_rfc_1321() {
    let phantom = "Content-Type: image/png\nContent-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==\n";
    assert_eq!(expanded("data:image/png,", phantom), 1);
}

#[test]
fn a_digest_over_the_octets_lets_the_content_in() {
    let phantom = format!(
        "Content-Type: image/x\nContent-MD5: {}\n",
        digest(b"a\nb\x00")
    );
    assert_eq!(expanded("data:image/x,a%0Ab%00", &phantom), 1);
}

#[test]
fn text_is_hashed_in_its_crlf_form() {
    let phantom = format!(
        "Content-Type: text/plain\nContent-MD5: {}\n",
        digest(b"a\r\nb\r\n")
    );
    assert_eq!(expanded("data:text/plain,a%0Ab%0A", &phantom), 1);
    assert_eq!(expanded("data:text/plain,a%0D%0Ab%0D%0A", &phantom), 1);
    // Content that is not text has no lines.
    let phantom = phantom.replace("text/plain", "image/x");
    assert_left(
        Policy::default(),
        &with_url("data:image/x,a%0Ab%0A", &phantom),
        "digest-mismatch",
    );
}

#[test]
fn a_folded_field_with_blanks_is_read() {
    let value = digest(b"abc");
    let (one, other) = value.split_at(10);
    let phantom = format!("Content-Type: image/x\nContent-MD5:\n {one}\n\t{other} \n");
    assert_eq!(expanded("data:image/x,abc", &phantom), 1);
}

#[test]
fn content_with_a_wrong_digest_is_not_inserted() {
    for value in [
        digest(b"abd"),
        "?".to_owned(),
        String::new(),
        digest(b"abc").replace('=', ""),
    ] {
        let phantom = format!("Content-Type: image/x\nContent-MD5: {value}\n");
        let mail = with_url("data:image/x,abc", &phantom);
        assert_left(Policy::default(), &mail, "digest-mismatch");
    }
}

#[test]
fn content_md5_field_is_kept_in_the_filled_part() {
    let phantom = format!("Content-Type: image/x\nContent-MD5: {}\n", digest(b"abc"));
    let (output, _) = expand(&with_url("data:image/x,abc", &phantom));
    assert_eq!(
        mail::second_part(&output),
        format!("{phantom}Content-Transfer-Encoding: base64\n\nYWJj")
    );
}

#[test]
fn a_comment_around_the_digest_is_no_part_of_it() {
    for field in ["{} (of the image)", "(a (b)) {}", "(a)\n {}\n\t(b)"] {
        let field = field.replace("{}", &digest(b"abc"));
        let phantom = format!("Content-Type: image/x\nContent-MD5: {field}\n");
        assert_eq!(expanded("data:image/x,abc", &phantom), 1, "{field}");
    }
}

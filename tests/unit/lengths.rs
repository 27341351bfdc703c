//! Content-Length and Lines of messages that change, and the mark, when the header is large: only the front of a large
//! output is put together to read its header.

use super::common::mail::expanding;
use crate::expand::{Expander, Mark};
use crate::fetch::NoFetch;
use crate::policy::Policy;

#[test]
fn lengths_are_true_and_the_mark_is_one_wherever_a_large_header_ends() {
    let expander = Expander::builder(Policy::default())
        .fetch(NoFetch)
        .mark(Mark::Field)
        .build()
        .unwrap();
    for octets in (65_300..65_700).step_by(3) {
        let long = "x".repeat(octets);
        let fields = "Content-Length: 1\nLines: 1\nX-Embody: expanded=9 left=9 links=9\n";
        let mail = [
            format!("X: {long}\n{fields}").as_bytes(),
            expanding().as_slice(),
        ]
        .concat();
        let expansion = expander.expand(&mail, "-").unwrap();
        let output = String::from_utf8(expansion.output().into_bytes().into_owned()).unwrap();
        let (header, body) = output.split_once("\n\n").unwrap();
        let value = |name: &str| {
            let mut fields = header.lines().filter_map(|line| line.strip_prefix(name));
            let value = fields.next().unwrap().to_owned();
            assert_eq!(fields.next(), None, "{octets}: {name} twice");
            value
        };
        assert_eq!(value("X-Embody: "), "expanded=1 left=0 links=0", "{octets}");
        assert_eq!(
            value("Content-Length: "),
            body.len().to_string(),
            "{octets}"
        );
        let lines = body.matches('\n').count().to_string();
        assert_eq!(value("Lines: "), lines, "{octets}");
    }
}

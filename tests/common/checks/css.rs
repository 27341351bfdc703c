//! Checks the links in CSS: for any bytes, their spans are in order; new links are read back as they were written; and
//! the tokens of the crate cssparser contain the same URLs.

use cssparser::{Parser, Token};
use embody::internals::link::css::locate;
use embody::internals::link::value::LinkValue;

/// Checks a style sheet, which can be any bytes.
pub fn check(data: &[u8]) {
    let links = locate(data).to_vec();
    in_order(&links, data);
    read_back(&links, data, |sheet| locate(sheet).to_vec());
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    // cssparser stops at about a hundred nested brackets.
    let brackets = data.iter().filter(|byte| b"([{".contains(byte)).count();
    if brackets > 60 || statements_matter(text) || bad_url_ends_early(data) {
        return;
    }
    let ours: Vec<String> = links
        .iter()
        .map(|link| comparable(&link.decoded(data)))
        .collect();
    let theirs: Vec<String> = oracle(text)
        .iter()
        .map(|url| comparable(url.as_bytes()))
        .collect();
    assert_eq!(ours, theirs, "{text:?}");
}

/// Returns whether cssparser (0.38) would misread a bad URL. After a blank in it, cssparser does not see that `\)` does
/// not end the URL, and that `\\)` does.
pub fn bad_url_ends_early(css: &[u8]) -> bool {
    css.windows(3).any(|there| {
        there[0].is_ascii_whitespace() && there[1] == b'\\' && b"\\)".contains(&there[2])
    })
}

/// Returns whether the style sheet may contain `@import`, `@namespace` or `image-set()`. The comparison below reads
/// tokens and no rules, so it cannot check them.
fn statements_matter(css: &str) -> bool {
    let unescaped = css.contains('@') || css.to_ascii_lowercase().contains("image-set");
    // Each of the names can be written with escapes.
    unescaped || css.contains("\\") && css.contains(['-', '2'])
}

/// Returns every URL in the tokens of cssparser, including those in `url(` functions.
pub fn oracle(css: &str) -> Vec<String> {
    fn walk(parser: &mut Parser<'_>, found: &mut Vec<String>, in_url: bool) {
        let mut first = in_url;
        while let Ok(token) = parser.next().cloned() {
            match &token {
                Token::UnquotedUrl(url) => found.push(url.to_string()),
                Token::QuotedString(url) if first => found.push(url.to_string()),
                _ => {}
            }
            first = false;
            let function = matches!(&token, Token::Function(name) if name.eq_ignore_ascii_case("url")
                || name.eq_ignore_ascii_case("src"));
            if matches!(
                token,
                Token::Function(_)
                    | Token::ParenthesisBlock
                    | Token::CurlyBracketBlock
                    | Token::SquareBracketBlock
            ) {
                let _ = parser.parse_nested_block(|inner| {
                    walk(inner, found, function);
                    Ok::<(), cssparser::ParseError<()>>(())
                });
            }
        }
    }
    let mut found = Vec::new();
    walk(&mut Parser::new(css), &mut found, false);
    found
}

/// Returns a URL with its non-ASCII bytes percent-encoded, so that both results can be compared.
pub fn comparable(url: &[u8]) -> String {
    url.iter()
        .map(|&byte| {
            if byte.is_ascii() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

/// Checks that the spans are sorted, do not overlap, are inside the document, and can be decoded.
pub fn in_order(links: &[LinkValue], document: &[u8]) {
    let mut at = 0;
    for link in links {
        assert!(at <= link.span.start && link.span.start <= link.span.end);
        at = link.span.end;
        let _ = link.decoded(document);
    }
    assert!(at <= document.len());
}

/// Replaces every URL by a new one, and checks that the result contains the same number of links, and only the new URL.
pub fn read_back(links: &[LinkValue], document: &[u8], locate: fn(&[u8]) -> Vec<LinkValue>) {
    const NEW: &[u8] = b"https://x.example/a?b=c&d;e#(f)";
    let mut after = Vec::with_capacity(document.len());
    let mut copied = 0;
    for link in links {
        after.extend_from_slice(&document[copied..link.span.start]);
        after.extend(link.encoded(NEW));
        copied = link.span.end;
    }
    after.extend_from_slice(&document[copied..]);
    let found = locate(&after).to_vec();
    let texts: Vec<String> = found
        .iter()
        .map(|link| link.decoded(&after).escape_ascii().to_string())
        .collect();
    let expected = vec![NEW.escape_ascii().to_string(); links.len()];
    assert_eq!(
        texts,
        expected,
        "\"{}\"\n\"{}\"",
        document.escape_ascii(),
        after.escape_ascii()
    );
}

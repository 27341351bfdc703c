//! Parses BODYSTRUCTURE (RFC 3501 §7.4.2): the MIME parts of a message, without their content.
//!
//! Servers derive this structure from mail of untrusted senders, and each server does this differently. A structure
//! that cannot be parsed counts as unknown. embody then assumes that the message may contain any kind of part.

use super::response::ResponseValue;

/// One MIME part of a message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct BodyPart {
    /// Media type in lower case, such as `image/png` or `multipart/mixed`.
    pub(crate) media_type: String,
    /// Content-Transfer-Encoding in lower case. Empty for a multipart.
    pub(crate) encoding: String,
    /// Encoded size in bytes. 0 for a multipart, because BODYSTRUCTURE does not contain its size.
    pub(crate) size: u64,
    /// Content-Disposition in lower case, such as `attachment`.
    pub(crate) disposition: Option<String>,
    /// File name from Content-Disposition, otherwise from Content-Type, as the server sent it.
    pub(crate) filename: Option<String>,
    /// Parameters of Content-Type, with their names in lower case.
    pub(crate) parameters: Vec<(String, String)>,
    /// Parts of a multipart, or the message in a message/rfc822.
    pub(crate) children: Vec<BodyPart>,
}

impl BodyPart {
    /// Returns the part and all parts inside it.
    pub(crate) fn all(&self) -> Vec<&BodyPart> {
        let mut found = vec![self];
        let mut at = 0;
        while let Some(part) = found.get(at).copied() {
            found.extend(&part.children);
            at += 1;
        }
        found
    }

    /// Parses a structure. The recursion is safe, because the nesting depth of a [`ResponseValue`] is limited.
    pub(crate) fn read(value: &ResponseValue<'_>) -> Option<Self> {
        let values = value.list()?;
        match values.first()? {
            ResponseValue::List(_) => multipart(values),
            ResponseValue::Deep => None,
            _ => single(values),
        }
    }
}

fn multipart(values: &[ResponseValue<'_>]) -> Option<BodyPart> {
    let count = values
        .iter()
        .take_while(|value| matches!(value, ResponseValue::List(_)))
        .count();
    let (parts, rest) = values.split_at(count);
    let children = parts.iter().map(BodyPart::read).collect::<Option<_>>()?;
    let (disposition, filename) = disposition(rest.get(2));
    let parameters = pairs(rest.get(1));
    Some(BodyPart {
        media_type: format!("multipart/{}", lower(rest.first()?)?),
        disposition,
        filename,
        parameters,
        children,
        ..BodyPart::default()
    })
}

fn single(values: &[ResponseValue<'_>]) -> Option<BodyPart> {
    let [
        kind,
        subtype,
        parameters,
        _id,
        _description,
        encoding,
        size,
        rest @ ..,
    ] = values
    else {
        return None;
    };
    // Some servers do not escape quotation marks, so the fields are split at the wrong places. An empty type, or a
    // number in the place of the encoding, shows this. Such a structure is not used.
    let is_shifted = [kind, subtype]
        .iter()
        .any(|word| word.octets() == Some(b""))
        || encoding.number().is_some();
    if is_shifted {
        return None;
    }
    let media_type = format!("{}/{}", lower(kind)?, lower(subtype)?);
    // A message/rfc822 part has three more fields: an envelope, the structure of the inner message, and a number of
    // lines. A text part has only the number of lines.
    let (child, rest) = match (media_type.as_str(), rest) {
        (
            "message/rfc822" | "message/global",
            [_envelope, inner @ ResponseValue::List(_), _lines, rest @ ..],
        ) => (Some(BodyPart::read(inner)?), rest),
        // The last case also accepts a message/rfc822 part whose inner structure is missing or NIL. It counts as a part
        // without children.
        (text, [lines, rest @ ..]) if text.starts_with("text/") && lines.number().is_some() => {
            (None, rest)
        }
        (_, rest) => (None, rest),
    };
    let parameters = pairs(Some(parameters));
    let (disposition, filename) = disposition(rest.get(1));
    let name = || {
        let found = parameters.iter().find(|(name, _)| name == "name");
        found.map(|(_, name)| name.clone())
    };
    let filename = filename.or_else(name);
    Some(BodyPart {
        media_type,
        encoding: lower(encoding).unwrap_or_default(),
        size: size.size()?,
        disposition,
        filename,
        parameters,
        children: child.into_iter().collect(),
    })
}

fn lower(value: &ResponseValue<'_>) -> Option<String> {
    Some(value.text()?.to_ascii_lowercase())
}

/// Reads a list of names and values, such as `("charset" "utf-8" "name" "x")`. Returns the names in lower case.
fn pairs(value: Option<&ResponseValue<'_>>) -> Vec<(String, String)> {
    let values = value.and_then(ResponseValue::list).unwrap_or_default();
    let (pairs, _) = values.as_chunks::<2>();
    pairs
        .iter()
        .filter_map(|[name, value]| Some((lower(name)?, value.text()?.into_owned())))
        .collect()
}

/// Reads a disposition, such as `("attachment" ("filename" "x"))`. Returns the word and the file name.
fn disposition(value: Option<&ResponseValue<'_>>) -> (Option<String>, Option<String>) {
    let Some([word, rest @ ..]) = value.and_then(ResponseValue::list) else {
        return (None, None);
    };
    let name = pairs(rest.first())
        .into_iter()
        .find(|(name, _)| name == "filename");
    (lower(word), name.map(|(_, name)| name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imap::response::values;

    fn read(text: &str) -> Option<BodyPart> {
        BodyPart::read(values(text.as_bytes()).unwrap().first()?)
    }

    #[test]
    fn parts_of_parts_are_read_with_their_sizes_and_names() {
        let text = r#"(("TEXT" "PLAIN" ("CHARSET" "utf-8") NIL NIL "7BIT" 12 1 NIL NIL NIL NIL)("IMAGE" "PNG" ("NAME" "a.png") NIL NIL "BASE64" 4000 NIL ("ATTACHMENT" ("FILENAME" "b.png")) NIL NIL)("MESSAGE" "RFC822" NIL NIL NIL "7BIT" 900 (NIL NIL NIL NIL NIL NIL NIL NIL NIL NIL) ("APPLICATION" "PDF" ("NAME" "c.pdf") NIL NIL "BASE64" 800) 20 NIL NIL) "MIXED" ("BOUNDARY" "x") NIL NIL)"#;
        let whole = read(text).unwrap();
        let all: Vec<_> = whole
            .all()
            .iter()
            .map(|part| (part.media_type.clone(), part.size, part.filename.clone()))
            .collect();
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(
            all,
            [
                ("multipart/mixed".to_owned(), 0, None),
                ("text/plain".to_owned(), 12, None),
                ("image/png".to_owned(), 4000, named("b.png")),
                ("message/rfc822".to_owned(), 900, None),
                ("application/pdf".to_owned(), 800, named("c.pdf")),
            ]
        );
        assert_eq!(whole.children[1].disposition.as_deref(), Some("attachment"));
        assert_eq!(whole.parameters, [("boundary".to_owned(), "x".to_owned())]);
    }

    #[test]
    fn malformed_bodystructure_is_rejected() {
        for text in [
            "NIL",
            "()",
            "(())",
            r#"("TEXT" "PLAIN")"#,
            r#"("TEXT" """" NIL "7BIT" 3 1)"#,
            r#"("" "PLAIN" NIL NIL NIL "7BIT" 3 1)"#,
            r#"("TEXT" "PLAIN" NIL NIL NIL "7BIT" NIL 1)"#,
            r#"(("TEXT" "PLAIN" NIL NIL NIL "7BIT" 1 1) NIL)"#,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let deep = format!("{}{}", "(".repeat(500), ")".repeat(500));
        assert_eq!(read(&deep), None);
        // Some incomplete structures are accepted: a text part without a number of lines, and a message/rfc822 part
        // without an inner structure (NIL).
        assert!(read(r#"("TEXT" "PLAIN" NIL NIL NIL "7BIT" 3)"#).is_some());
        assert!(read(r#"("MESSAGE" "RFC822" NIL NIL NIL "7BIT" 3 NIL NIL NIL)"#).is_some());
    }
}

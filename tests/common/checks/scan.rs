//! Checks the scanner with any bytes and limits: its spans cover all bytes without overlapping, and their content can
//! be read.

use embody::Span;
use embody::internals::external_body::{Follow, Followed, ReferenceParse, read};
use embody::internals::mime::{self, MediaType, MessageTree, PartKind, ScanLimits};

/// Checks a message. The first byte chooses the limits, and the rest is the message.
pub fn check(data: &[u8]) {
    let Some((&choice, message)) = data.split_first() else {
        return;
    };
    let limits = if choice < 0x80 {
        ScanLimits::default()
    } else {
        ScanLimits {
            depth: usize::from(choice & 3),
            parts: usize::from(choice >> 2 & 7),
            header: usize::from(choice >> 5 & 3) * 60,
        }
    };
    let tree = mime::scan(message, &limits);
    tiles(&tree, message);
    let mut parts = 0;
    for id in tree.ids() {
        parts += 1;
        let part = tree.part(id);
        assert!(part.span.contains(part.header) && part.span.contains(part.body));
        assert!(part.depth <= limits.depth + 1);
        assert_eq!(part.essence, part.essence.to_ascii_lowercase());
        for above in tree.ancestors(id) {
            assert!(tree.part(above).span.contains(part.span));
        }
        for field in tree.fields(id).iter(message) {
            assert!(part.header.contains(field.whole));
            assert!(field.whole.contains(field.name) && field.whole.contains(field.value));
            assert!(!field.name.of(message).contains(&b':'));
            let read = MediaType::parse(field.value.of(message));
            for (_, parameter) in read.parameters() {
                let _ = parameter.unquoted();
            }
        }
        if part.content == PartKind::Leaf {
            let _ = part.encoding.decode(part.body.of(message));
        }
        let _ = (tree.number(id), tree.boundaries_around(id));
        let reading = ReferenceParse {
            header_limit: limits.header,
            most_notes: 100,
            forms: Followed::all(),
            beside: Some(Follow::Apple),
        };
        let _ = read(&tree, id, &reading);
    }
    assert!(parts <= limits.parts.max(1), "{parts} parts");
}

/// Returns the spans of a tree in order, without the empty ones.
pub fn spans(tree: &MessageTree<'_>) -> Vec<Span> {
    let mut spans = Vec::new();
    for id in tree.ids() {
        let part = tree.part(id);
        spans.extend([part.envelope, part.separator]);
        let fields: Vec<Span> = tree.fields(id).wholes().collect();
        // A malformed line belongs to the field before it, except at the start and at the end of the header.
        let first = fields.first().map_or(part.header.end, |first| first.start);
        let last = fields.last().map_or(part.header.end, |last| last.end);
        let strays = [
            Span::new(part.envelope.end, first),
            Span::new(last, part.header.end),
        ];
        assert!(part.has_stray_lines() || strays.iter().all(|span| span.is_empty()));
        spans.extend(strays);
        spans.extend(fields);
        match &part.content {
            PartKind::Leaf | PartKind::Opaque(_) => spans.push(part.body),
            PartKind::Message => {}
            PartKind::Multipart(multipart) => {
                spans.extend([multipart.preamble, multipart.epilogue]);
                spans.extend(multipart.delimiters.iter().chain(&multipart.close));
            }
        }
    }
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable();
    spans
}

/// Checks that exactly one span contains each byte.
pub fn tiles(tree: &MessageTree<'_>, message: &[u8]) {
    let mut at = 0;
    for tile in spans(tree) {
        assert_eq!(tile.start, at);
        assert!(!tile.is_empty());
        at = tile.end;
    }
    assert_eq!(at, message.len());
}

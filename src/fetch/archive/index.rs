//! Parses the response of a capture index: CDX lines, CDXJ lines, JSON Lines, or the JSON array of the Wayback Machine.

use serde_json::Value;

use super::time;

/// Maximum size of an index in bytes. A larger one is not parsed.
pub(super) const LONGEST: usize = 1 << 20;

/// Returns the captures with status 200 or 203: times in seconds since 1970, and media types.
pub(super) fn captures(index: &[u8]) -> Vec<(i64, Option<String>)> {
    if index.trim_ascii_start().starts_with(b"[") {
        return of_array(index);
    }
    index
        .split(|octet| *octet == b'\n')
        .filter_map(|line| of_line(std::str::from_utf8(line).ok()?.trim()))
        .collect()
}

fn capture(stamp: &str, status: &str, media_type: &str) -> Option<(i64, Option<String>)> {
    let at = time::of_stamp(stamp).filter(|_| matches!(status, "200" | "203"))?;
    let media_type = media_type.contains('/').then(|| media_type.to_owned());
    Some((at, media_type))
}

fn of_line(line: &str) -> Option<(i64, Option<String>)> {
    if line.starts_with('{') {
        let object = serde_json::from_str(line).ok()?;
        return of_object(&object, text(&object, "timestamp"));
    }
    let mut words = line.splitn(3, ' ');
    let (_, stamp, rest) = (words.next()?, words.next()?, words.next()?);
    if rest.starts_with('{') {
        return of_object(&serde_json::from_str(rest).ok()?, Some(stamp));
    }
    // Fields of a CDX line: urlkey timestamp original mimetype statuscode digest ...
    let mut words = rest.split(' ');
    let (_, media_type, status) = (words.next()?, words.next()?, words.next()?);
    capture(stamp, status, media_type)
}

fn of_object(object: &Value, stamp: Option<&str>) -> Option<(i64, Option<String>)> {
    let media_type = text(object, "mime").or_else(|| text(object, "mimetype"));
    let status = text(object, "status").or_else(|| text(object, "statuscode"));
    capture(stamp?, status?, media_type.unwrap_or_default())
}

fn text<'v>(object: &'v Value, name: &str) -> Option<&'v str> {
    object.get(name)?.as_str()
}

fn of_array(index: &[u8]) -> Vec<(i64, Option<String>)> {
    let rows: Vec<Vec<String>> = serde_json::from_slice(index).unwrap_or_default();
    let Some((names, rows)) = rows.split_first() else {
        return Vec::new();
    };
    let column = |name: &str| names.iter().position(|it| it == name);
    let (Some(stamp), Some(status)) = (column("timestamp"), column("statuscode")) else {
        return Vec::new();
    };
    let media_type = column("mimetype");
    let of_row = |row: &Vec<String>| {
        let media_type = media_type
            .and_then(|at| row.get(at))
            .map_or("", String::as_str);
        capture(row.get(stamp)?, row.get(status)?, media_type)
    };
    rows.iter().filter_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let forms = [
            "org,example)/z 20030502100000 http://example.org/z text/html 404 ABC 326\norg,example)/z 20030602100000 http://example.org/z image/gif 200 ABC 326\n",
            "org,example)/z 20030502100000 {\"mime\": \"text/html\", \"status\": \"404\"}\r\norg,example)/z 20030602100000 {\"mime\": \"image/gif\", \"status\": \"200\"}\r\n",
            "{\"timestamp\": \"20030502100000\", \"mime\": \"text/html\", \"status\": \"404\"}\n{\"timestamp\": \"20030602100000\", \"mime\": \"image/gif\", \"status\": \"200\"}\n",
            "[[\"urlkey\",\"timestamp\",\"original\",\"mimetype\",\"statuscode\"],\n[\"k\",\"20030502100000\",\"u\",\"text/html\",\"404\"],\n[\"k\",\"20030602100000\",\"u\",\"image/gif\",\"200\"]]",
        ];
        for form in forms {
            let at = time::of_stamp("20030602100000").unwrap();
            let expected = (at, Some("image/gif".to_owned()));
            assert_eq!(captures(form.as_bytes()), [expected], "{form}");
        }
        for nothing in [
            "",
            "[]",
            "[",
            "<html>",
            "a b",
            "{}",
            "[[\"a\"],[\"b\"]]",
            "a 2003 {",
        ] {
            assert_eq!(captures(nothing.as_bytes()), [], "{nothing}");
        }
    }
}

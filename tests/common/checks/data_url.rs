//! Checks `data:` URLs: their sizes are exact, folding does not change them, and the crate `data-url` reads the same
//! content.

use embody::internals::link::data::{DataUrl, DataUrlError, MediaTypeText};

/// The media type and the content of a URL.
pub type Read = (String, Vec<u8>);

/// Reads a URL with embody.
pub fn read(url: &[u8]) -> Result<Read, DataUrlError> {
    let url = DataUrl::parse(url)?;
    Ok((written(&url.media_type()), url.decode(u64::MAX)?))
}

/// Writes a media type as in MIME Sniffing §4.5: values that are not tokens are quoted.
pub fn written(media_type: &MediaTypeText) -> String {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let mut text = media_type.essence.clone();
    for (name, value) in &media_type.parameters {
        text += &if !value.is_empty() && value.bytes().all(is_of_token) {
            format!(";{name}={value}")
        } else {
            let value = value.replace('\\', r"\\").replace('"', r#"\""#);
            format!(";{name}=\"{value}\"")
        };
    }
    text
}

/// Reads a URL with the crate `data-url`.
pub fn peer(url: &str) -> Option<Read> {
    let url = data_url::DataUrl::process(url).ok()?;
    let (content, _fragment) = url.decode_to_vec().ok()?;
    Some((url.mime_type().to_string(), content))
}

/// Checks a URL, which can be any bytes.
pub fn check(data: &[u8]) {
    let ours = read(data);
    sizes(data);
    let unfolded: Vec<u8> = data
        .iter()
        .copied()
        .filter(|byte| !b" \t\r\n".contains(byte))
        .collect();
    assert_eq!(read(&unfolded), ours, "folding is no part of the URL");
    // The crate (0.3.2) keeps spaces, and misreads line endings inside an escape, so it gets a URL without them.
    let Ok(text) = std::str::from_utf8(&unfolded) else {
        return;
    };
    let theirs = peer(text);
    let ours = ours.ok();
    assert_eq!(
        ours.as_ref().map(|(_, content)| content),
        theirs.as_ref().map(|(_, content)| content),
        "{text:?}"
    );
    let header = text.split(',').next().unwrap_or_default();
    if comparable(header) {
        assert_eq!(
            ours.map(|(media_type, _)| media_type),
            theirs.map(|(media_type, _)| media_type),
            "{text:?}"
        );
    }
}

/// Returns whether the crate must read the same media type as embody. There are four differences. embody decodes
/// escapes (RFC 2397 §3), and the Fetch standard does not. embody drops parameters above its limit. If two names differ
/// only in case, the crate (0.3.2) keeps both, although the standard converts names to lower case first. After a `?`,
/// the crate escapes like a URL parser.
fn comparable(header: &str) -> bool {
    let mut names: Vec<String> = header
        .split(';')
        .skip(1)
        .map(|parameter| parameter.split('=').next().unwrap_or_default())
        .map(str::to_ascii_lowercase)
        .collect();
    let count = names.len();
    names.sort();
    names.dedup();
    header
        .bytes()
        .all(|byte| byte.is_ascii() && !b"%?".contains(&byte))
        && names.len() == count
        && count < embody::internals::link::data::MAX_PARAMETERS
}

/// Checks that the three sizes agree, and that a limit applies to the exact byte.
fn sizes(data: &[u8]) {
    let Ok(url) = DataUrl::parse(data) else {
        return;
    };
    let size = url.decoded_len();
    assert!(size <= url.decoded_len_estimate());
    if let Ok(content) = url.decode(u64::MAX) {
        assert_eq!(content.len() as u64, size);
        assert_eq!(url.decode(size), Ok(content));
    }
    if let Some(limit) = size.checked_sub(1) {
        assert_eq!(
            url.decode(limit),
            Err(DataUrlError::TooLarge { size, limit })
        );
    }
}

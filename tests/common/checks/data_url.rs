//! `data:` URLs: sizes are exact, folding changes nothing, and the `data-url` crate reads the same.

use embody::internals::link::data::{DataUrl, DataUrlError, MediaTypeText};

/// What a URL reads as: its media type and its content.
pub type Read = (String, Vec<u8>);

/// As we read it.
pub fn read(url: &[u8]) -> Result<Read, DataUrlError> {
    let url = DataUrl::parse(url)?;
    Ok((written(&url.media_type()), url.decode(u64::MAX)?))
}

/// A media type as MIME Sniffing §4.5 serializes it: values are quoted where they are no token.
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

/// As the `data-url` crate reads it.
pub fn peer(url: &str) -> Option<Read> {
    let url = data_url::DataUrl::process(url).ok()?;
    let (content, _fragment) = url.decode_to_vec().ok()?;
    Some((url.mime_type().to_string(), content))
}

/// The bytes are the URL.
pub fn check(data: &[u8]) {
    let ours = read(data);
    sizes(data);
    let unfolded: Vec<u8> = data
        .iter()
        .copied()
        .filter(|byte| !b" \t\r\n".contains(byte))
        .collect();
    assert_eq!(read(&unfolded), ours, "folding is no part of the URL");
    // The crate keeps spaces and misreads line ends within an escape (0.3.2): it gets neither.
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

/// Whether the crate's media type must be ours. Escapes are decoded (RFC 2397 §3), by Fetch they are
/// not; more parameters than our limit are dropped; of two names that differ in case only, the
/// crate (0.3.2) keeps both, where the standard lower-cases them first; behind a `?` it escapes as the
/// URL parser does, which we do not run.
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

/// The three sizes agree, and a limit is kept to the octet.
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

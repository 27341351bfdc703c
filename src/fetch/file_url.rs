//! The `file:` URLs of paths, as the crate `url` writes them.

use std::path::{Component, Path, Prefix};

use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use crate::link::server_url::Host;
use crate::platform::OsStrExt as _;

/// Characters that are escaped in a segment of a path (the path percent-encode set of WHATWG URL, and three separators).
const SEGMENT: AsciiSet = CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// Returns the URL of a file. Returns `None` if the path is not absolute, or if it has no URL (some paths of Windows).
pub(crate) fn of_file(path: &Path) -> Option<String> {
    if !path.is_absolute() {
        return None;
    }
    let mut url = "file://".to_owned();
    let empty = url.len();
    for component in path.components() {
        match component {
            Component::Prefix(prefix) => match prefix.kind() {
                Prefix::Disk(letter) | Prefix::VerbatimDisk(letter) => {
                    url.push('/');
                    url.push(letter.into());
                    url.push(':');
                }
                Prefix::UNC(server, share) | Prefix::VerbatimUNC(server, share) => {
                    match Host::parse(server.to_str()?)? {
                        Host::Name(name) => url.push_str(&name),
                        Host::Address(address) if address.is_ipv4() => {
                            url.push_str(&address.to_string())
                        }
                        Host::Address(address) => url.push_str(&format!("[{address}]")),
                    }
                    url.push('/');
                    url.extend(percent_encode(share.to_str()?.as_bytes(), &SEGMENT));
                }
                _ => return None,
            },
            Component::RootDir => {}
            component => {
                let name = component.as_os_str();
                if cfg!(windows) && name.to_str().is_none() {
                    return None;
                }
                url.push('/');
                url.extend(percent_encode(name.as_bytes(), &SEGMENT));
            }
        }
    }
    // If the path is a root directory, the loop above added no slash after the host or after the drive: the URL is
    // `file://`, or `file://` and the three characters `/C:`. The path of a URL is never empty, so the slash is added.
    if url.len() == empty || (url.len() == empty + 3 && url.ends_with(':')) {
        url.push('/');
    }
    Some(url)
}

/// Returns the URL of a directory, which ends with a slash.
pub(crate) fn of_directory(path: &Path) -> Option<String> {
    let mut url = of_file(path)?;
    if !url.ends_with('/') {
        url.push('/');
    }
    Some(url)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    use std::path::PathBuf;

    use proptest::prelude::*;
    use url::Url;

    use super::*;

    proptest! {
        #[test]
        fn path_has_the_url_that_the_url_crate_writes(path in proptest::collection::vec(any::<u8>(), 0..24), is_absolute: bool) {
            let mut octets = if is_absolute { b"/".to_vec() } else { Vec::new() };
            octets.extend(path);
            let path = PathBuf::from(OsString::from_vec(octets));
            prop_assert_eq!(of_file(&path), Url::from_file_path(&path).ok().map(String::from));
            prop_assert_eq!(of_directory(&path), Url::from_directory_path(&path).ok().map(String::from));
        }
    }
}

//! From a relative reference to an absolute one, by the book: RFC 3986 §5.2.

use super::split::Reference;

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unresolvable {
    #[error("the base is not an absolute URL")]
    BaseNotAbsolute,
    #[error("the base has no host")]
    BaseWithoutHost,
    #[error("the base has no hierarchy that a reference could be relative to")]
    OpaqueBase,
    #[error("browsers disagree on what this file: path with a drive letter means")]
    UncertainDrive,
}

/// The absolute form of `reference` under `base`: RFC 3986 §5.2.2, strict.
///
/// Deviations:
/// * the base's path is looked at as it is; one with dot segments in it should not be a base;
/// * a result without authority whose path begins with `//`: see [`Reference::recompose`].
///
/// # Errors
/// [`Unresolvable::BaseNotAbsolute`] for a relative reference under a base without scheme.
pub fn resolve(base: &str, reference: &str) -> Result<String, Unresolvable> {
    let base = Reference::split(base);
    let reference = Reference::split(reference);
    if reference.scheme.or(base.scheme).is_none() {
        return Err(Unresolvable::BaseNotAbsolute);
    }
    if reference.scheme.is_some() || reference.authority.is_some() {
        let path = remove_dot_segments(reference.path, 0, dots);
        let target = Reference {
            scheme: reference.scheme.or(base.scheme),
            path: &path,
            ..reference
        };
        return Ok(target.recompose());
    }
    let folder = match base.path {
        "" if base.authority.is_some() => "/",
        path => up_to_last_slash(path),
    };
    let (path, query) = match reference.path {
        "" => (base.path.to_owned(), reference.query.or(base.query)),
        path => {
            let folder = if path.starts_with('/') { "" } else { folder };
            let path = remove_dot_segments(&[folder, path].concat(), 0, dots);
            (path, reference.query)
        }
    };
    let target = Reference {
        path: &path,
        query,
        fragment: reference.fragment,
        ..base
    };
    Ok(target.recompose())
}

/// RFC 3986 §5.2.4. `dots` says how many dots a dot segment has, 0 for others; the first `floor` bytes stay.
pub(super) fn remove_dot_segments(path: &str, floor: usize, dots: fn(&str) -> usize) -> String {
    let mut output = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(behind) = rest.strip_prefix("../").or(rest.strip_prefix("./")) {
        rest = behind;
    }
    if !rest.starts_with('/') {
        let (first, behind) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if dots(first) == 0 {
            output.push_str(first);
        }
        rest = behind;
    }
    let mut segments = rest.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let dots = dots(segment);
        if dots == 2 && output.len() > floor {
            output.truncate(output.rfind('/').unwrap_or(0));
        }
        if dots == 0 || segments.peek().is_none() {
            output.push('/');
        }
        if dots == 0 {
            output.push_str(segment);
        }
    }
    output
}

fn dots(segment: &str) -> usize {
    match segment {
        "." => 1,
        ".." => 2,
        _ => 0,
    }
}

pub(super) fn up_to_last_slash(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_segments_go_as_in_the_two_examples_of_section_5_2_4() {
        for (path, expected) in [
            ("/a/b/c/./../../g", "/a/g"),
            ("mid/content=5/../6", "mid/6"),
            // Of the same rules: what has no slash in front, and what ends in dots.
            ("../.././a", "a"),
            (".//../a/..", "/"),
            ("a/../b", "/b"),
            ("a/..", "/"),
            ("a/.", "a/"),
            ("..", ""),
            (".", ""),
            ("", ""),
            ("/..", "/"),
            ("/a//../b/./", "/a/b/"),
        ] {
            assert_eq!(remove_dot_segments(path, 0, dots), expected, "{path}");
        }
    }

    #[test]
    fn a_relative_base_resolves_nothing_relative() {
        assert_eq!(resolve("/a/", "g"), Err(Unresolvable::BaseNotAbsolute));
        assert_eq!(resolve("/a/", "x:g").unwrap(), "x:g");
    }

    #[test]
    fn untouched_text_keeps_its_bytes() {
        assert_eq!(
            resolve("HTTP://Ex.ORG:80/%7E a/é/x", "../Ü%zz?\"<>").unwrap(),
            "HTTP://Ex.ORG:80/%7E a/Ü%zz?\"<>"
        );
    }

    #[test]
    fn a_path_never_turns_into_a_host() {
        assert_eq!(resolve("x:/a", "/.//b").unwrap(), "x:/.//b");
    }

    #[test]
    fn a_megabyte_of_dots_is_no_trouble() {
        let deep = "a/".repeat(200_000) + &"../".repeat(200_000);
        assert_eq!(resolve("http://h/", &deep).unwrap(), "http://h/");
    }
}

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
    if reference.scheme.is_some() {
        let path = remove_dot_segments(reference.path);
        return Ok(Reference {
            path: &path,
            ..reference
        }
        .recompose());
    }
    if base.scheme.is_none() {
        return Err(Unresolvable::BaseNotAbsolute);
    }
    let path;
    let target = if reference.authority.is_some() {
        path = remove_dot_segments(reference.path);
        Reference {
            scheme: base.scheme,
            path: &path,
            ..reference
        }
    } else if reference.path.is_empty() {
        Reference {
            query: reference.query.or(base.query),
            fragment: reference.fragment,
            ..base
        }
    } else {
        path = if reference.path.starts_with('/') {
            remove_dot_segments(reference.path)
        } else if base.authority.is_some() && base.path.is_empty() {
            remove_dot_segments(&format!("/{}", reference.path))
        } else {
            let folder = up_to_last_slash(base.path);
            remove_dot_segments(&format!("{folder}{}", reference.path))
        };
        Reference {
            path: &path,
            query: reference.query,
            fragment: reference.fragment,
            ..base
        }
    };
    Ok(target.recompose())
}

/// RFC 3986 §5.2.4, step by step. Linear: every byte is put out once and taken back at most once.
fn remove_dot_segments(path: &str) -> String {
    let mut input = path;
    let mut output = String::with_capacity(path.len());
    while !input.is_empty() {
        if let Some(rest) = input
            .strip_prefix("../")
            .or_else(|| input.strip_prefix("./"))
        {
            input = rest;
        } else if input.starts_with("/./") {
            input = &input[2..];
        } else if input == "/." {
            input = "/";
        } else if input.starts_with("/../") || input == "/.." {
            output.truncate(output.rfind('/').unwrap_or(0));
            input = if input.len() > 3 { &input[3..] } else { "/" };
        } else if input == "." || input == ".." {
            input = "";
        } else {
            let from = usize::from(input.starts_with('/'));
            let end = input[from..].find('/').map_or(input.len(), |at| from + at);
            output.push_str(&input[..end]);
            input = &input[end..];
        }
    }
    output
}

pub(super) fn up_to_last_slash(path: &str) -> &str {
    path.rfind('/').map_or("", |at| &path[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_segments_go_as_in_the_two_examples_of_section_5_2_4() {
        assert_eq!(remove_dot_segments("/a/b/c/./../../g"), "/a/g");
        assert_eq!(remove_dot_segments("mid/content=5/../6"), "mid/6");
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

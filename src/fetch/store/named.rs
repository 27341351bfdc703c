//! Opens the store that `--store` names: a directory, `s3://bucket/prefix`, or the URL of a directory that accepts PUT.

use std::path::Path;
use std::sync::Arc;

#[cfg(unix)]
use super::Folder;
#[cfg(feature = "http")]
use super::web::{Dav, Web};
use super::{Store, StoreError};
use crate::engine::policy::Policy;
use crate::error::Error;
use crate::fetch::file_url;
use crate::link::url::{masked, scheme_and_rest};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StorePurpose {
    Put,
    Read,
}

/// Opens a store. Only the proxy, the certificates, the time limit and the number of connections are taken from the policy. The
/// user has chosen the server, so its address is not checked.
pub(crate) fn open(
    name: &str,
    purpose: StorePurpose,
    policy: &Policy,
) -> Result<Result<Arc<dyn Store>, StoreError>, Error> {
    if let Some((scheme, _)) = name.split_once("://") {
        return on_server(scheme, name, &variable, policy).map(Ok);
    }
    Ok(open_folder(folder_of(name)?, purpose))
}

#[cfg(unix)]
fn open_folder(path: &Path, purpose: StorePurpose) -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(match purpose {
        StorePurpose::Put => Folder::open(path)?,
        StorePurpose::Read => Folder::open_to_read(path)?,
    }))
}

/// Returns an error, because a store in a directory relies on file descriptors, modes and locks of Unix. Stores on servers work
/// on every system.
#[cfg(not(unix))]
pub(crate) fn open_folder(path: &Path, _: StorePurpose) -> Result<Arc<dyn Store>, StoreError> {
    Err(StoreError::lasting(format!(
        "{}: a store in a directory works only on Linux, macOS and other Unix systems; name a store on a server",
        path.display()
    )))
}

pub(crate) fn unopened_base_url(name: &str, policy: &Policy) -> Result<String, Error> {
    if let Some((scheme, _)) = name.split_once("://") {
        return Ok(on_server(scheme, name, &variable, policy)?.base_url());
    }
    let absolute = std::path::absolute(folder_of(name)?).map_err(|_| not_a_store(name))?;
    // Symbolic links are resolved, because opening a store resolves them, too. Otherwise one store would have two URLs.
    let path = absolute.canonicalize().unwrap_or(absolute);
    file_url::of_directory(&path).ok_or_else(|| not_a_store(name))
}

/// Returns the path of a store in a directory. A name that may be a misspelt URL is refused: otherwise a directory with this
/// name would be created, and mail would refer to it.
fn folder_of(name: &str) -> Result<&Path, Error> {
    const KNOWN: [&str; 6] = ["http", "https", "s3", "ftp", "file", "dav"];
    let Some((scheme, behind)) = name.split_once(':') else {
        return Ok(Path::new(name));
    };
    let is_known = KNOWN.iter().any(|it| scheme.eq_ignore_ascii_case(it));
    let is_scheme = scheme_and_rest(name).is_some() && behind.starts_with('/');
    if !is_known && !is_scheme {
        return Ok(Path::new(name));
    }
    let name = masked(name);
    let why = format!(
        "'{name}' looks like a URL but has no ://; if it is a directory, write ./{scheme}:..."
    );
    Err(Error::Usage(why.into()))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg_attr(not(feature = "http"), allow(unused))]
pub(crate) fn on_server(
    scheme: &str,
    name: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    policy: &Policy,
) -> Result<Arc<dyn Store>, Error> {
    #[cfg(feature = "http")]
    let server: Box<dyn super::web::WebServer> = match scheme.to_ascii_lowercase().as_str() {
        "https" | "http" => {
            let password = variable("EMBODY_STORE_PASSWORD").unwrap_or_default();
            let user = variable("EMBODY_STORE_USER").map(|user| (user, password));
            Box::new(Dav::new(name, user)?)
        }
        #[cfg(feature = "s3")]
        "s3" => Box::new(super::s3::S3::new(name, variable)?),
        _ => return Err(not_a_store(name)),
    };
    #[cfg(feature = "http")]
    return Ok(Arc::new(Web::new(policy, server)?));
    #[cfg(not(feature = "http"))]
    Err(not_a_store(name))
}

fn not_a_store(name: &str) -> Error {
    let s3 = if cfg!(feature = "s3") {
        "s3://bucket/prefix, "
    } else {
        "(this program was built without the feature s3) "
    };
    let name = masked(name);
    let why = format!(
        "'{name}' is not a store; name a directory, {s3}or an https URL of a server that accepts PUT"
    );
    Error::Usage(why.into())
}

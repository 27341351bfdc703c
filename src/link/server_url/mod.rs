//! The parser of URLs that name a server: the crate `url`, which parses as browsers do (WHATWG URL). The policy judges the
//! parsed URL, and the request is made with the same parsed URL, so the server that was judged is the server that receives the
//! request.

mod host;

use url::Url;

pub(crate) use self::host::Host;

impl Host {
    /// Parses a name or an IP address, as it is written in a URL.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        url::Host::parse(text).ok().map(Self::from)
    }
}

impl<S: AsRef<str>> From<url::Host<S>> for Host {
    fn from(host: url::Host<S>) -> Self {
        match host {
            url::Host::Domain(name) => Self::Name(name.as_ref().to_ascii_lowercase()),
            url::Host::Ipv4(address) => Self::Address(address.into()),
            url::Host::Ipv6(address) => Self::Address(address.into()),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ServerUrl(Url);

impl ServerUrl {
    /// Parses an absolute URL of any scheme.
    ///
    /// # Errors
    /// Returns the reason why the text is not a URL.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parsed = Url::parse(text).map_err(|why| why.to_string())?;
        Ok(Self(parsed))
    }

    /// Resolves a reference against this URL.
    pub(crate) fn join(&self, reference: &str) -> Option<String> {
        Some(self.0.join(reference).ok()?.into())
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    pub(crate) fn scheme(&self) -> &str {
        self.0.scheme()
    }

    pub(crate) fn host(&self) -> Option<Host> {
        self.0.host().map(Host::from)
    }

    /// Returns the host as it is written in the URL. The text is empty if the URL has no host.
    pub(crate) fn host_str(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// Returns the port, or `None` if it is the default port of the scheme.
    pub(crate) fn port(&self) -> Option<u16> {
        self.0.port()
    }

    pub(crate) fn path(&self) -> &str {
        self.0.path()
    }

    pub(crate) fn query(&self) -> Option<&str> {
        self.0.query()
    }

    pub(crate) fn username(&self) -> &str {
        self.0.username()
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.0.password()
    }

    pub(crate) fn without_fragment(mut self) -> Self {
        self.0.set_fragment(None);
        self
    }

    pub(crate) fn without_password(mut self) -> Self {
        // The setter fails only for URLs without a host, which have no password.
        let _ = self.0.set_password(None);
        self
    }

    pub(crate) fn without_userinfo(self) -> Self {
        let mut it = self.without_password();
        // The setter fails only for URLs without a host, which have no user name.
        let _ = it.0.set_username("");
        it
    }

    /// Replaces the path by one that consists of segments of a parsed URL.
    pub(crate) fn with_path(mut self, path: &str) -> Self {
        self.0.set_path(path);
        self
    }

    /// Replaces the query by one that consists of parameters of a parsed URL.
    pub(crate) fn with_query(mut self, query: &str) -> Self {
        self.0.set_query(Some(query));
        self
    }
}

impl From<ServerUrl> for String {
    fn from(url: ServerUrl) -> Self {
        url.0.into()
    }
}

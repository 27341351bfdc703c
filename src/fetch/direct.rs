//! Requests to a server that the user named, and no mail: no address is judged, no redirect followed.

use std::time::Duration;

use ureq::http::Request;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, AsSendBody};

use super::agent::{agent, broke, certificates, system_roots};
use crate::error::Error;
use crate::policy::Policy;

#[derive(Debug)]
pub(crate) struct Direct {
    agent: Agent,
    patience: Duration,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) enum NoReply {
    TooLarge,
    Failed(String, bool),
}

impl Direct {
    /// The policy's time-out bounds each silence of the server.
    pub(crate) fn new(policy: &Policy) -> Result<Self, Error> {
        let roots = system_roots(&certificates(policy)?);
        let (resolver, connector) = (DefaultResolver::default(), DefaultConnector::new());
        Ok(Self {
            agent: agent(policy, &roots, resolver, connector),
            patience: policy.limits.timeout,
        })
    }

    pub(crate) fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
        at_most: u64,
    ) -> Result<Reply, NoReply> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut request = Request::builder().method(method).uri(url);
            for &(name, value) in headers {
                request = request.header(name, value);
            }
            let answer = match body {
                Some(body) => self.run(request.body(body)),
                None => self.run(request.body(())),
            };
            match answer {
                Ok(answer) => return whole(answer, at_most),
                // The server closed a kept connection. To ask for the same twice does no harm here.
                Err(ureq::Error::Io(why)) if tries == 1 && broke(&why) => {}
                Err(why) => return Err(failed(&why)),
            }
        }
    }

    fn run(
        &self,
        request: Result<Request<impl AsSendBody>, ureq::http::Error>,
    ) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let patience = Some(self.patience);
        let request = self
            .agent
            .configure_request(request.map_err(ureq::Error::Http)?)
            .allow_non_standard_methods(true)
            .timeout_resolve(patience)
            .timeout_connect(patience)
            .timeout_recv_response(patience)
            .timeout_per_read(patience)
            .timeout_per_write(patience)
            .build();
        self.agent.run(request)
    }
}

fn whole(answer: ureq::http::Response<ureq::Body>, at_most: u64) -> Result<Reply, NoReply> {
    let status = answer.status().as_u16();
    let reader = answer.into_body().into_with_config();
    match reader.limit(at_most.saturating_add(1)).read_to_vec() {
        Ok(body) if body.len() as u64 > at_most => Err(NoReply::TooLarge),
        Ok(body) => Ok(Reply { status, body }),
        Err(ureq::Error::BodyExceedsLimit(_)) => Err(NoReply::TooLarge),
        Err(why) => Err(failed(&why)),
    }
}

fn failed(why: &ureq::Error) -> NoReply {
    use ureq::Error as Trouble;
    let is_temporary = match why {
        Trouble::Io(why) => !why
            .get_ref()
            .is_some_and(|inner| inner.is::<rustls::Error>()),
        Trouble::Timeout(_)
        | Trouble::HostNotFound
        | Trouble::ConnectionFailed
        | Trouble::ConnectProxyFailed(_)
        | Trouble::Protocol(_) => true,
        _ => false,
    };
    // The error may quote a signed URL.
    let what = match why {
        Trouble::BadUri(_) | Trouble::Http(_) => "the URL cannot be used".to_owned(),
        why => why.to_string(),
    };
    NoReply::Failed(what, is_temporary)
}

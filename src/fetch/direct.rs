//! Requests to a server that the user named, and no mail: no address is judged, no redirect followed.

use ureq::Agent;
use ureq::http::Request;
use ureq::unversioned::resolver::DefaultResolver;

use super::agent::{agent, broke, certificates, is_of_tls, system_roots};
use super::connection::NoConnection;
use crate::error::Error;
use crate::policy::Policy;
use crate::report::{Reason, Refusal};

#[derive(Debug)]
pub(crate) struct Direct(Agent);

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Direct {
    /// The policy's time-out bounds each silence of the server.
    pub(crate) fn new(policy: &Policy) -> Result<Self, Error> {
        let roots = system_roots(&certificates(policy)?);
        let (silence, resolver) = (policy.limits.timeout, DefaultResolver::default());
        Ok(Self(agent(policy, &roots, Some(silence), resolver)))
    }

    pub(crate) fn send(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, String)],
        body: Option<&[u8]>,
        at_most: u64,
    ) -> Result<Reply, Refusal> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut request = Request::builder().method(method).uri(url);
            for (name, value) in headers {
                request = request.header(*name, value);
            }
            let answer = match body {
                Some(body) => request
                    .body(body)
                    .map_err(Into::into)
                    .and_then(|request| self.0.run(request)),
                None => request
                    .body(())
                    .map_err(Into::into)
                    .and_then(|request| self.0.run(request)),
            };
            match answer {
                Ok(answer) => return whole(answer, at_most),
                // The server closed a kept connection. To ask for the same twice does no harm here.
                Err(ureq::Error::Io(why)) if tries == 1 && broke(&why) => {}
                Err(why) => return Err(failed(&why)),
            }
        }
    }
}

fn whole(answer: ureq::http::Response<ureq::Body>, at_most: u64) -> Result<Reply, Refusal> {
    let status = answer.status().as_u16();
    let reader = answer.into_body().into_with_config();
    match reader.limit(at_most.saturating_add(1)).read_to_vec() {
        Ok(body) if body.len() as u64 <= at_most => Ok(Reply { status, body }),
        Ok(_) | Err(ureq::Error::BodyExceedsLimit(_)) => {
            let detail = format!("more than the {at_most} bytes that are allowed");
            Err(Refusal::lasting(Reason::TooLarge, detail))
        }
        Err(why) => Err(failed(&why)),
    }
}

fn failed(why: &ureq::Error) -> Refusal {
    use ureq::Error as Trouble;
    let why = match why {
        Trouble::Other(inner) => inner
            .downcast_ref()
            .map_or(why, |never: &NoConnection| &never.why),
        why => why,
    };
    let is_temporary = match why {
        Trouble::Io(why) => !is_of_tls(why),
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
    match is_temporary {
        true => Refusal::temporary(Reason::ConnectionFailed, what),
        false => Refusal::lasting(Reason::ConnectionFailed, what),
    }
}

//! The preview of `--embed`: the number of pictures, and the expected time and growth.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use super::report_file::ReportFields;
use super::say::{duration, harmless};
use super::tally::{CountedRow, NAMES, RowTally, TallyNames};
use super::wording::counted;
use crate::engine::policy::{Limits, Policy};
use crate::engine::report::{Kind, Outcome, Reason, Report};
use crate::fetch::TIMEOUTS;

const HOSTS: usize = 40;

/// Estimated overhead of one embedded picture in a mail, in bytes: header fields, boundary lines, and a share of the
/// new part around the HTML. The base64 and the Content-Location are counted separately.
const AROUND: u64 = 800;
const LOCATION: u64 = 4;

/// Maximum number of distinct URLs that are counted. Their hashes take 2.4 MB.
const URLS: usize = 200_000;

/// Estimated time for one picture, in seconds: a connection, its TLS handshake and a response.
const TYPICAL: f64 = 0.3;

/// The classes of pictures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum PictureClass {
    /// A picture that would be retrieved.
    Remote,
    Tracker,
    /// A picture in a data: URL.
    Data,
}

impl PictureClass {
    fn of(counted: &CountedRow<'_>) -> Option<Self> {
        let row = counted.row;
        match (row.outcome, row.reason) {
            _ if row.kind != Kind::Embed => None,
            (Outcome::WouldFetch, _) => Some(Self::Remote),
            (Outcome::Left, Some(Reason::Tracker)) | (Outcome::WouldBlank, _) => {
                Some(Self::Tracker)
            }
            (Outcome::WouldExpand, _) if counted.reference.has_scheme("data") => Some(Self::Data),
            _ => None,
        }
    }
}

#[derive(Default, Debug)]
pub(super) struct Forecast {
    pictures: RowTally<PictureClass>,
    hosts: TallyNames<u64>,
    urls: HashSet<u64>,
    growth: u64,
    /// Number of messages that would also get content other than pictures. The size of this content is unknown, so each
    /// of these messages may grow up to `--max-growth`.
    open: u64,
}

impl Forecast {
    /// Counts a row. Returns true if the row would retrieve content other than a picture.
    pub(super) fn count(&mut self, counted: &CountedRow<'_>) -> bool {
        let row = counted.row;
        let is_picture = row.kind == Kind::Embed && row.media_type.is_none();
        let is_open = row.outcome == Outcome::WouldFetch && !is_picture;
        let Some(class) = PictureClass::of(counted) else {
            return is_open;
        };
        self.pictures.count(class, counted.octets());
        if class == PictureClass::Remote {
            let url = row.url.as_deref().unwrap_or_default();
            let hashing = BuildHasherDefault::<DefaultHasher>::default();
            self.remember(hashing.hash_one(url.split('#').next()));
            self.growth += AROUND + LOCATION * url.len() as u64;
            if let Some(host) = &counted.host {
                *self.hosts.of(host) += 1;
            }
        }
        is_open
    }

    /// Counts a message. `is_open` is true if the message would also get content other than pictures.
    pub(super) fn count_message(&mut self, report: &Report, is_open: bool) {
        self.growth += u64::try_from(report.gained).unwrap_or_default();
        self.open += u64::from(is_open);
    }

    fn remote(&self) -> u64 {
        self.pictures.of(&PictureClass::Remote)
    }

    fn remember(&mut self, url: u64) {
        if self.urls.len() < URLS {
            self.urls.insert(url);
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        other.urls.into_iter().for_each(|url| self.remember(url));
        self.pictures.add(other.pictures);
        self.hosts.add(other.hosts);
        self.growth += other.growth;
        self.open += other.open;
    }

    /// Returns the fields about pictures in the last line of `inspect --json`, summed over all sources. `growth` counts
    /// only pictures whose size is known, because they are in the messages. `growth_at_most` assumes that each other
    /// picture is as large as `--max-body` allows, and that other content reaches `--max-growth`.
    pub(super) fn embed(&self, policy: &Policy) -> ReportFields {
        let pictures = self.remote().saturating_mul(in_base64(policy.limits.body));
        let others = self.open.saturating_mul(policy.limits.growth);
        let most = self.growth.saturating_add(pictures).saturating_add(others);
        let data = self.pictures.amount(&PictureClass::Data);
        ReportFields::default()
            .with("remote", &self.remote())
            .with("distinct", &self.urls.len())
            .with("hosts", &self.hosts)
            .with_some("other_hosts", self.hosts.others())
            .with("trackers", &self.pictures.of(&PictureClass::Tracker))
            .with("data", &data.count)
            .with("data_octets", &data.octets)
            .with("growth", &self.growth)
            .with("growth_at_most", &most)
            .with("max_growth", &policy.limits.growth)
    }

    pub(super) fn lines(&self, policy: &Policy, is_mailbox: bool) -> String {
        let mut text = String::new();
        if self.pictures.is_empty() {
            return text;
        }
        let (remote, data) = (self.remote(), self.pictures.amount(&PictureClass::Data));
        text += &format!(
            "{} would be retrieved; trackers: {}; pictures in data: URLs: {} with {}\n",
            counted(remote, "picture"),
            self.pictures.of(&PictureClass::Tracker),
            data.count,
            counted(data.octets, "byte")
        );
        let hosts = self.hosts.heaviest(|count| *count);
        for (host, count) in hosts.iter().take(HOSTS) {
            text += &format!("  {count} from {}\n", harmless(host));
        }
        if hosts.len() > HOSTS {
            let others = (hosts.len() - HOSTS) as u64;
            text += &format!("  and {}\n", counted(others, "more host"));
        }
        if let Some(count) = self.hosts.others() {
            text += &format!(
                "  {count} from further hosts (only {NAMES} hosts are counted separately)\n"
            );
        }
        let limits = &policy.limits;
        if remote > 0 {
            text.push_str(&self.time(limits));
        }
        let (whose, per) = if is_mailbox {
            ("the messages", ", for each message")
        } else {
            ("the message", "")
        };
        let (growth, most, each) = (self.growth, limits.growth, in_base64(limits.body));
        let retrieved = match remote {
            0 if self.open == 0 => String::new(),
            0 => format!(
                " and the size of the retrieved content, which is not known, but is at most {most} bytes (--max-growth){per}"
            ),
            _ => format!(
                " and the size of the retrieved pictures: at most {each} bytes for each picture (--max-body) and {most} bytes for all (--max-growth){per}"
            ),
        };
        text + &format!("{whose} would grow by at most {growth} bytes{retrieved}\n")
    }

    /// Returns how many timeouts a run waits for in sequence if no host responds. A host gets no further requests after
    /// [`TIMEOUTS`] consecutive timeouts, but the requests that are already running by then may all go to the same
    /// host.
    fn rounds_without_responses(&self, limits: &Limits) -> f64 {
        let in_flight = limits.in_flight.max(1) as u64;
        let most = in_flight.max(u64::from(TIMEOUTS));
        let hosts = self.hosts.names().map(|(_, count)| (*count).min(most));
        // Hosts above the limit are counted together. In the worst case, each of their URLs is on a different host.
        let sent = hosts.sum::<u64>() + self.hosts.others().copied().unwrap_or(0);
        sent.div_ceil(in_flight) as f64
    }

    fn time(&self, limits: &Limits) -> String {
        let distinct = self.urls.len();
        let more = if distinct < URLS { "" } else { " or more" };
        let hosts = counted(self.hosts.names().count() as u64, "host");
        let rounds = distinct.div_ceil(limits.in_flight.max(1)) as f64;
        let timeout = limits.timeout.as_secs_f64();
        let mut longest = String::new();
        if timeout < 3_600.0 {
            let silent = self.rounds_without_responses(limits);
            if silent < rounds {
                let time = duration(silent * timeout);
                longest = format!(
                    ", at most {time} if no host responds (a host is skipped after {TIMEOUTS} time-outs in a row)"
                );
            }
            let time = duration(rounds * timeout);
            longest +=
                &format!(", or at most {time} if each request takes {timeout} s (--timeout)");
        }
        format!(
            "{distinct}{more} different URLs on {hosts} would be requested, each once; this takes {} if one request takes {TYPICAL} s and {} run at \
             the same time (--max-in-flight){longest}\n",
            duration(rounds * TYPICAL),
            limits.in_flight,
        )
    }
}

fn in_base64(octets: u64) -> u64 {
    let symbols = octets.div_ceil(3).saturating_mul(4);
    symbols.saturating_add(symbols.div_ceil(76) * 2)
}

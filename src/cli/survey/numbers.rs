//! Numbers that several outputs of a survey share: companies with trackers, years, and hosts of pictures.

use std::collections::BTreeMap;

use super::sum::Survey;
use super::tally::{Host, Year};

/// Returns the number of hosts with pictures. It can be too low, because all hosts above the limit on names are counted
/// as one.
pub(super) fn pictured_hosts(survey: &Survey) -> u64 {
    let hosts = survey.hosts.names();
    hosts.filter(|(_, it)| it.pictures > 0).count() as u64
}

/// Counts trackers by the registrable domain of their host, which usually identifies a company.
pub(super) fn companies(survey: &Survey) -> Vec<(String, u64)> {
    let mut companies: BTreeMap<String, u64> = BTreeMap::new();
    for (host, counts) in survey.hosts.names() {
        if counts.trackers > 0 {
            *companies.entry(registered(host)).or_default() += counts.trackers;
        }
    }
    let mut companies: Vec<(String, u64)> = companies.into_iter().collect();
    companies.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), name.clone()));
    companies
}

/// Returns the registrable domain of a host (by the Public Suffix List), or the host itself if it has none.
fn registered(host: &str) -> String {
    let is_address = host.contains(':') || host.parse::<std::net::Ipv4Addr>().is_ok();
    let domain = psl::domain_str(host).filter(|_| !is_address);
    domain.unwrap_or(host).to_owned()
}

/// Returns the counts of all years from the first to the last, including years without mail.
pub(super) fn years(survey: &Survey) -> Vec<(i64, Year)> {
    let years: BTreeMap<i64, Year> = survey
        .years
        .names()
        .filter_map(|(name, year)| Some((name.parse::<i64>().ok()?, *year)))
        .collect();
    let ends = years.keys().next().zip(years.keys().next_back());
    let Some((&first, &last)) = ends else {
        return Vec::new();
    };
    let year = |name| (name, years.get(&name).copied().unwrap_or_default());
    (first..=last).map(year).collect()
}

pub(super) fn heaviest_hosts(survey: &Survey) -> Vec<(&str, &Host)> {
    survey.hosts.heaviest(|it| it.pictures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registrable_domain_is_the_company() {
        for (host, company) in [
            ("click.mail.news.example.co.uk", "example.co.uk"),
            ("e.example.com", "example.com"),
            ("example.com", "example.com"),
            ("127.0.0.1", "127.0.0.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("localhost", "localhost"),
            ("com", "com"),
        ] {
            assert_eq!(registered(host), company);
        }
    }
}

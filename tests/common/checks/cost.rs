//! Cost is bounded: the octets that were looked at stay within what `--max-work` allows for the mail, what
//! was retrieved for it and what came out.
//!
//! The count is ours; the fuzz target holds it against the allocations that were made meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use embody::engine::Content;
use embody::fetch::{Fetch, Request};
use embody::policy::{Followed, Links, Policy, Protected, Scheme, Trackers};
use embody::report::Refusal;
use embody::{Expander, Mark};

use super::filter::Echo;

/// What one mail cost.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cost {
    /// Octets of the mail.
    pub input: u64,
    /// Octets of all answers.
    pub retrieved: u64,
    /// Octets of the result, and of the URLs in its report.
    pub output: u64,
    /// Octets that the mail was allowed to gain.
    pub growth: u64,
    /// Octets that were looked at, as they were counted.
    pub work: u64,
}

/// What is counted before any octet of the mail.
const SLACK: u64 = 1 << 10;

/// The first byte chooses the policy, the rest is the message.
pub fn check(data: &[u8]) -> Cost {
    let Some((&choice, message)) = data.split_first() else {
        return Cost::default();
    };
    let policy = policy(choice);
    let limits = policy.limits.clone();
    let mark = if choice & 4 == 0 {
        Mark::Off
    } else {
        Mark::Field
    };
    let world = Arc::new(Counting::default());
    let builder = Expander::builder(policy)
        .fetch(Arc::clone(&world))
        .mark(mark);
    let expander = builder.build().expect("nothing of the system is used");
    let expansion = expander
        .expand(message, "fuzz")
        .expect("the policy defers nothing");
    let urls = expansion.report.rows.iter();
    let urls = urls.map(|row| row.url.as_ref().map_or(0, String::len) as u64);
    let cost = Cost {
        input: message.len() as u64,
        retrieved: world.retrieved.load(Ordering::Relaxed),
        output: expansion.output().len() as u64 + urls.sum::<u64>(),
        growth: limits.growth,
        work: expansion.work,
    };
    let most = limits.work * (cost.input + cost.output + cost.retrieved) + limits.growth + SLACK;
    assert!(cost.work <= most, "{cost:?} is above {most}");
    cost
}

fn policy(choice: u8) -> Policy {
    let mut policy = Policy::default();
    // Small enough that the mail is what counts.
    policy.limits.growth = if choice & 1 == 0 { 4 << 10 } else { 1 << 20 };
    policy.limits.work = if choice & 2 == 0 { 32 } else { 4 };
    if choice & 8 != 0 {
        policy.limits.depth = 8;
    }
    if choice & 16 != 0 {
        policy.protected = Protected::Rewrite;
    }
    if choice & 32 != 0 {
        policy.links = Links::Keep;
    }
    if choice & 64 != 0 {
        policy.fetch.insert(Scheme::Https);
        policy.fetch.insert(Scheme::Ftp);
        policy.embed.data = true;
        policy.embed.remote = true;
        policy.embed.pictures = true;
        policy.embed.styles = true;
        policy.embed.trackers = match choice & 1 {
            0 => Trackers::Leave,
            _ => Trackers::Blank,
        };
    }
    if choice & 128 != 0 {
        policy.accept_mismatch = true;
        policy.follow = Followed::all();
    }
    policy
}

/// The other checks' answers, counted.
#[derive(Default)]
struct Counting {
    retrieved: AtomicU64,
}

impl Fetch for Counting {
    fn fetch(&self, request: &Request) -> Result<Content, Refusal> {
        let answer = Echo.fetch(request)?;
        self.retrieved
            .fetch_add(answer.bytes().len() as u64, Ordering::Relaxed);
        Ok(answer)
    }
}

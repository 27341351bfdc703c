//! Checks that the cost is limited: the number of bytes that were read stays within the limit of `--max-work` for the
//! mail, the retrieved content and the output.
//!
//! embody itself counts these bytes. The fuzz target also compares the count with the memory that was allocated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use embody::engine::Content;
use embody::fetch::{Fetch, Request};
use embody::policy::{Embed, Followed, Links, Policy, Protected, Scheme, Trackers};
use embody::report::Refusal;
use embody::{Expander, Mark};

use super::filter::Echo;

/// The cost of one mail.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cost {
    /// Bytes of the mail.
    pub input: u64,
    /// Bytes of all responses.
    pub retrieved: u64,
    /// Bytes of the output, and of the URLs in its report.
    pub output: u64,
    /// Number of bytes by which the mail was allowed to grow.
    pub growth: u64,
    /// Number of bytes that were read, as embody counts them.
    pub work: u64,
}

/// Number of bytes that are counted even for an empty mail.
const SLACK: u64 = 1 << 10;

/// Checks a message. The first byte chooses the policy, and the rest is the message.
pub fn check(data: &[u8]) -> Cost {
    let Some((&choice, message)) = data.split_first() else {
        return Cost::default();
    };
    let policy = policy(choice);
    let limits = policy.limits().clone();
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
    let urls = expansion
        .report
        .rows
        .iter()
        .map(|row| row.url.as_ref().map_or(0, String::len) as u64);
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
    // The limits are so small that the cost depends mainly on the size of the mail.
    policy = policy
        .map_limits(|limits| limits.with_growth(if choice & 1 == 0 { 4 << 10 } else { 1 << 20 }));
    policy = policy.map_limits(|limits| limits.with_work(if choice & 2 == 0 { 32 } else { 4 }));
    if choice & 8 != 0 {
        policy = policy.map_limits(|limits| limits.with_depth(8));
    }
    if choice & 16 != 0 {
        policy = policy.with_protected(Protected::Rewrite);
    }
    if choice & 32 != 0 {
        policy = policy.with_links(Links::Keep);
    }
    if choice & 64 != 0 {
        policy = policy.with_fetch([Scheme::Https, Scheme::Ftp]);
        policy = policy.with_embed(Embed {
            data: true,
            remote: true,
            pictures: true,
            styles: true,
            trackers: match choice & 1 {
                0 => Trackers::Leave,
                _ => Trackers::Blank,
            },
            ..Embed::default()
        });
    }
    if choice & 128 != 0 {
        policy = policy.with_accept_mismatch(true);
        policy = policy.with_follow(Followed::all());
    }
    policy
}

/// Gives the same responses as in the other checks, and counts their bytes.
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

//! Fills one mail: `cargo run --example fill < mail.eml > whole.eml`
//!
//! Content may be asked of https servers, and every picture that the mail shows becomes a part of it. What was left, and why,
//! goes to standard error.

use std::io::{Read as _, Write as _};

use embody::policy::{Embed, Scheme};
use embody::report::Outcome;
use embody::{Expander, Policy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut policy = Policy::default().with_fetch([Scheme::Https]);
    policy = policy.with_embed(Embed {
        data: true,
        remote: true,
        ..Embed::default()
    });
    let expander = Expander::new(policy)?;

    let mut mail = Vec::new();
    std::io::stdin().read_to_end(&mut mail)?;
    let expansion = expander.expand(&mail, "standard input")?;
    for row in &expansion.report.rows {
        if row.outcome == Outcome::Left {
            eprintln!("part {} was left: {}", row.part, row.detail);
        }
    }
    // The edits, between the bytes that stay as they are.
    std::io::stdout().write_all(&expansion.output().into_bytes())?;
    Ok(())
}

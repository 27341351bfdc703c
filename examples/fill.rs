//! Fills one mail: `cargo run --example fill < mail.eml > whole.eml`
//!
//! The program may retrieve content from https servers. Pictures that the HTML of the mail shows become parts of the mail,
//! except tracking pictures. For each part that stays unchanged, a line on standard error contains the reason.

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
            eprintln!("part {} was left unchanged: {}", row.part, row.detail);
        }
    }
    std::io::stdout().write_all(&expansion.output().into_bytes())?;
    Ok(())
}

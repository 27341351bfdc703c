//! `--archive` and what goes with it.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::values::duration;
use crate::archive::{
    Archive, IndexTemplate, Order, Pace, Paced, Settings, Sources, Tells, Template, Window,
};
use crate::error::Error;
use crate::fetch::{Exchange, SystemFetcher};
use crate::policy::Policy;

/// A day.
const DAY: u64 = 24 * 60 * 60;

/// What holds without `--archive-window`.
const WINDOW: Window = Window {
    before: Duration::from_secs(90 * DAY),
    after: Duration::from_secs(400 * DAY),
};

// Shared by the commands that put in what mails refer to.
#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "What may be retrieved")]
pub(super) struct ArchiveArgs {
    /// Ask this web archive for what is gone, e.g. https://web.archive.org/web/{date}id_/{url} [default: none]
    #[arg(hide_short_help = true, long, value_name = "URL-TEMPLATE")]
    archive: Option<Template>,
    /// Ask the archive first, and then the source [default: off]
    #[arg(hide_short_help = true, long, requires = "archive")]
    archive_first: bool,
    /// How long before and after the mail's date a capture may be [default: 90d,400d]
    #[arg(hide_short_help = true, long, requires = "archive", value_name = "BEFORE,AFTER", value_parser = window)]
    archive_window: Option<Window>,
    /// Where captures are listed, e.g. https://web.archive.org/cdx/search/cdx?url={url}&closest={date}: asked once where the
    /// nearest is an error [default: none]
    #[arg(
        hide_short_help = true,
        long,
        requires = "archive",
        value_name = "URL-TEMPLATE"
    )]
    archive_cdx: Option<IndexTemplate>,
    /// Tell the archive also URLs that look like secrets, or name no public host [default: off]
    #[arg(hide_short_help = true, long, requires = "archive")]
    archive_any: bool,
}

/// `90d,400d`.
fn window(text: &str) -> Result<Window, String> {
    let wrong = || format!("'{text}' is not two durations such as 90d,400d");
    let (before, after) = text.split_once(',').ok_or_else(wrong)?;
    let has_minutes = |text: &str| text.trim().to_ascii_lowercase().ends_with('m');
    if has_minutes(before) || has_minutes(after) {
        return Err(format!(
            "'{text}' has m, which would be minutes; months are written in days, such as 180d"
        ));
    }
    let side = |text: &str| match text.trim().strip_suffix(['d', 'D']) {
        Some(days) => {
            let days: u64 = days.parse().ok()?;
            days.checked_mul(DAY).map(Duration::from_secs)
        }
        None => duration(text).ok(),
    };
    Ok(Window {
        before: side(before).ok_or_else(wrong)?,
        after: side(after).ok_or_else(wrong)?,
    })
}

impl ArchiveArgs {
    /// Whether there is one, and who is asked first.
    pub(super) fn order(&self) -> Option<Order> {
        self.archive.as_ref().map(|_| match self.archive_first {
            true => Order::ArchiveFirst,
            false => Order::SourceFirst,
        })
    }

    /// What retrieves from sources and from the archive. `wrap` stands between the steps and the servers: a cache.
    ///
    /// # Errors
    /// As [`SystemFetcher::new`].
    pub(super) fn sources(
        &self,
        policy: &Arc<Policy>,
        pace: Pace,
        is_stopped: impl Fn() -> bool + Send + Sync + 'static,
        wrap: impl FnOnce(Arc<dyn Exchange>) -> Arc<dyn Exchange>,
    ) -> Result<Option<Sources>, Error> {
        let Some(template) = &self.archive else {
            return Ok(None);
        };
        let mut shared = None;
        let source = SystemFetcher::through(Arc::clone(policy), |servers| {
            let timeout = policy.limits.timeout;
            let servers = wrap(Arc::new(Paced {
                pace,
                timeout,
                is_stopped: Box::new(is_stopped),
                servers,
            }));
            shared = Some(Arc::clone(&servers));
            servers
        })?;
        Ok(shared.map(|servers| Sources {
            source,
            archive: Archive {
                policy: Arc::clone(policy),
                settings: Settings {
                    template: template.clone(),
                    index: self.archive_cdx.clone(),
                    window: self.archive_window.unwrap_or(WINDOW),
                    tells: match self.archive_any {
                        true => Tells::Any,
                        false => Tells::Public,
                    },
                },
                servers,
            },
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_two_durations() {
        assert_eq!(window("90d,400d"), Ok(WINDOW));
        let narrow = window("0, 1h").unwrap();
        assert_eq!(
            (narrow.before, narrow.after),
            (Duration::ZERO, Duration::from_secs(3600))
        );
        for wrong in [
            "",
            "90d",
            "90d,",
            ",1d",
            "-1d,1d",
            "1d,2d,3d",
            "1.5d,2d",
            "99999999999999999d,1d",
        ] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }
}

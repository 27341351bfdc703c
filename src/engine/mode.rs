/// The mode of a run: whether it writes mail, and whether it sends requests. It does not change during a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Mode {
    /// Content is retrieved, and changed mail is written.
    #[default]
    Run,
    /// Nothing is written. The run checks whether each source has the content, and transfers as few bytes as possible.
    Probe,
    /// Nothing is written. Content of local files is read, but no requests are sent and no program is started.
    DryRun,
}

impl Mode {
    /// Returns true if changed mail is written.
    pub fn writes(self) -> bool {
        self == Self::Run
    }

    /// Returns true if requests are sent to servers.
    pub fn asks_servers(self) -> bool {
        self != Self::DryRun
    }
}

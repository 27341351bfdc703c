/// What a run does besides deciding: whether it changes mail, and whom it asks for content.
///
/// The command line decides this once. Everything below has the same rules in all three modes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Mode {
    /// Content is retrieved, and changed mail is written.
    #[default]
    Run,
    /// Nothing is written. Sources are asked whether they have the content, with as little transferred as possible.
    Probe,
    /// Nothing is written. Content of local files is read, but no server is asked and no program is started.
    DryRun,
}

impl Mode {
    /// Whether changed mail is written.
    pub fn writes(self) -> bool {
        self == Self::Run
    }

    /// Whether servers are asked.
    pub fn asks_servers(self) -> bool {
        self != Self::DryRun
    }
}

//! Standard streams. Another process can have set O_NONBLOCK on the same open file description, for example Node.js on a pipe
//! that both processes use. We could clear the flag, but then that process would block, so reads and writes wait here.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::AsFd as _;

use rustix::event::{PollFd, PollFlags, poll};

/// A file whose reads and writes block even if O_NONBLOCK is set.
#[derive(Debug)]
pub(crate) struct Stream(File);

impl From<File> for Stream {
    fn from(file: File) -> Self {
        Self(file)
    }
}

impl Stream {
    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub(crate) fn into_file(self) -> File {
        self.0
    }

    #[cfg_attr(not(feature = "cli"), allow(dead_code))]
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// Calls `act` again as long as it would block, each time after `events`.
    fn blocking<T>(
        &mut self,
        events: PollFlags,
        mut act: impl FnMut(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match act(&mut self.0) {
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => {
                    match poll(
                        &mut [PollFd::from_borrowed_fd(self.0.as_fd(), events)],
                        None,
                    ) {
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(why) => return Err(why.into()),
                    }
                }
                done => return done,
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.blocking(PollFlags::IN, |file| file.read(buffer))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.blocking(PollFlags::OUT, |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

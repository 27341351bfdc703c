//! Reading: from a source to batches of whole messages, and from these, worked on in order, to a sink.
//!
//! * `file`: a file at places, and how far one was read whose mail is not what lies on the disk;
//! * `source`: a file, or a stream that is read once, compressed or not, and what its start says;
//! * `background`: a stream that a thread of its own reads, so that a stop need not wait for it;
//! * `window`: the walk over a source: batches of whole messages (`Chunk`); a window grows until it holds one;
//! * `cut`: the walk over the messages that begin in a range of a file, and where to cut one;
//! * `pipeline`: batches on their way through the workers, in order;
//! * `messages`, `touch`: the work on one batch: which messages need a look, and what becomes of them;
//! * `sink`: where an mbox goes: a new file, a device, the place of the old one, or nowhere;
//! * `opened`: the driver for open files: standard input and output, what is compressed, archives.

mod background;
pub(super) mod cut;
pub(super) mod file;
pub(super) mod messages;
pub(super) mod opened;
pub(super) mod pipeline;
pub(super) mod sink;
pub(super) mod source;
pub(super) mod touch;
pub(super) mod window;

pub(crate) use background::Background;

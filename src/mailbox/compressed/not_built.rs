//! Replaces the decoders and encoders in a build without the feature `archives`: each use is an error that names the
//! feature.

use std::io::{self, Read, Write};

use super::damage::unsupported;
use super::method::Method;
use super::octets::Member;

pub(super) fn member<R: Read>(method: Method) -> io::Result<Member<R>> {
    match method {
        Method::Utf16(order) => Ok(super::utf16::member(order)),
        method => Err(unsupported(method.name())),
    }
}

/// A writer that writes the bytes unchanged, because this build contains no compression.
pub(crate) struct Encoder<W>(W);

impl<W: Write> Encoder<W> {
    /// Creates a writer for an uncompressed file.
    ///
    /// # Errors
    /// Returns an error that names the feature `archives` if `method` is a compression, because only a build with this
    /// feature can compress.
    pub(crate) fn new(method: Option<Method>, writer: W) -> io::Result<Self> {
        match method {
            None => Ok(Self(writer)),
            Some(method) => Err(unsupported(method.name())),
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    pub(crate) fn finish(self) -> io::Result<W> {
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::edit::Edits;
    use crate::error::Error;
    use crate::mailbox::{Conversion, Message, Messages, ReadOptions, Transform};

    const MBOX: &str = "From a@example.org Sat Jan  3 01:05:34 1996\nSubject: one\n\nhello\n";
    const GZIP: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\0\0\0\0\0\0";

    fn with_source(error: &Error) -> String {
        let source = std::error::Error::source(error);
        format!(
            "{error}: {}",
            source.map(ToString::to_string).unwrap_or_default()
        )
    }

    #[test]
    fn compressed_source_is_an_error_that_names_the_feature() {
        let folder = tempfile::tempdir().unwrap();
        let mut tar = [0; 1024];
        tar[..6].copy_from_slice(b"a.mbox");
        let sum: u32 = tar[..512].iter().map(|&byte| u32::from(byte)).sum();
        let digits = format!("{:06o}\0 ", sum + 8 * 32);
        tar[148..156].copy_from_slice(digits.as_bytes());
        for (name, content) in [
            ("list.mbox.gz", GZIP),
            ("list.mbox.zst", b"\x28\xb5\x2f\xfd\x04\0\0\0\0\0\0\0\0\0\0"),
            ("list.mbox.xz", b"\xfd7zXZ\0\0\0\0\0\0\0\0\0\0"),
            ("list.mbox.bz2", b"BZh91AY&SY\0\0\0\0\0"),
            ("backup.zip", b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0"),
            ("backup.tar", &tar),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            let items: Vec<_> = Messages::new(&path, ReadOptions::default()).collect();
            let [Err(error)] = items.as_slice() else {
                panic!("{name}: {items:?}")
            };
            let why = with_source(error);
            assert!(why.contains("with the feature `archives`"), "{why}");
        }
        // Only the uncompressed mailbox is read. The other six files are compressed or archives and give an error each.
        fs::write(folder.path().join("plain.mbox"), MBOX).unwrap();
        let items: Vec<_> = Messages::new(folder.path(), ReadOptions::default()).collect();
        let errors = items.iter().filter(|item| item.is_err()).count();
        assert_eq!((items.len() - errors, errors), (1, 6));
    }

    struct Unchanged;

    impl Transform for Unchanged {
        fn next_touch(&self, _: &[u8]) -> Option<usize> {
            Some(0)
        }

        fn transform(&self, _: &Message<'_>) -> Result<(Edits, ()), Error> {
            Ok((Edits::new(), ()))
        }
    }

    #[test]
    fn compressed_message_of_a_maildir_is_an_error_and_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cur", "new", "tmp"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let packed = folder.path().join("cur/1:2,S");
        fs::write(&packed, GZIP).unwrap();
        fs::write(folder.path().join("cur/2:2,S"), "Subject: two\n\nhello\n").unwrap();
        let items: Vec<_> = Messages::new(folder.path(), ReadOptions::default()).collect();
        let [Err(error), Ok(message)] = items.as_slice() else {
            panic!("{items:?}")
        };
        let why = with_source(error);
        assert!(why.contains("with the feature `archives`"), "{why}");
        assert_eq!(message.content, b"Subject: two\n\nhello\n");

        let run = Conversion::of(folder.path())
            .in_place()
            .run(&Unchanged, &());
        assert_eq!(run.unwrap().damaged, 1);
        assert_eq!(fs::read(&packed).unwrap(), GZIP);
    }

    #[test]
    fn result_with_the_suffix_of_a_compression_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (source, target) = (
            folder.path().join("a.mbox"),
            folder.path().join("b.mbox.gz"),
        );
        fs::write(&source, MBOX).unwrap();
        let run = Conversion::of(&source).to(&target).run(&Unchanged, &());
        let why = with_source(&run.unwrap_err());
        assert!(why.contains("with the feature `archives`"), "{why}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

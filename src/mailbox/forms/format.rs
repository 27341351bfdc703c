//! The table of the formats of mailboxes: the words of the options, and the properties by which other modules treat a
//! source or a result. `place::delivery::formats` has the writer of each format.

/// The format of a source or of a result, as the user selects it with an option.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Format {
    /// The format of each source is recognised by its content.
    #[default]
    Auto,
    /// mbox files.
    Mbox,
    /// Files with lines of four Control-A characters around messages.
    Mmdf,
    /// Directories with cur and new.
    Maildir,
    /// Directories of messages in numbered files.
    Mh,
    /// Files with one message each.
    Eml,
    /// A tree of mboxes, as Thunderbird stores its folders. It is only an output format: as a source, its files are
    /// ordinary mboxes.
    #[cfg_attr(feature = "cli", value(skip))]
    Thunderbird,
}

/// How a new mbox marks lines that start with `From ` inside of messages, so that they are not read as separators.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MboxVariant {
    /// mboxrd: each such line gets a `>`, and also each line that starts with `>` and `From `. It can be undone.
    #[default]
    Rd,
    /// mboxo: each such line gets a `>`. A reader cannot know whether a sender wrote it.
    O,
    /// mboxcl2: no line is changed. The field Content-Length of each message contains the length of its body.
    Cl2,
}

/// Properties of a format: one row of the table.
pub(crate) struct FormatFacts {
    /// Word of the options.
    pub(crate) word: &'static str,
    /// Sentence about the format in the help of `--output-format`.
    pub(crate) help: &'static str,
    /// Why a directory is not a source of this format.
    pub(crate) nothing_found: &'static str,
    /// Whether the sources of this format are directories, so that no file in them is read as a mailbox of its own.
    pub(crate) selects_directories: bool,
    /// Properties of a result. `None` if embody does not write the format, and for [`Format::Auto`].
    pub(crate) written: Option<WrittenFacts>,
}

/// Properties of a result in a format that embody writes.
pub(crate) struct WrittenFacts {
    pub(crate) shape: ResultShape,
    /// The result in error messages.
    pub(crate) called: &'static str,
    /// Suffix of the files: of mboxes, or of messages whose names do not come from the format.
    pub(crate) suffix: &'static str,
    /// Words of the option that select the format and a variant.
    pub(crate) variants: &'static [(&'static str, MboxVariant)],
    /// Whether the file of a message can have this name, so that no folder next to it may have the name.
    pub(crate) is_name_of_message: fn(&[u8]) -> bool,
}

/// How a result is stored in files and directories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResultShape {
    /// Each mailbox is a file.
    File,
    /// Each message is a file, and a mailbox is the directory of its messages. A single message is a result of its own.
    MessageFiles,
    /// Each mailbox is a directory.
    Directory,
    /// All mailboxes of a result are the folders of one tree.
    Tree,
}

impl Format {
    pub(crate) const ALL: [Self; 7] = [
        Self::Auto,
        Self::Mbox,
        Self::Mmdf,
        Self::Maildir,
        Self::Mh,
        Self::Eml,
        Self::Thunderbird,
    ];

    /// Returns the row of the table.
    pub(crate) fn facts(self) -> &'static FormatFacts {
        match self {
            Self::Auto => &FormatFacts {
                word: "auto",
                help: "auto is the format of the source.",
                nothing_found: NO_MAIL,
                selects_directories: false,
                written: None,
            },
            Self::Mbox => &FormatFacts {
                word: "mbox",
                help: "mbox is mboxrd, and keeps an mbox as it is. mboxrd writes > before lines that begin with From or \
                       >From, mboxo only before lines that begin with From; mboxcl2 changes no line and adds \
                       Content-Length.",
                nothing_found: "the folder contains no mbox file",
                selects_directories: false,
                written: Some(WrittenFacts {
                    shape: ResultShape::File,
                    called: "an mbox",
                    suffix: ".mbox",
                    variants: &[
                        ("mboxrd", MboxVariant::Rd),
                        ("mboxo", MboxVariant::O),
                        ("mboxcl2", MboxVariant::Cl2),
                    ],
                    is_name_of_message: no_name,
                }),
            },
            Self::Mmdf => &FormatFacts {
                word: "mmdf",
                help: "",
                nothing_found: "the folder contains no MMDF mailbox",
                selects_directories: false,
                written: None,
            },
            Self::Maildir => &FormatFacts {
                word: "maildir",
                help: "",
                nothing_found: "the directory is not a Maildir: neither this directory nor a subdirectory contains cur or new",
                selects_directories: true,
                written: Some(WrittenFacts {
                    shape: ResultShape::Directory,
                    called: "a Maildir",
                    suffix: "",
                    variants: &[],
                    is_name_of_message: no_name,
                }),
            },
            Self::Mh => &FormatFacts {
                word: "mh",
                help: "",
                nothing_found: "the directory is not an MH folder: no file name is a number",
                selects_directories: true,
                written: Some(WrittenFacts {
                    shape: ResultShape::Directory,
                    called: "an MH folder",
                    suffix: "",
                    variants: &[],
                    is_name_of_message: |name| name.iter().all(u8::is_ascii_digit),
                }),
            },
            Self::Eml => &FormatFacts {
                word: "eml",
                help: "eml is a directory with one file per message; for a single message it is a file.",
                nothing_found: "the folder contains no message file",
                selects_directories: false,
                written: Some(WrittenFacts {
                    shape: ResultShape::MessageFiles,
                    called: "one message",
                    suffix: ".eml",
                    variants: &[],
                    is_name_of_message: is_number_of_eml,
                }),
            },
            Self::Thunderbird => &FormatFacts {
                word: "thunderbird",
                help: "thunderbird is a directory of folders for Thunderbird (docs/thunderbird.md).",
                nothing_found: NO_MAIL,
                selects_directories: false,
                written: Some(WrittenFacts {
                    shape: ResultShape::Tree,
                    called: "a folder",
                    suffix: "",
                    variants: &[],
                    is_name_of_message: no_name,
                }),
            },
        }
    }

    /// Whether a source that the user calls by this format can be a single message.
    pub(crate) fn may_be_message(self) -> bool {
        matches!(self, Self::Auto | Self::Eml)
    }

    /// Returns the properties of a result, or `None` for [`Format::Auto`] and formats that embody does not write.
    pub(crate) fn written(self) -> Option<&'static WrittenFacts> {
        self.facts().written.as_ref()
    }

    fn shape(self) -> Option<ResultShape> {
        self.written().map(|it| it.shape)
    }

    /// Whether each mailbox of a result is a file.
    pub(crate) fn is_file(self) -> bool {
        self.shape() == Some(ResultShape::File)
    }

    /// Whether each message of a result is a file that is a result of its own.
    pub(crate) fn has_message_files(self) -> bool {
        self.shape() == Some(ResultShape::MessageFiles)
    }

    /// Whether a result is one mailbox if the source is one: a file or a directory.
    pub(crate) fn is_one_mailbox(self) -> bool {
        matches!(
            self.shape(),
            Some(ResultShape::File | ResultShape::Directory)
        )
    }

    /// Whether a result is a directory even if the source is a single message or an mbox.
    pub(crate) fn is_directory(self) -> bool {
        matches!(
            self.shape(),
            Some(ResultShape::Directory | ResultShape::Tree)
        )
    }

    /// Whether all mailboxes of a result are folders of one tree.
    pub(crate) fn is_tree(self) -> bool {
        self.shape() == Some(ResultShape::Tree)
    }
}

const NO_MAIL: &str = "the folder contains no mail: no Maildir, MH folder, mbox file or message";

fn no_name(_: &[u8]) -> bool {
    false
}

/// Returns whether the name is that of a numbered message file.
fn is_number_of_eml(name: &[u8]) -> bool {
    let digits = name.strip_suffix(b".eml");
    digits.is_some_and(|digits| digits.len() >= 8 && digits.iter().all(u8::is_ascii_digit))
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use clap::ValueEnum as _;

    use super::Format;

    #[test]
    fn words_of_the_table_are_those_of_the_option_for_sources() {
        for format in Format::value_variants() {
            let value = format.to_possible_value();
            let word = value.as_ref().map(clap::builder::PossibleValue::get_name);
            assert_eq!(word, Some(format.facts().word));
            assert!(Format::ALL.contains(format));
        }
        // The formats that are not values of the option for sources have words of their own.
        for format in Format::ALL {
            let same = Format::ALL.map(|it| it.facts().word == format.facts().word);
            assert_eq!(same.into_iter().filter(|&it| it).count(), 1, "{format:?}");
        }
    }
}

//! Kinds of references that are followed in addition to `message/external-body`, as selected by `--follow`.

use crate::detail::words;
use crate::error::Error;

words! {
    /// A kind of reference, named after the program that writes it.
    pub enum Follow [18] {
        Thunderbird "thunderbird" "Attachments that Thunderbird detached or uploaded, and the enclosures of its news feeds.";
        Exchange "exchange" "`[InternetShortcut]` files inside a `message/external-body` part, as Exchange writes them.";
        Shortcuts "shortcuts" "Attached `[InternetShortcut]` files, which contain a URL (`application/internet-shortcut`).";
        Apple "apple" "Attachments that Apple Mail stores in separate files; only for messages in its own folders.";
        Eudora "eudora" "Attachments that Eudora stores in separate files; only for messages in its own mailboxes.";
        Mailman "mailman" "Attachments that Mailman removed from a message to a mailing list.";
        MailmanDigests "mailman-digests" "Attachments that Mailman removed from the messages in a digest.";
        Sympa "sympa" "Attachments that the mailing-list manager Sympa stores on its server.";
        YahooGroups "yahoo-groups" "Attachments that an archive of Yahoo Groups contains only as a note.";
        Gmail "gmail" "Files in Google Drive that a mail from Gmail links to instead of attaching them.";
        Outlook "outlook" "Files in OneDrive and SharePoint that a mail from Outlook links to instead of attaching them.";
        MailDrop "mail-drop" "Attachments that Apple Mail uploaded to Mail Drop.";
        FileLink "filelink" "Attachments that Thunderbird FileLink uploaded.";
        Links "links" "Any link in HTML to a file in cloud storage.";
        Winmail "winmail" "Outlook's `winmail.dat` (TNEF): the part becomes the text and attachments that it contains.";
        RtfBody "rtf-body" "RTF that readpst attached in place of HTML or text.";
        Msg "msg" "Attached messages of Outlook (`.msg`): each one becomes an attached mail.";
        Uuencode "uuencode" "uuencoded files in text.";
    }
}

impl Follow {
    /// Kinds of references to files in cloud storage or on the server of a mailing list.
    pub(crate) const HOSTED: [Self; 6] = [
        Self::Sympa,
        Self::Gmail,
        Self::Outlook,
        Self::MailDrop,
        Self::FileLink,
        Self::Links,
    ];

    /// Returns true if programs write references of this kind in place of an attachment, so that following them restores the
    /// attachment.
    pub fn is_attachment(self) -> bool {
        !matches!(
            self,
            Self::Links | Self::Shortcuts | Self::RtfBody | Self::Msg | Self::Uuencode
        )
    }

    /// Returns true if references of this kind can be in the text of any message. An IMAP server cannot select the
    /// messages with such references, so all messages must be downloaded. All other references are in parts of their
    /// own, which the server reports, or in files of a mail program, which are not on a server.
    #[cfg(feature = "cli")]
    pub(crate) fn is_in_any_message(self) -> bool {
        !matches!(
            self,
            Self::Thunderbird | Self::Exchange | Self::Apple | Self::Eudora | Self::Winmail
        )
    }

    fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// The kinds of references that are followed, as a set of bits. `--follow` adds kinds to it and removes kinds from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Followed(u32);

impl Default for Followed {
    fn default() -> Self {
        Self::none()
            .with(Follow::Thunderbird)
            .with(Follow::Exchange)
            .with(Follow::Apple)
            .with(Follow::Eudora)
    }
}

impl Followed {
    /// Returns the empty set.
    pub fn none() -> Self {
        Self(0)
    }

    /// Returns the set of all kinds of references.
    pub fn all() -> Self {
        Follow::ALL.into_iter().fold(Self::none(), Self::with)
    }

    /// Adds all kinds of references that programs write in place of an attachment.
    #[must_use]
    pub fn with_attachments(self) -> Self {
        let forms = Follow::ALL.into_iter().filter(|form| form.is_attachment());
        forms.fold(self, Self::with)
    }

    /// Adds one kind.
    #[must_use]
    pub fn with(self, form: Follow) -> Self {
        Self(self.0 | form.bit())
    }

    /// Removes one kind.
    #[must_use]
    pub fn without(self, form: Follow) -> Self {
        Self(self.0 & !form.bit())
    }

    /// Removes the kinds of references that occur inside texts and documents. In content that was inserted into the
    /// message, only references that are whole parts are followed.
    pub(crate) fn without_notes(self) -> Self {
        let notes = [Follow::Mailman, Follow::MailmanDigests].into_iter();
        let files = Follow::HOSTED
            .into_iter()
            .filter(|&form| form != Follow::Sympa);
        notes.chain(files).fold(self, Self::without)
    }

    /// Returns true if the set contains this kind of reference.
    pub fn contains(self, form: Follow) -> bool {
        self.0 & form.bit() != 0
    }

    /// Returns the set after one word of `--follow`. The word is `all`, `none`, the name of a kind (which is added), or
    /// `-` and a name (which is removed).
    ///
    /// # Errors
    /// [`Error::Usage`] for any other word.
    pub fn told(self, word: &str) -> Result<Self, Error> {
        let of = |name: &str| Follow::ALL.into_iter().find(|form| form.as_str() == name);
        match word.strip_prefix('-') {
            Some(name) => of(name).map(|form| self.without(form)),
            None if word == "all" => Some(Self::all()),
            None if word == "none" => Some(Self::none()),
            None => of(word).map(|form| self.with(form)),
        }
        .ok_or_else(|| {
            let names = Follow::ALL.map(Follow::as_str).join(", ");
            let what = format!("'{word}' is not a kind of reference; use {names}, all or none, or put - before a kind to remove it");
            Error::Usage(what.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_follow_option_are_applied_from_left_to_right() {
        let told = |words: &str| {
            let words = words.split(',').filter(|word| !word.is_empty());
            words.fold(Followed::default(), |forms, word| forms.told(word).unwrap())
        };
        let names = |forms: Followed| {
            let names = Follow::ALL.into_iter().filter(|&form| forms.contains(form));
            names.map(Follow::as_str).collect::<Vec<_>>().join(",")
        };
        for (words, expected) in [
            ("", "thunderbird,exchange,apple,eudora"),
            ("shortcuts", "thunderbird,exchange,shortcuts,apple,eudora"),
            ("-exchange,-apple,-eudora", "thunderbird"),
            ("none,shortcuts", "shortcuts"),
            ("shortcuts,none", ""),
            (
                "all,-thunderbird",
                "exchange,shortcuts,apple,eudora,mailman,mailman-digests,sympa,yahoo-groups,gmail,outlook,mail-drop,filelink,links,winmail,rtf-body,msg,uuencode",
            ),
            ("none,mailman-digests", "mailman-digests"),
        ] {
            assert_eq!(names(told(words)), expected.to_owned(), "{words}");
        }
        assert_eq!(told("all"), Followed::all());
        for word in ["", "-", "--exchange", "-all", "Exchange", "onedrive"] {
            assert!(Followed::none().told(word).is_err(), "{word}");
        }
    }
}

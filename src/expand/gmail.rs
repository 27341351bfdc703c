//! Recognises Gmail's own words among the labels of a Google Takeout (`X-Gmail-Labels`). They name the state of a mail
//! and the standard folders. No I/O.
//!
//! Takeout writes these words in the language of the account, and a label of the user looks the same. A word is
//! therefore recognised only in the language from which a mail has the most words. A word that is not in the table is
//! treated as a label, so its mail goes into a folder with this name, and nothing is lost.
//!
//! Takeout marks only unread mail reliably. Mail has the word `Opened` if it was opened on the web or in Gmail's app,
//! but not if another program marked it as read. Mail without the word for unread is therefore read, if its language is
//! known.

use crate::mailbox::MailState;

/// Meaning of a system label of Gmail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GmailWord {
    Inbox,
    Sent,
    Drafts,
    Trash,
    Spam,
    /// The mail is no longer in the inbox.
    Archived,
    Opened,
    Unread,
    Starred,
    Important,
    /// A state that mailboxes of other programs cannot store.
    Other,
}

/// Names of Gmail's system labels in one language.
struct GmailLanguage {
    words: &'static [(&'static str, GmailWord)],
    /// Prefixes of the labels for Gmail's tabs, such as `Category Social`.
    categories: &'static [&'static str],
    /// Whether the word for unread in this language was found in a real export. Mail without a known word for unread
    /// counts as read only in these languages.
    has_unread: bool,
}

/// The words come from published exports, or from programs that read exports. Languages without such a source are not
/// in the table, so their words are treated as labels of the user.
const LANGUAGES: &[GmailLanguage] = &[
    // English. Sources: google/import-mailbox-to-gmail, eneam/mboxviewer#22, thunderbird/import-export-tools-ng#256;
    // for Muted: GAM-team/got-your-back#300.
    GmailLanguage {
        words: &[
            ("Inbox", GmailWord::Inbox),
            ("Sent", GmailWord::Sent),
            ("Draft", GmailWord::Drafts),
            ("Drafts", GmailWord::Drafts),
            ("Trash", GmailWord::Trash),
            ("Spam", GmailWord::Spam),
            ("Archived", GmailWord::Archived),
            ("Opened", GmailWord::Opened),
            ("Unread", GmailWord::Unread),
            ("Starred", GmailWord::Starred),
            ("Important", GmailWord::Important),
            ("Muted", GmailWord::Other),
            // The English tabs have no colon. A label of the user can start with the same word, so each tab is in the
            // list.
            ("Category Personal", GmailWord::Other),
            ("Category Social", GmailWord::Other),
            ("Category Promotions", GmailWord::Other),
            ("Category promotions", GmailWord::Other),
            ("Category Updates", GmailWord::Other),
            ("Category Forums", GmailWord::Other),
            ("Category Travel", GmailWord::Other),
            ("Category Purchases", GmailWord::Other),
        ],
        categories: &[],
        has_unread: true,
    },
    // French. Sources: suitenumerique/messages#162 and its tests; for Archivés and Envoyé: rustmailer/bichon#358; for
    // Messages envoyés: GAM-team/got-your-back#228.
    GmailLanguage {
        words: &[
            ("Boîte de réception", GmailWord::Inbox),
            ("Messages envoyés", GmailWord::Sent),
            ("Mails envoyés", GmailWord::Sent),
            ("Envoyé", GmailWord::Sent),
            ("Envoyés", GmailWord::Sent),
            ("Brouillons", GmailWord::Drafts),
            ("Corbeille", GmailWord::Trash),
            ("Spam", GmailWord::Spam),
            ("Messages archivés", GmailWord::Archived),
            ("Archivés", GmailWord::Archived),
            ("Ouvert", GmailWord::Opened),
            ("Non lus", GmailWord::Unread),
            ("Favoris", GmailWord::Starred),
            ("Suivis", GmailWord::Starred),
            ("Important", GmailWord::Important),
        ],
        categories: &["Catégorie:", "Catégorie :", "Catégorie\u{a0}:"],
        has_unread: true,
    },
    // German. Sources: hanshuebner/herold (internal/import/gmail), rgladwell/imap-upload#45.
    GmailLanguage {
        words: &[
            ("Posteingang", GmailWord::Inbox),
            ("Gesendet", GmailWord::Sent),
            ("Entwürfe", GmailWord::Drafts),
            ("Papierkorb", GmailWord::Trash),
            ("Spam", GmailWord::Spam),
            ("Archiviert", GmailWord::Archived),
            ("Geöffnet", GmailWord::Opened),
            ("Ungelesen", GmailWord::Unread),
            ("Markiert", GmailWord::Starred),
            ("Wichtig", GmailWord::Important),
        ],
        categories: &["Kategorie:"],
        has_unread: true,
    },
    // Spanish. Sources: rgladwell/imap-upload, whose authors are in Spain; for No leídos: GAM-team/got-your-back#360;
    // for Enviado: #442 there; for Archivados: rustmailer/bichon.
    GmailLanguage {
        words: &[
            ("Recibidos", GmailWord::Inbox),
            ("Enviados", GmailWord::Sent),
            ("Enviado", GmailWord::Sent),
            ("Borradores", GmailWord::Drafts),
            ("Papelera", GmailWord::Trash),
            ("Spam", GmailWord::Spam),
            ("Archivados", GmailWord::Archived),
            ("Abierto", GmailWord::Opened),
            ("No leídos", GmailWord::Unread),
            ("Destacados", GmailWord::Starred),
            ("Importante", GmailWord::Important),
        ],
        categories: &["Categoría:"],
        has_unread: true,
    },
    // Catalan. Source: rgladwell/imap-upload.
    GmailLanguage {
        words: &[
            ("Safata d'entrada", GmailWord::Inbox),
            ("Enviats", GmailWord::Sent),
            ("Esborranys", GmailWord::Drafts),
            ("Paperera", GmailWord::Trash),
            ("Spam", GmailWord::Spam),
            ("Oberts", GmailWord::Opened),
            ("No llegits", GmailWord::Unread),
            ("Importants", GmailWord::Important),
        ],
        categories: &["Categoria:"],
        has_unread: true,
    },
    // Czech. Sources: GAM-team/got-your-back#227, and a header in the tests of Tcllib's mime.
    GmailLanguage {
        words: &[
            ("Doručené", GmailWord::Inbox),
            ("Odesláno", GmailWord::Sent),
            ("Spam", GmailWord::Spam),
            ("Archivováno", GmailWord::Archived),
            ("Nepřečtené", GmailWord::Unread),
            ("Důležité", GmailWord::Important),
        ],
        categories: &["Kategorie:"],
        has_unread: true,
    },
    // Italian. Sources: hanshuebner/herold; for Da leggere: GAM-team/got-your-back#442 and #452.
    GmailLanguage {
        words: &[
            ("Posta in arrivo", GmailWord::Inbox),
            ("Inviata", GmailWord::Sent),
            ("Bozze", GmailWord::Drafts),
            ("Cestino", GmailWord::Trash),
            ("Spam", GmailWord::Spam),
            ("Aperto", GmailWord::Opened),
            ("Da leggere", GmailWord::Unread),
            ("Speciali", GmailWord::Starred),
            ("Importanti", GmailWord::Important),
        ],
        categories: &["Categoria:"],
        has_unread: true,
    },
    // Dutch. Sources: hanshuebner/herold; for Ongelezen: GAM-team/got-your-back#135; for Gearchiveerd: #429 there.
    GmailLanguage {
        words: &[
            ("Postvak IN", GmailWord::Inbox),
            ("Verzonden", GmailWord::Sent),
            ("Concepten", GmailWord::Drafts),
            ("Prullenbak", GmailWord::Trash),
            ("Spam", GmailWord::Spam),
            ("Gearchiveerd", GmailWord::Archived),
            ("Geopend", GmailWord::Opened),
            ("Ongelezen", GmailWord::Unread),
            ("Met ster", GmailWord::Starred),
            ("Belangrijk", GmailWord::Important),
        ],
        categories: &["Categorie:"],
        has_unread: true,
    },
    // Portuguese. Source: hanshuebner/herold. No published export confirms these words.
    GmailLanguage {
        words: &[
            ("Caixa de entrada", GmailWord::Inbox),
            ("Enviados", GmailWord::Sent),
            ("Rascunhos", GmailWord::Drafts),
            ("Lixeira", GmailWord::Trash),
            ("Spam", GmailWord::Spam),
            ("Aberto", GmailWord::Opened),
            ("Não lida", GmailWord::Unread),
            ("Com estrela", GmailWord::Starred),
            ("Importante", GmailWord::Important),
        ],
        categories: &["Categoria:"],
        has_unread: false,
    },
    // Japanese. Sources: hanshuebner/herold, gmailgem/gmail#41. No published export confirms these words.
    GmailLanguage {
        words: &[
            ("受信トレイ", GmailWord::Inbox),
            ("送信済み", GmailWord::Sent),
            ("送信済みメール", GmailWord::Sent),
            ("下書き", GmailWord::Drafts),
            ("ゴミ箱", GmailWord::Trash),
            ("迷惑メール", GmailWord::Spam),
            ("開封済み", GmailWord::Opened),
            ("未読", GmailWord::Unread),
            ("スター付き", GmailWord::Starred),
            ("重要", GmailWord::Important),
        ],
        categories: &["カテゴリ:"],
        has_unread: false,
    },
];

/// Start of a label for a flag that a mail program set over IMAP, in every language: `IMAP_$Forwarded`.
const IMAP: &str = "IMAP_";

impl GmailLanguage {
    fn word(&self, label: &str) -> Option<GmailWord> {
        let is_category = || self.categories.iter().any(|start| label.starts_with(start));
        self.words
            .iter()
            .find(|(word, _)| *word == label)
            .map(|(_, word)| *word)
            .or_else(|| is_category().then_some(GmailWord::Other))
    }
}

/// The folders of a mail, and its states.
#[derive(PartialEq, Eq, Default, Debug)]
pub(super) struct GmailFolders {
    /// Folders of the mail, the most important one first, because a mail is often written to only one folder. Trash,
    /// spam and drafts come first: Gmail shows such mail in no other folder, and users look for drafts among the
    /// drafts. Then come the user's labels, sent mail, the inbox and the archive.
    pub(super) folders: Vec<String>,
    pub(super) states: Vec<MailState>,
}

pub(super) fn sorted(labels: Vec<String>) -> GmailFolders {
    let languages = languages(&labels);
    let word = |label: &str| languages.iter().find_map(|language| language.word(label));
    let mut own = Vec::new();
    let mut words = Vec::new();
    let mut states = Vec::new();
    let has_labels = !labels.is_empty();
    for label in labels {
        if let Some(flag) = label.strip_prefix(IMAP) {
            if flag.trim_start_matches('$') == "Forwarded" {
                states.push(MailState::Forwarded);
            }
        } else if let Some(word) = word(&label) {
            words.push(word);
        } else {
            own.push(label);
        }
    }
    let has = |word| words.contains(&word);
    let is_known = matches!(languages.as_slice(), [language] if language.has_unread);
    let is_read =
        has(GmailWord::Opened) || has(GmailWord::Sent) || has(GmailWord::Drafts) || is_known;
    for (state, applies) in [
        (MailState::Read, is_read && !has(GmailWord::Unread)),
        (MailState::Flagged, has(GmailWord::Starred)),
        (MailState::Draft, has(GmailWord::Drafts)),
        (MailState::Important, has(GmailWord::Important)),
        (MailState::Trashed, has(GmailWord::Trash)),
    ] {
        if applies {
            states.push(state);
        }
    }
    let standard = |names: &[(GmailWord, &str)]| -> Vec<String> {
        let names = names.iter().filter(|(word, _)| has(*word));
        names.map(|(_, name)| (*name).to_owned()).collect()
    };
    let mut folders = standard(&[
        (GmailWord::Trash, "Trash"),
        (GmailWord::Spam, "Junk"),
        (GmailWord::Drafts, "Drafts"),
    ]);
    folders.extend(own);
    folders.extend(standard(&[
        (GmailWord::Sent, "Sent"),
        (GmailWord::Inbox, "INBOX"),
    ]));
    // Gmail archives most mail, including sent mail and mail with a label. The archive is therefore used only for mail
    // without any other folder.
    if folders.is_empty() && has_labels {
        folders.push("Archive".to_owned());
    }
    GmailFolders { folders, states }
}

/// Returns the language with the most words among the labels, or several languages if they are tied.
fn languages(labels: &[String]) -> Vec<&'static GmailLanguage> {
    let counted: Vec<(usize, &GmailLanguage)> = LANGUAGES
        .iter()
        .map(|language| {
            let words = labels.iter().filter_map(|label| language.word(label));
            (words.count(), language)
        })
        .collect();
    let most = counted.iter().map(|(count, _)| *count).max().unwrap_or(0);
    let best = counted
        .into_iter()
        .filter(|(count, _)| *count == most && most > 0);
    best.map(|(_, language)| language).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: &[&str]) -> (String, Vec<MailState>) {
        let sorted = sorted(labels.iter().map(|&label| label.to_owned()).collect());
        (sorted.folders.join("|"), sorted.states)
    }

    #[test]
    fn labels_of_an_export_give_folders_and_states_in_its_language() {
        use MailState::{Draft, Flagged, Forwarded, Important, Read, Trashed};
        for (labels, folders, states) in [
            (&["Inbox", "Opened"][..], "INBOX", &[Read][..]),
            (&["Inbox", "Unread", "Starred"], "INBOX", &[Flagged]),
            // Mail that was opened can be marked as unread again.
            (&["Archived", "Opened", "Unread"], "Archive", &[]),
            // Another program marked the mail as read, so the word for opened is missing.
            (
                &["Archived", "Important", "Category Updates"],
                "Archive",
                &[Read, Important],
            ),
            (&["Archived", "Sent"], "Sent", &[Read]),
            (&["Inbox", "Sent", "Unread"], "Sent|INBOX", &[]),
            (&["Drafts"], "Drafts", &[Read, Draft]),
            (&["Work", "Trash", "Opened"], "Trash|Work", &[Read, Trashed]),
            (&["Spam", "Unread", "Category Promotions"], "Junk", &[]),
            (
                &["Inbox", "Work/2023", "Opened", "Friends"],
                "Work/2023|Friends|INBOX",
                &[Read],
            ),
            (&["Archived", "Work", "Opened"], "Work", &[Read]),
            (&["Work"], "Work", &[]),
            (&["Unread"], "Archive", &[]),
            (
                &["Inbox", "IMAP_$Forwarded", "IMAP_NotJunk", "Opened"],
                "INBOX",
                &[Forwarded, Read],
            ),
            (&[], "", &[]),
            (
                &[
                    "Messages archivés",
                    "Ouvert",
                    "Catégorie\u{a0}: E-mails personnels",
                    "Culture, associations",
                ],
                "Culture, associations",
                &[Read],
            ),
            (
                &[
                    "Forward to jd@live.example",
                    "Boîte de réception",
                    "Non lus",
                ],
                "Forward to jd@live.example|INBOX",
                &[],
            ),
            (&["Archivés", "Envoyé"], "Sent", &[Read]),
            (
                &[
                    "Posteingang",
                    "Wichtig",
                    "Ungelesen",
                    "Kategorie: Neuigkeiten",
                ],
                "INBOX",
                &[Important],
            ),
            (
                &["Archiviert", "Geöffnet", "Kategorie: Persönlich"],
                "Archive",
                &[Read],
            ),
            (&["Recibidos", "No leídos"], "INBOX", &[]),
            (
                &[
                    "Archivováno",
                    "Kategorie: Sociální sítě",
                    "Nepřečtené",
                    "Facebook",
                ],
                "Facebook",
                &[],
            ),
            (&["Posta in arrivo", "Da leggere"], "INBOX", &[]),
            (&["Gearchiveerd", "Ongelezen", "Speciali"], "Speciali", &[]),
            (&["受信トレイ", "未読"], "INBOX", &[]),
            // The word for unread in this language is not confirmed, so the state is unknown.
            (&["受信トレイ", "重要"], "INBOX", &[Important]),
            // A word of another language is treated as a label of the user.
            (
                &["Inbox", "Opened", "Archiviert"],
                "Archiviert|INBOX",
                &[Read],
            ),
            (&["inbox", "OPENED"], "inbox|OPENED", &[]),
            (
                &["Category theory", "Inbox", "Opened"],
                "Category theory|INBOX",
                &[Read],
            ),
            // Words of a language that is not in the table are treated as labels, and the state of the mail is unknown.
            (&["Arkistoitu", "Lukematon"], "Arkistoitu|Lukematon", &[]),
            (&["Spam", "Lukematon"], "Junk|Lukematon", &[]),
        ] {
            let expected = (folders.to_owned(), states.to_vec());
            assert_eq!(of(labels), expected, "{labels:?}");
        }
    }

    #[test]
    fn no_word_of_a_language_has_two_meanings() {
        for language in LANGUAGES {
            for (at, (word, _)) in language.words.iter().enumerate() {
                let (before, _) = language.words.split_at(at);
                assert!(before.iter().all(|(other, _)| other != word), "{word}");
                assert_eq!(*word, word.trim());
            }
        }
    }
}

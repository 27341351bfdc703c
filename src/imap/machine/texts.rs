//! Texts of the reports: why a message was or was not replaced, as the user reads it.

pub(super) const FINISHED: &str =
    "an earlier run began to replace the message, and this run completed the replacement";
pub(super) const CARRIED: &str =
    "the flags of the message changed during the run, and were copied to the new message";
pub(super) const NOT_CARRIED: &str = "the flags or labels of the old message changed at the last moment, and the server does not store all of them on the new message";
pub(super) const LAST_UNKNOWN: &str = "the server did not send the flags at the last moment, so the new message has the flags that embody read earlier";
pub(super) const MARK_REMOVED: &str = "another program marked the new message as deleted while the old message was removed; embody removed this mark";
pub(super) const BY_REPLACE: &str = "the message was replaced in one step (REPLACE), because the quota has no room for the old and the new message";

pub(super) const MOVED: &str = "another program moved or deleted the message during the run";
pub(super) const MARKED: &str = "another program marked the message as deleted during the run";
pub(super) const MARKED_STAYS: &str = "another program marked the message as deleted after the new message was written; the new message is kept";
pub(super) const BOTH_WENT: &str = "another program removed both the old and the new message during the run; look for the message in other folders and in the trash";
pub(super) const BOTH_WENT_EARLIER: &str = "neither the old message nor the new message of the earlier run is in the folder any more; if another program moved both to other folders, the message exists twice";
pub(super) const NEW_WENT: &str = "another program removed or moved the new message after the old message was removed; look for the message in other folders and in the trash";
pub(super) const COPY_WENT: &str = "another program removed the new message while embody compared it, and the old message is unchanged; if the new message was moved to another folder, the message exists twice";
pub(super) const COPY_WENT_EARLIER: &str = "the new message of the earlier run is not in the folder any more, and the old message is unchanged; if the new message was moved to another folder, the message exists twice";
pub(super) const COPY_UNTOLD: &str = "embody deleted the new message again, but the server did not report the deletion; if another program moved the new message to another folder, the message exists twice";
pub(super) const COPY_MARKED: &str =
    "the new message was already marked as deleted, so it was removed and the old message is kept";
pub(super) const RENUMBERED: &str =
    "the folder was deleted and created again during the run; the new message is in the new folder";
pub(super) const RESTLESS: &str = "another program keeps changing the flags of the message";
pub(super) const KEPT: &str =
    "the server reported that the message was removed, but the message is still there";
pub(super) const TAKEN_BACK: &str = "an earlier run was stopped before the new message was removed";

pub(super) const OTHER_BYTES: &str = "the server altered the new message while storing it";
pub(super) const NOT_STORED: &str = "the server reported that the new message was stored, but the folder does not contain the new message; if another folder contains the new message, the message exists twice";
pub(super) const OTHER_DATE: &str = "the server stored the new message with a different date";
pub(super) const NO_SIZE: &str = "the server does not send the size and the date of the message";
pub(super) const NO_DATE: &str = "the server does not send the date of the new message";
pub(super) const KIN: &str = "the folder has new messages with the same Message-ID, and embody cannot tell whether one of these is the message that embody wrote, so the message may exist twice; compare the messages";
pub(super) const SHIFTING: &str = "the server gave the new message a UID that belonged to a different message; the server changes UIDs, so nothing was deleted, and the message now exists twice";
pub(super) const WRONG_UID: &str = "the server reported the UID of a different message for the new message, and embody cannot find the new message; the message may exist twice";
pub(super) const GONE: &str = "the old message disappeared after the new message was written, so the new message is kept; if another program moved the old message, the message exists twice";
pub(super) const GONE_EARLIER: &str = "the original is not in the folder any more, although the earlier run had not deleted it yet, so the new message is kept; if another program moved the original, the message exists twice";
pub(super) const GONE_ALTERED: &str = "the old message disappeared after the new message was written, and the server altered the new message while storing it; the altered message is kept";
pub(super) const UNTOLD: &str = "another program removed the old message while embody replaced it, so the new message is kept; if the other program moved or replaced the old message, the message exists twice";
pub(super) const RENEWED: &str = "the server treated the new message as a copy of the old one: it discarded the new content and gave the old message a new UID; if another program moved the old message, the message exists twice";
pub(super) const TWICE: &str = "the server stored the content of the old message in place of the new one; the message may exist twice, and nothing was deleted";
pub(super) const EARLIER: &str = "the server reported the UID of an older message for the new message, and the folder does not contain the new message, so the message was not replaced";
pub(super) const SAME: &str = "the server treated the new message as a duplicate of an existing message, so the message was not replaced";
pub(super) const LABELS: &str = "the server does not store the labels of the old message on the new message, so the message was not replaced";

pub(super) const SEVERAL: &str = "an earlier run wrote a new message, and several messages may be that message; all of them are kept";
pub(super) const NOT_SAID: &str = "the server does not report the UID of the new message";
pub(super) const COPY_LEFT: &str = "the server stored the new message, but does not report its UID, and embody cannot tell which message it is; the new message stays in the folder, so the message exists twice: compare it with the newest messages of the folder, and delete one of the two";
pub(super) const NOT_OURS: &str =
    "the UID of the new message belongs to a different message; nothing was deleted";
pub(super) const NOT_OURS_ALONE: &str = "the UID of the new message belongs to a different message, and the original is missing; look for the message in this folder and in the trash";
pub(super) const NOT_THE_ORIGINAL: &str = "the UID of the original belongs to a different message; nothing was deleted, and the new message is kept";

pub(super) const UNREADABLE: &str = "the server lists the message but does not send its content";
pub(super) const NO_LABELS: &str = "the server does not send the labels of the old and the new message, so embody cannot compare the two messages";
pub(super) const STAYS_MARKED: &str =
    "the server does not remove the flag \\Deleted from a message";
pub(super) const KEEPS_COPY: &str =
    "the server answered OK, but the new message is still in the folder";

pub(super) const KEPT_FILE: &str = "the original is in a file next to the journal";
pub(super) const NOT_PUT_BACK: &str = "the server altered the message during REPLACE, and then did not store the original again; the original is in a file next to the journal";
pub(super) const PUT_BACK: &str = "the server altered the message while storing it; the unchanged message was stored again, and the altered message was kept, too";

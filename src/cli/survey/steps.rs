//! The steps that the user can take after a survey, each with the commands for it.

use super::context::SurveyContext;
use super::missing::{self, Way};
use super::sum::Survey;
use super::words::{counted, either, grouped, listed, option_size, quoted, size};

/// A step that the user can take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub title: String,
    pub words: String,
    pub commands: Vec<String>,
}

/// The sources from which `recover` gets content without further options. For any other source, the user must name a
/// directory, a store or a kind of link.
const RECOVERED: [Way; 3] = [Way::Here, Way::Web, Way::Ftp];

/// Returns whether `embed` would find at least one picture. Without a probe, each picture on the web counts as
/// available.
fn has_living_pictures(survey: &Survey, context: &SurveyContext<'_>) -> bool {
    let answers = &survey.answers.pictures;
    let is_known = context.is_probed && !context.has_no_response && answers.asked() > 0;
    let is_archived = context.has_archive && survey.probe.archived > 0;
    survey.pictures.remote > 0 && (!is_known || answers.alive > 0 || is_archived)
}

pub(super) fn embed(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    has_living_pictures(survey, context).then(|| Step {
        title: "Keep the pictures".to_owned(),
        words: format!(
            "This puts the pictures into the mail, except pictures that their servers no longer have. The result is a new mailbox, and your mailbox is not changed.{}",
            compare(context)
        ),
        commands: context.compared("embed", &context.repeated.all(), "embedded"),
    })
}

fn compare(context: &SurveyContext<'_>) -> &'static str {
    match context.named() {
        None => "",
        Some([_]) => " The second command proves that no message was lost.",
        Some(_) => " The last commands prove that no message was lost.",
    }
}

pub(super) fn recover(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let count = missing::sum(&survey.missing, &RECOVERED);
    let answers = &survey.answers.attachments;
    let here = missing::sum(&survey.missing, &[Way::Here]);
    let is_known = context.is_probed && !context.has_no_response && answers.asked() > 0;
    let is_there = count > 0 && (!is_known || answers.alive > 0 || here > 0);
    let mut options = context.repeated.all();
    let ftp = missing::sum(&survey.missing, &[Way::Ftp]);
    if ftp > 0 && !context.repeated.has("fetch") {
        options += " --fetch http,https,ftp";
    }
    let from = if here == count {
        "from the files next to the mailbox and from the mail itself"
    } else {
        "if the servers still have the files"
    };
    is_there.then(|| Step {
        title: "Put the missing attachments back".to_owned(),
        words: format!(
            "This puts {} back into the mail, {from}. The result is a new mailbox, and your mailbox is not changed.",
            counted(count, "attachment", "attachments")
        ),
        commands: context.commands("recover", &options, "recovered"),
    })
}

pub(super) fn detach(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let detach = &survey.detach;
    let saves = u64::try_from(detach.saves).unwrap_or(0);
    let objects = detach.objects();
    let options = format!(
        "{} --larger-than {}",
        context.storing(),
        option_size(context.larger_than)
    );
    let duplicates = detach.contents.repeated;
    let once = match duplicates.count {
        0 => String::new(),
        count => format!(
            " {} of them {}, which the store keeps only once.",
            grouped(count),
            either(count, "is a duplicate", "are duplicates")
        ),
    };
    (detach.leave.count > 0 && saves > 0).then(|| Step {
        title: "Make the mailbox smaller".to_owned(),
        words: format!(
            "This moves {} into a directory next to the mailbox, {}, and the mail becomes {} smaller.{once} `embody restore` puts every byte back. The result is a new mailbox, and your mailbox is not changed.",
            counted(detach.leave.count, "large attachment", "large attachments"),
            size(objects.octets),
            size(saves),
        ),
        commands: context.commands("detach", &options, "small"),
    })
}

pub(super) fn blank(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    (survey.pictures.trackers > 0).then(|| Step {
        title: "Remove the trackers".to_owned(),
        words: "This puts an empty picture in the place of each tracker, so that the sender does not learn when you open the mail. No network is needed.".to_owned(),
        commands: context.commands("convert", " --embed remote --trackers blank", "untracked"),
    })
}

/// Returns the step for mail that contains pictures only in `data:` URLs. If there are also pictures on the web, the
/// step `embed` includes them.
pub(super) fn data(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let count = survey.pictures.data;
    (count > 0 && survey.pictures.remote == 0).then(|| Step {
        title: "Show pictures everywhere".to_owned(),
        words: format!(
            "{} written into the HTML itself (as data: URLs), which some mail programs do not show. This turns the pictures into attachments, which every program shows. No network is needed.",
            counted(count, "picture is", "pictures are")
        ),
        commands: context.commands("convert", " --embed data", "shown"),
    })
}

pub(super) fn links(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let links = &survey.links;
    let count = links.with_base + links.to_parts;
    (count > 0).then(|| Step {
        title: "Make links work".to_owned(),
        words: format!(
            "{} incomplete, but the mail contains the address that completes {}. This makes the links complete. No network is needed.",
            counted(count, "link is", "links are"),
            either(count, "it", "them")
        ),
        commands: context.commands("convert", "", "linked"),
    })
}

pub(super) fn cloud_links(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let [links, shortcuts] =
        [Way::Link, Way::Shortcut].map(|way| missing::sum(&survey.missing, &[way]));
    let mut what = Vec::new();
    let mut words = Vec::new();
    if links > 0 {
        what.push(counted(
            links,
            "link to a file in a cloud",
            "links to files in clouds",
        ));
        words.push("links");
    }
    if shortcuts > 0 {
        what.push(counted(
            shortcuts,
            "attached shortcut to a web address",
            "attached shortcuts to web addresses",
        ));
        words.push("shortcuts");
    }
    let sum = links + shortcuts;
    (sum > 0 && !context.is_probed).then(|| Step {
        title: "Attach what links lead to".to_owned(),
        words: format!(
            "The text also contains {}. {} part of the sender's text, so embody attaches the files only with `--follow`, and only files that need no login.",
            listed(&what),
            either(sum, "This is", "These are"),
        ),
        commands: context.commands(
            "recover",
            &format!(" --follow {}{}", words.join(","), context.repeated.all()),
            "linked-files",
        ),
    })
}

pub(super) fn restore(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let count = missing::sum(&survey.missing, &[Way::Store]);
    let (store, _) = context.store.as_ref()?;
    let options = format!(" --store {}", quoted(store));
    (count > 0).then(|| Step {
        title: "Put detached attachments back".to_owned(),
        words: format!(
            "embody detached {}. This puts every byte of the attachments back.",
            counted(count, "attachment", "attachments")
        ),
        commands: context.commands("restore", &options, "restored"),
    })
}

pub(super) fn probe(survey: &Survey, context: &SurveyContext<'_>) -> Option<Step> {
    let is_asked = context.is_probed && !context.has_no_response || context.page.is_none();
    let web = missing::sum(&survey.missing, &[Way::Web]);
    let page = context.page.as_deref().unwrap_or_default();
    (!is_asked && survey.pictures.remote + web > 0).then(|| {
        let fetch = if context.repeated.has("fetch") { "" } else { " --fetch http,https" };
        let command = format!(
            "embody inspect --probe{fetch}{} --html {}",
            context.repeated.all(),
            quoted(page)
        );
        let title = if context.has_no_response {
            "Ask again: no server responded"
        } else {
            "Count what is gone"
        };
        Step {
            title: title.to_owned(),
            words: "This asks each server whether it still has the picture or file, and writes this page again with the answers. The servers of trackers are not asked.".to_owned(),
            commands: context.reading(&command),
        }
    })
}

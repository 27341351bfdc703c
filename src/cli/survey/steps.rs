//! The steps that the user can take after a survey, each with the commands for it.

use super::context::SurveyContext;
use super::missing::{self, RecoveryWay};
use super::sum::Survey;
use super::tally::Answers;
use super::words::{counted, either, grouped, listed, option_size, quoted, size};

/// A step that the user can take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NextStep {
    pub title: String,
    pub words: String,
    pub commands: Vec<String>,
}

/// The sources from which `recover` gets content without further options. For any other source, the user must name a
/// directory, a store or a kind of link.
const RECOVERED: [RecoveryWay; 3] = [RecoveryWay::Here, RecoveryWay::Web, RecoveryWay::Ftp];

/// URL template of the Wayback Machine, the largest web archive.
pub(super) const ARCHIVE: &str = "https://web.archive.org/web/{date}id_/{url}";

/// Returns whether a run with the same options may retrieve at least one of the files. Without a probe, each file counts
/// as available. If the options allow no request, or no server responded, the same run would fail again.
fn may_succeed(answers: &Answers, survey: &Survey, context: &SurveyContext<'_>) -> bool {
    let is_known = context.is_probed && answers.asked() + answers.refused > 0;
    let is_archived = context.has_archive && survey.probe.archived > 0;
    !context.has_no_response && (!is_known || answers.alive > 0 || is_archived)
}

/// Returns the steps for the pictures and attachments that a run can put into the mail: one step with all its commands
/// if there are both.
pub(super) fn fill_in(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    let (recover, embed) = (recover(survey, context), embed(survey, context));
    let (Some(recover), Some(embed)) = (&recover, &embed) else {
        return recover.or(embed);
    };
    let words = format!(
        "{} Then the pictures are put into the new mailbox.{}",
        recover.words,
        compare(context)
    );
    Some(NextStep {
        title: "Put the missing attachments back, then keep the pictures".to_owned(),
        words,
        commands: match context.commands_after(
            "recovered",
            "embed",
            &context.repeated.all(),
            "embedded",
        ) {
            None => [&recover.commands[..], &embed.commands].concat(),
            Some(embeds) => [
                &recover.commands[..],
                &embeds,
                &context.compares("embedded"),
            ]
            .concat(),
        },
    })
}

pub(super) fn embed(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    let has_pictures = survey.pictures.remote > 0;
    (has_pictures && may_succeed(&survey.answers.pictures, survey, context)).then(|| NextStep {
        title: "Keep the pictures".to_owned(),
        words: format!(
            "This step puts the pictures into the mail, except pictures that their servers no longer have. {}{}",
            context.result_is_new(),
            compare(context)
        ),
        commands: context.compared("embed", &context.repeated.all(), "embedded"),
    })
}

/// Returns the step for content that its servers no longer have, if no archive was used.
pub(super) fn archive(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    let (pictures, attachments) = (
        survey.answers.pictures.gone,
        survey.answers.attachments.gone,
    );
    let gone = pictures + attachments;
    let verb = if pictures > 0 { "embed" } else { "recover" };
    let options = format!(" --archive {}{}", quoted(ARCHIVE), context.repeated.all());
    let is_possible = gone > 0 && !context.has_archive && !context.has_no_response;
    is_possible.then(|| NextStep {
        title: "Look in a web archive for the content that is gone".to_owned(),
        words: format!(
            "The servers no longer have {}. This step asks the Wayback Machine for {}, and the servers for everything else. The Wayback Machine learns the {} of this content.",
            pictures_and_attachments(pictures, attachments),
            either(gone, "it", "them"),
            either(gone, "URL", "URLs"),
        ),
        commands: context.commands(verb, &options, "archived"),
    })
}

/// Returns the counts as text: `3 pictures and 1 attachment`.
pub(super) fn pictures_and_attachments(pictures: u64, attachments: u64) -> String {
    let mut words = Vec::new();
    if pictures > 0 {
        words.push(counted(pictures, "picture", "pictures"));
    }
    if attachments > 0 {
        words.push(counted(attachments, "attachment", "attachments"));
    }
    listed(&words)
}

/// Returns the step for a probe whose requests the options did not allow.
pub(super) fn allow(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    let refused = survey.answers.pictures.refused + survey.answers.attachments.refused;
    let options = context.remedy.as_ref().filter(|_| refused > 0)?;
    let html = match &context.page {
        Some(page) => format!(" --html {}", quoted(page)),
        None => String::new(),
    };
    let command = format!(
        "embody inspect --probe{} {options}{html}",
        context.repeated.all()
    );
    Some(NextStep {
        title: "Allow the requests".to_owned(),
        words: format!(
            "The options did not allow the requests for {}. This step allows these requests, and sends them.",
            counted(refused, "picture or file", "pictures or files")
        ),
        commands: context.reading(&command),
    })
}

fn compare(context: &SurveyContext<'_>) -> &'static str {
    match context.named() {
        None => "",
        Some([_]) => " The last command proves that no message was lost.",
        Some(_) => " The last commands prove that no message was lost.",
    }
}

pub(super) fn recover(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    let count = missing::sum(&survey.missing, &RECOVERED);
    let answers = &survey.answers.attachments;
    let here = missing::sum(&survey.missing, &[RecoveryWay::Here]);
    let is_there = count > 0 && (here > 0 || may_succeed(answers, survey, context));
    let mut options = context.repeated.all();
    let ftp = missing::sum(&survey.missing, &[RecoveryWay::Ftp]);
    if ftp > 0 && !context.repeated.has("fetch") {
        options += " --fetch http,https,ftp";
    }
    let from = if here == count {
        "from the files next to the mailbox and from the mail itself"
    } else if here > 0 {
        "from the files next to the mailbox and from the mail itself, and from servers if these still have the files"
    } else {
        "if the servers still have the files"
    };
    is_there.then(|| NextStep {
        title: "Put the missing attachments back".to_owned(),
        words: format!(
            "This step puts {} back into the mail, {from}. {}",
            counted(count, "attachment", "attachments"),
            context.result_is_new()
        ),
        commands: context.commands("recover", &options, "recovered"),
    })
}

pub(super) fn detach(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
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
    (detach.leave.count > 0 && saves > 0).then(|| NextStep {
        title: "Make the mailbox smaller".to_owned(),
        words: format!(
            "This step moves {} into a directory next to the mailbox, {}, and the mail becomes {} smaller.{once} `embody restore` puts every byte back. {}",
            counted(detach.leave.count, "large attachment", "large attachments"),
            size(objects.octets),
            size(saves),
            context.result_is_new()
        ),
        commands: context.commands("detach", &options, "small"),
    })
}

pub(super) fn blank(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    (survey.pictures.trackers > 0).then(|| NextStep {
        title: "Remove the trackers".to_owned(),
        words: "This step puts an empty picture in the place of each tracker, so that the sender does not learn when you open the mail. No network is needed.".to_owned(),
        commands: context.commands("convert", " --embed remote --trackers blank", "untracked"),
    })
}

/// Returns the step for mail that contains pictures only in `data:` URLs. If there are also pictures on the web, the
/// step `embed` includes them.
pub(super) fn data(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    let count = survey.pictures.data;
    (count > 0 && survey.pictures.remote == 0).then(|| NextStep {
        title: "Show pictures everywhere".to_owned(),
        words: format!(
            "{} written into the HTML itself (as data: URLs), which some mail programs do not show. This step turns the pictures into attachments, which every program shows. No network is needed.",
            counted(count, "picture is", "pictures are")
        ),
        commands: context.commands("convert", " --embed data", "shown"),
    })
}

pub(super) fn links(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    let links = &survey.links;
    let count = links.with_base + links.to_parts;
    (count > 0).then(|| NextStep {
        title: "Make links work".to_owned(),
        words: format!(
            "{} relative or {} to a part of the mail, so most mail programs cannot open {}. This step makes relative links absolute, and changes links to parts to cid: URLs. No network is needed.",
            counted(count, "link is", "links are"),
            either(count, "leads", "lead"),
            either(count, "it", "them")
        ),
        commands: context.commands("convert", "", "linked"),
    })
}

pub(super) fn unpack(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    let count = missing::sum(&survey.missing, &[RecoveryWay::Packed]);
    (count > 0).then(|| NextStep {
        title: "Open what most mail programs cannot open".to_owned(),
        words: format!(
            "This step replaces {} that only Outlook or old programs can open.{}",
            counted(count, "part", "parts"),
            compare(context)
        ),
        commands: context.compared(
            "convert",
            &format!(" --follow {}{}", missing::PACKED, context.repeated.all()),
            "opened",
        ),
    })
}

pub(super) fn cloud_links(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    let [links, shortcuts] =
        [RecoveryWay::Link, RecoveryWay::Shortcut].map(|way| missing::sum(&survey.missing, &[way]));
    let mut what = Vec::new();
    if links > 0 {
        what.push(counted(
            links,
            "link to a file in a cloud",
            "links to files in clouds",
        ));
    }
    if shortcuts > 0 {
        what.push(counted(
            shortcuts,
            "attached shortcut to a web address",
            "attached shortcuts to web addresses",
        ));
    }
    let follow = missing::follow_words(&survey.missing);
    let sum = links + shortcuts;
    (sum > 0 && !context.is_probed).then(|| NextStep {
        title: "Attach the files to which links lead".to_owned(),
        words: format!(
            "The text also contains {}. {} part of the sender's text, so embody attaches the files only with `--follow`, and only files that need no login.",
            listed(&what),
            either(sum, "This is", "These are"),
        ),
        commands: context.commands(
            "recover",
            &format!(" --follow {follow}{}", context.repeated.all()),
            "linked-files",
        ),
    })
}

pub(super) fn restore(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    let count = missing::sum(&survey.missing, &[RecoveryWay::Store]);
    let (store, _) = context.store.as_ref()?;
    let options = format!(" --store {}", quoted(store));
    (count > 0).then(|| NextStep {
        title: "Put detached attachments back".to_owned(),
        words: format!(
            "embody detached {}. This step puts every byte of the attachments back.",
            counted(count, "attachment", "attachments")
        ),
        commands: context.commands("restore", &options, "restored"),
    })
}

pub(super) fn probe(survey: &Survey, context: &SurveyContext<'_>) -> Option<NextStep> {
    let web = missing::sum(&survey.missing, &[RecoveryWay::Web]);
    // The text for a terminal recommends a probe only if one has just failed, because a probe is most useful with a page.
    let is_useful = context.has_no_response || context.page.is_some() && !context.is_probed;
    let page = context
        .page
        .as_ref()
        .map(|page| format!(" --html {}", quoted(page)));
    (is_useful && survey.pictures.remote + web > 0).then(|| {
        let (options, page) = (context.repeated.all(), page.unwrap_or_default());
        let [title, start] = if context.has_no_response {
            [
                "Ask again: no server responded",
                "Check the network connection and the option `--proxy` first. This step",
            ]
        } else {
            ["Count the pictures and files that are gone", "This step"]
        };
        let rewrites = if page.is_empty() { "" } else { ", and writes this page again with the answers" };
        NextStep {
            title: title.to_owned(),
            words: format!("{start} asks each server whether it still has the pictures and files of this mail{rewrites}. The servers of trackers are not asked."),
            commands: context.reading(&format!("embody inspect --probe{options}{page}")),
        }
    })
}

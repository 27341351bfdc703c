use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::cli::picture_watch::PictureWatch;
use crate::cli::survey::Survey;
use crate::engine::Mode;
use crate::engine::policy::Policy;
use crate::expand::Expander;
use crate::mailbox::Quoting;

fn surveyed(mail: &str, larger_than: u64) -> Survey {
    let expander = Expander::new(Policy::default()).expect("it retrieves nothing");
    let expanding = ExpandRun {
        expander,
        mode: Mode::DryRun,
        recorder: None,
        tells_rows: false,
        pictures: PictureWatch::default(),
        lengths: Lengths::Reversible,
    };
    let base_url = "file:///srv/store/".to_owned();
    let surveying = SurveyRun::new(expanding, larger_than, base_url, false);
    let message = Message {
        number: 1,
        source: Path::new("-"),
        content: mail.as_bytes(),
        at: None,
        quoting: Quoting::None,
        beside: None,
    };
    let (_, said) = surveying.transform(&message).expect("nothing is asked");
    *said.survey.expect("it counts")
}

#[test]
fn unreadable_or_implausible_date_counts_as_implausible() {
    let of = |date: &str| {
        let dates = surveyed(&format!("Date: {date}\n\nx\n"), 1000).dates;
        assert_eq!(dates.first, dates.last);
        assert_eq!(
            dates.implausible,
            u64::from(dates.first.is_none()),
            "{date}"
        );
        assert_eq!(dates.missing, 0);
        dates.first
    };
    assert_eq!(of("Thu, 1 Jan 2015 00:00:00 +0000"), Some(1_420_070_400));
    assert_eq!(of("1 Jan 2015 01:00 +0100 (CET)"), Some(1_420_070_400));
    assert_eq!(
        of("Wed, 31 Dec 2014\n\t19:00:00 -0500"),
        Some(1_420_070_400)
    );
    for date in [
        "",
        "yesterday",
        "Thu, 01 Jan 1970 00:00:00 +0000",
        "Thu, 1 Jan 2099 00:00:00 +0000",
        "Thu, 32 Jan 2015 00:00:00 +0000",
        "Thu, 1 Jan 999999999999 00:00:00 +0000",
    ] {
        assert_eq!(of(date), None, "{date}");
    }
    assert_eq!(surveyed("Subject: x\n\n", 1000).dates.missing, 1);
    let long = format!("Date: {}\n\n", "(".repeat(1 << 20));
    assert_eq!(surveyed(&long, 1000).dates.implausible, 1);
}

#[test]
fn what_is_shown_as_text_is_no_attachment() {
    let mail = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
            --b\n\nhello\n--b\nContent-Type: text/plain\nContent-Disposition: attachment\n\nfile\n\
            --b\nContent-Type: Image/GIF\n\nGIF89a\n--b\nContent-Type: message/rfc822\n\nSubject: x\n\ny\n\
            --b\nContent-Type: message/external-body; access-type=URL; URL=\"https://a.example/\"\n\nContent-Type: text/plain\n\n\
            --b--\n";
    let survey = surveyed(mail, 1000);
    assert_eq!(survey.attachments.count, 2);
    assert_eq!(
        survey.attachments.octets,
        "file".len() as u64 + "GIF89a".len() as u64
    );
    let types: Vec<&str> = survey.types.names().map(|(name, _)| name).collect();
    assert_eq!(types, ["image/gif", "text/plain"]);
    assert_eq!(survey.references, 1);
    assert_eq!(survey.detach.large.count, 0);
}

proptest! {
    #[test]
    fn the_numbers_of_any_mail_agree_with_each_other(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..24),
        larger_than in 0_u64..3000,
    ) {
        // Pieces with an attachment are repeated to exceed the minimum size of `detach`.
        let times = |piece: &&str| if piece.starts_with("QUFB") { 4 } else { 1 };
        let pieces: Vec<String> = pieces.iter().map(|piece| piece.repeat(times(piece))).collect();
        let mail = format!("Content-Type: multipart/mixed; boundary=b\n{}", pieces.concat());
        let mut sum = Survey::default();
        for _ in 0..2 {
            sum.add(surveyed(&mail, larger_than));
        }
        let detach = &sum.detach;
        prop_assert_eq!(sum.mail.octets, 2 * mail.len() as u64);
        prop_assert_eq!(sum.dates.missing + sum.dates.implausible + sum.years.names().filter(|(name, _)| name.starts_with('2')).map(|(_, year)| year.messages).sum::<u64>(), 2);
        prop_assert_eq!(sum.sizes.iter().map(|size| size.count).sum::<u64>(), sum.attachments.count);
        prop_assert_eq!(sum.types.names().map(|(_, it)| it.octets).sum::<u64>(), sum.attachments.octets);
        prop_assert!(sum.attachments.octets <= sum.mail.octets);
        prop_assert!(detach.large.count <= sum.attachments.count);
        prop_assert_eq!(detach.leave.count + detach.stay.values().sum::<u64>(), detach.large.count);
        prop_assert!(detach.contents.repeated.count >= detach.leave.count / 2);
        prop_assert!(detach.saves <= i64::try_from(detach.leave.octets).expect("it is small"));
        let links = &sum.links;
        let roles: u64 = sum.link_roles.values().sum();
        prop_assert_eq!(roles, links.count);
        let schemes: u64 = sum.link_schemes.names().map(|(_, count)| count).sum();
        prop_assert!(schemes + links.relative <= links.count);
        prop_assert!(links.with_base + links.to_parts <= links.relative);
        let hosts: u64 = sum.hosts.names().map(|(_, it)| it.pictures).sum();
        prop_assert_eq!(hosts, sum.pictures.remote);
    }
}

const PIECES: &[&str] = &[
    "\n--b\n",
    "\n--b--\n",
    "Content-Type: text/html\n\n",
    "Content-Type: image/gif\nContent-Transfer-Encoding: base64\n\n",
    "Content-Base: http://base.example/\n",
    "Content-Disposition: attachment\n",
    "Content-Type: multipart/related; boundary=b\n\n",
    "Content-Location: x.gif\n",
    "Date: Thu, 1 Jan 2015 00:00:00 +0000\n",
    "<img src=x.gif><a href=//h.example/><img src='https://H.example/' width=1 height=1>",
    "<img srcset='http://a.example/1 1x, data:image/gif;base64,AA 2x'>",
    "<base href=http://c.example/>",
    "R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs=\n",
    include_str!("../../../samples/untouched/https.in.eml"),
    "Content-Type: message/external-body; access-type=URL; URL=\"https://a.example/\"\n\n",
    "\n",
    "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB\nQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB\n\
         QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB\nQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB\n",
];

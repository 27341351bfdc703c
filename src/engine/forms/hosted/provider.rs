//! Converts the URL of a page in cloud storage to the URL of the file that the page shows.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use percent_encoding::{AsciiSet, percent_decode_str, utf8_percent_encode};

use crate::engine::external_body::reference::{bad_value, missing_parameter};
use crate::engine::external_body::texts::extension_of;
use crate::engine::policy::Follow;
use crate::engine::report::{Reason, Refusal};
use crate::link::server_url::ServerUrl;
use crate::link::url::all_but;

/// Characters that are percent-encoded in a URL component, as `encodeURIComponent` of browsers does.
const COMPONENT: AsciiSet = all_but(b"-_.!~*'()");

/// The file to which a link leads.
pub(crate) struct ProviderLink {
    /// URL of the file.
    pub plain: Result<String, Refusal>,
    pub name: Option<String>,
    pub size: Option<u64>,
    /// Expiry date of the file, in seconds since 1970.
    pub ends: Option<u64>,
    /// Whether the page is known to offer a file for download, even if `plain` has no URL for the file.
    pub is_download_page: bool,
}

/// Function that converts the URL of a page to the URL of the file on it. The second argument is the file name in the
/// mail. Returns `None` if the page does not show a file.
type LinkReader = fn(&ServerUrl, Option<&str>) -> Option<ProviderLink>;

/// A provider of cloud storage, with everything that embody knows about it. To add a provider, add it to [`PROVIDERS`].
pub(crate) struct Provider {
    /// Name of the provider in reports.
    pub word: &'static str,
    /// Singular and plural for files of the provider, in messages to users.
    pub files: [&'static str; 2],
    /// Host names of pages, each with the function that reads their URLs. A name that begins with a dot includes all hosts
    /// below it. A document without any of these names contains no bare link to a file, so it is not parsed.
    hosts: &'static [(&'static str, LinkReader)],
    /// Mail program whose attachment mark can surround a link to the provider.
    mark: Option<Follow>,
    /// Whether a link without the mark of a mail program counts, too.
    is_bare: bool,
    /// Hosts of the sign-in pages. A response from such a host is not the file.
    sign_in: &'static [&'static str],
}

/// A provider without marks and sign-in pages.
const PLAIN: Provider = Provider {
    word: "",
    files: ["file in a cloud", "files in clouds"],
    hosts: &[],
    mark: None,
    is_bare: true,
    sign_in: &[],
};

pub(super) static PROVIDERS: [Provider; 11] = [
    Provider {
        word: "google-drive",
        files: ["file in Google Drive", "files in Google Drive"],
        hosts: &[
            ("drive.google.com", drive),
            ("drive.usercontent.google.com", drive),
            ("docs.google.com", document),
        ],
        mark: Some(Follow::Gmail),
        sign_in: &["accounts.google.com"],
        ..PLAIN
    },
    Provider {
        word: "mail-drop",
        files: ["file in Mail Drop (iCloud)", "files in Mail Drop (iCloud)"],
        hosts: &[("www.icloud.com", mail_drop)],
        mark: Some(Follow::MailDrop),
        is_bare: false,
        sign_in: &["idmsa.apple.com", "appleid.apple.com"],
    },
    Provider {
        word: "onedrive",
        files: ["file in OneDrive", "files in OneDrive"],
        hosts: &[("1drv.ms", onedrive), ("onedrive.live.com", onedrive)],
        mark: Some(Follow::Outlook),
        sign_in: &["login.live.com", "login.microsoft.com"],
        ..PLAIN
    },
    Provider {
        word: "sharepoint",
        files: ["file in SharePoint", "files in SharePoint"],
        hosts: &[(".sharepoint.com", sharepoint)],
        mark: Some(Follow::Outlook),
        sign_in: &["login.microsoftonline.com", "login.microsoft.com"],
        ..PLAIN
    },
    Provider {
        word: "dropbox",
        files: ["file in Dropbox", "files in Dropbox"],
        hosts: &[("dropbox.com", dropbox), ("www.dropbox.com", dropbox)],
        ..PLAIN
    },
    Provider {
        word: "box",
        files: ["file in Box", "files in Box"],
        hosts: &[(".box.com", by_token)],
        sign_in: &["account.box.com"],
        ..PLAIN
    },
    Provider {
        word: "qq-mail",
        files: ["file in QQ Mail", "files in QQ Mail"],
        hosts: &[(".mail.qq.com", qq_mail), ("exmail.qq.com", qq_mail)],
        ..PLAIN
    },
    Provider {
        word: "netease",
        files: ["file in NetEase", "files in NetEase"],
        hosts: &[
            (".163.com", netease),
            (".126.com", netease),
            (".yeah.net", netease),
        ],
        ..PLAIN
    },
    Provider {
        word: "wetransfer",
        files: ["file in WeTransfer", "files in WeTransfer"],
        hosts: &[("we.tl", wetransfer), (".wetransfer.com", wetransfer)],
        ..PLAIN
    },
    NEXTCLOUD,
    FILELINK,
];

/// Servers of Nextcloud and ownCloud, on any host.
const NEXTCLOUD: Provider = Provider {
    word: "nextcloud",
    files: ["file in Nextcloud", "files in Nextcloud"],
    ..PLAIN
};

/// Other servers to which Thunderbird uploads files.
const FILELINK: Provider = Provider {
    word: "filelink",
    ..PLAIN
};

impl Provider {
    /// Returns the provider with this word in reports.
    pub(crate) fn of(word: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.word == word)
    }

    /// Returns true if a link with the mark of a mail program counts. A link without a mark has the kind [`Follow::Links`].
    pub(super) fn accepts(&self, follow: Follow, link: &ProviderLink) -> bool {
        match follow {
            Follow::FileLink => true,
            // A bare link counts only if its URL leads to a single file, or to the download page of one.
            Follow::Links => self.is_bare && (link.plain.is_ok() || link.is_download_page),
            mark => self.mark == Some(mark),
        }
    }
}

/// Parts of the host names of the providers. A document without any of them contains no bare link to a hosted file.
pub(super) fn hosts() -> impl Iterator<Item = &'static str> {
    let bare = PROVIDERS.iter().filter(|provider| provider.is_bare);
    let hosts = bare.flat_map(|provider| provider.hosts);
    hosts.map(|(host, _)| host.strip_prefix('.').unwrap_or(host))
}

/// Returns true for the host of a page on which users sign in to a provider.
pub(super) fn is_sign_in(host: &str) -> bool {
    let mut hosts = PROVIDERS.iter().flat_map(|provider| provider.sign_in);
    hosts.any(|known| host.eq_ignore_ascii_case(known))
}

/// Returns the file that a page of a known provider shows. `name` is the name of the file in the mail.
pub(super) fn known(
    page: &ServerUrl,
    name: Option<&str>,
) -> Option<(&'static Provider, ProviderLink)> {
    let host = page.host_str();
    let is_of = |end: &str| {
        if end.starts_with('.') {
            host.ends_with(end) || Some(host) == end.get(1..)
        } else {
            host == end
        }
    };
    let (provider, read) = PROVIDERS.iter().find_map(|provider| {
        let (_, read) = provider.hosts.iter().find(|(end, _)| is_of(end))?;
        Some((provider, read))
    })?;
    // Old links have the scheme http. The file is requested only over https, and a download page is not requested.
    let is_safe = |link: &ProviderLink| match &link.plain {
        Ok(plain) => plain.starts_with("https://"),
        Err(_) => page.scheme() == "https" || link.is_download_page,
    };
    let link = read(page, name).filter(is_safe)?;
    Some((provider, link))
}

/// Returns the file of a link that a mail program marked as an attachment, on any server, such as Nextcloud or ownCloud.
pub(super) fn shared(page: &ServerUrl) -> (&'static Provider, ProviderLink) {
    let segments: Vec<&str> = page.path().split('/').filter(|it| !it.is_empty()).collect();
    let (provider, path) = match segments.as_slice() {
        [.., "s", _] => (&NEXTCLOUD, format!("/{}/download", segments.join("/"))),
        [.., "s", _, "download"] => (&NEXTCLOUD, page.path().to_owned()),
        _ => (&FILELINK, page.path().to_owned()),
    };
    let link = ProviderLink::at(page.clone().with_path(&path));
    (provider, link)
}

impl ProviderLink {
    fn with(plain: Result<String, Refusal>) -> Self {
        Self {
            plain,
            name: None,
            size: None,
            ends: None,
            is_download_page: false,
        }
    }

    fn at(plain: impl Into<String>) -> Self {
        Self::with(Ok(plain.into()))
    }

    fn nowhere(what: &str) -> Self {
        let detail = format!("the link leads to {what}, which is not a file that can be retrieved");
        Self::with(Err(Refusal::lasting(Reason::OnlineDocument, detail)))
    }
}

/// Returns the result for a page that offers a file, but that only a browser can use.
fn download_page(service: &str, name: Option<Cow<'_, str>>) -> ProviderLink {
    let detail = format!(
        "the link leads to a download page of {service}, not to the file; download the file with a browser soon, because such files expire"
    );
    ProviderLink {
        name: name.map(Cow::into_owned),
        is_download_page: true,
        ..ProviderLink::with(Err(Refusal::lasting(Reason::OnlineDocument, detail)))
    }
}

/// Returns a query parameter, percent-decoded once. A plus sign stays a plus sign.
fn parameter<'u>(page: &'u ServerUrl, name: &str) -> Option<Cow<'u, str>> {
    let mut all = page.query().unwrap_or_default().split('&');
    let value = all.find_map(|it| it.split_once('=').filter(|(found, _)| *found == name));
    percent_decode_str(value?.1).decode_utf8().ok()
}

fn is_token(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'!');
    !text.is_empty() && text.bytes().all(is_known)
}

fn drive(page: &ServerUrl, _: Option<&str>) -> Option<ProviderLink> {
    let segments: Vec<&str> = page.path().split('/').filter(|it| !it.is_empty()).collect();
    // The path can begin with the domain of an organisation, and with the number of an account of the reader.
    let of_account = match segments.as_slice() {
        ["a", _, rest @ ..] => rest,
        all => all,
    };
    let of_file = match of_account {
        ["u", _, rest @ ..] => rest,
        all => all,
    };
    let written: Cow<'_, str> = match of_file {
        ["drive", .., "folders", _] | ["folders", _] | ["folderview" | "embeddedfolderview"] => {
            return Some(ProviderLink::nowhere("a folder of Google Drive"));
        }
        ["file", "d", id, ..] | ["file", "u", _, "d", id, ..] => (*id).into(),
        ["open" | "uc" | "leaf" | "download"] => parameter(page, "id")?,
        ["viewer"] => parameter(page, "srcid").or_else(|| parameter(page, "id"))?,
        _ => return None,
    };
    let id = Some(written).filter(|id| is_token(id))?;
    let key = parameter(page, "resourcekey")
        .filter(|key| is_token(key))
        .map_or_else(String::new, |key| format!("&resourcekey={key}"));
    let plain = format!("https://drive.google.com/uc?export=download&id={id}{key}");
    Some(ProviderLink::at(plain))
}

fn document(page: &ServerUrl, _: Option<&str>) -> Option<ProviderLink> {
    let document = || ProviderLink::nowhere("a document of Google");
    drive(page, None).or_else(|| page.path().contains("/d/").then(document))
}

/// Reads a Mail Drop link. One parameter is a template for the URL of the file, and the others are inserted into it.
fn mail_drop(page: &ServerUrl, _: Option<&str>) -> Option<ProviderLink> {
    if page.path().trim_end_matches('/') != "/attachment" {
        return None;
    }
    let template = parameter(page, "u")?;
    let mut name = parameter(page, "f").unwrap_or_default();
    // Some programs encode the name twice, so it is decoded again.
    if let Ok(again) = percent_decode_str(&name).decode_utf8()
        && again != name
    {
        name = Cow::Owned(again.into_owned());
    }
    // Only the scheme and the host of the template are parsed, because the braces in its path are not valid in a URL.
    let (scheme, rest) = template.split_once("://").unwrap_or_default();
    let host = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let is_kept_there = ServerUrl::parse(&format!("{scheme}://{host}/")).is_ok_and(|file| {
        file.scheme() == "https" && file.host_str().ends_with(".icloud-content.com")
    });
    let ends = template
        .split(['?', '&'])
        .find_map(|it| it.strip_prefix("e="));
    let encoded = |text: &str| utf8_percent_encode(text, &COMPONENT).to_string();
    let filled = match parameter(page, "uk") {
        _ if !is_kept_there => Err(bad_value(
            "the download address in the Mail Drop link is not on a server of iCloud",
        )),
        None => Err(missing_parameter("uk", None)),
        Some(key) => {
            let filled = template.replacen("${f}", &encoded(&name), 1);
            Ok(filled.replacen("${uk}", &encoded(&key), 1))
        }
    };
    Some(ProviderLink {
        name: Some(name.into_owned()),
        size: parameter(page, "sz").and_then(|size| size.parse().ok()),
        ends: ends.and_then(|ends| ends.parse().ok()),
        ..ProviderLink::with(filled)
    })
}

fn onedrive(page: &ServerUrl, _: Option<&str>) -> Option<ProviderLink> {
    let path = page.path();
    if path.starts_with("/f/") || path.starts_with("/o/") {
        return Some(ProviderLink::nowhere("a folder of OneDrive"));
    }
    let is_page = path.len() > 1 || parameter(page, "resid").is_some();
    let encoded = URL_SAFE_NO_PAD.encode(page.as_str());
    let plain = format!("https://api.onedrive.com/v1.0/shares/u!{encoded}/root/content");
    is_page.then(|| ProviderLink::at(plain))
}

/// Reads a SharePoint link such as `/:x:/g/...`. The letter is the kind of the file or folder.
fn sharepoint(page: &ServerUrl, _: Option<&str>) -> Option<ProviderLink> {
    match page.path().get(..5)? {
        "/:f:/" => Some(ProviderLink::nowhere("a folder of SharePoint")),
        start if start.starts_with("/:") && start.ends_with(":/") => {
            let plain = with(page, "download=1", &["download", "web"]);
            Some(ProviderLink::at(plain))
        }
        _ => None,
    }
}

fn dropbox(page: &ServerUrl, _: Option<&str>) -> Option<ProviderLink> {
    let segments: Vec<&str> = page.path().split('/').skip(1).collect();
    let name = match segments.as_slice() {
        ["s", _, name] | ["scl", "fi", _, name] | ["s", _, _, name] => *name,
        ["sh", ..] | ["scl", "fo", ..] => {
            return Some(ProviderLink::nowhere("a folder of Dropbox"));
        }
        _ => return None,
    };
    Some(ProviderLink {
        name: Some(percent_decode_str(name).decode_utf8_lossy().into_owned()),
        ..ProviderLink::at(with(page, "dl=1", &["dl", "raw"]))
    })
}

/// Reads a link to a large attachment of QQ Mail, such as `/cgi-bin/ftnExs_download?...` or `/ftn/download?...`.
fn qq_mail(page: &ServerUrl, _: Option<&str>) -> Option<ProviderLink> {
    let is_file = page.path().contains("/ftn") || page.path().contains("/exs_ftn");
    is_file.then(|| download_page("QQ Mail", None))
}

/// Reads a link to a large attachment of NetEase (163, 126 and yeah.net).
fn netease(page: &ServerUrl, _: Option<&str>) -> Option<ProviderLink> {
    let is_marked = |text: &str| text.contains("NETEASE-HUGE-ATTACHMENT");
    let is_file = page.query().is_some_and(is_marked)
        || page.path().contains("attachment-download")
        || matches!(page.host_str(), "fs.163.com" | "u.163.com");
    let name = || parameter(page, "title").filter(|name| !name.is_empty());
    (is_file && page.path().len() > 1).then(|| download_page("NetEase", name()))
}

/// Reads `https://we.tl/t-...` or `https://wetransfer.com/downloads/...`.
fn wetransfer(page: &ServerUrl, _: Option<&str>) -> Option<ProviderLink> {
    let path = page.path();
    let is_file = match page.host_str() {
        "we.tl" => path.len() > 1,
        _ => path.starts_with("/downloads/"),
    };
    is_file.then(|| download_page("WeTransfer", None))
}

fn by_token(page: &ServerUrl, name: Option<&str>) -> Option<ProviderLink> {
    let token = page.path().strip_prefix("/s/")?.trim_end_matches('/');
    let host = is_token(token).then(|| page.host_str())?;
    let extension = name
        .and_then(extension_of)
        .map_or_else(String::new, |extension| format!(".{extension}"));
    let plain = format!("https://{host}/shared/static/{token}{extension}");
    Some(ProviderLink::at(plain))
}

/// Adds the parameter `wanted` to a URL. The parameters in `without` have the opposite meaning and are removed.
fn with(page: &ServerUrl, wanted: &str, without: &[&str]) -> String {
    let query = page.query().unwrap_or_default();
    let stays = |it: &&str| {
        let name = it.split('=').next().unwrap_or_default();
        !it.is_empty() && !without.contains(&name)
    };
    let mut parameters: Vec<&str> = query.split('&').filter(stays).collect();
    parameters.push(wanted);
    let url = page.clone().with_query(&parameters.join("&"));
    url.without_fragment().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(url: &str, name: Option<&str>) -> String {
        match known(&ServerUrl::parse(url).unwrap(), name) {
            None => "unknown".to_owned(),
            Some((provider, link)) => match link.plain {
                Ok(plain) => format!("{}: {plain}", provider.word),
                Err(refusal) => format!("{}: {}", provider.word, refusal.reason.as_str()),
            },
        }
    }

    #[test]
    fn only_file_pages_of_a_provider_are_turned_into_file_urls() {
        for (page, expected) in [
            (
                "https://drive.google.com/file/d/1Ab-_c/view?usp=drive_web",
                "google-drive: https://drive.google.com/uc?export=download&id=1Ab-_c",
            ),
            (
                "https://drive.google.com/open?id=1Ab&resourcekey=0-x",
                "google-drive: https://drive.google.com/uc?export=download&id=1Ab&resourcekey=0-x",
            ),
            (
                "https://drive.google.com/drive/folders/1Ab",
                "google-drive: online-document",
            ),
            (
                "https://docs.google.com/spreadsheets/d/1Ab/edit",
                "google-drive: online-document",
            ),
            (
                "https://docs.google.com/file/d/1Ab/edit?usp=drivesdk",
                "google-drive: https://drive.google.com/uc?export=download&id=1Ab",
            ),
            (
                "https://docs.google.com/a/example.org/file/d/1Ab/edit",
                "google-drive: https://drive.google.com/uc?export=download&id=1Ab",
            ),
            (
                "https://docs.google.com/a/example.org/u/2/uc?export=download&id=1Ab",
                "google-drive: https://drive.google.com/uc?export=download&id=1Ab",
            ),
            (
                "https://docs.google.com/open?authuser=0&id=1Ab",
                "google-drive: https://drive.google.com/uc?export=download&id=1Ab",
            ),
            (
                "https://drive.google.com/file/u/1/d/1Ab/view",
                "google-drive: https://drive.google.com/uc?export=download&id=1Ab",
            ),
            (
                "https://drive.google.com/u/0/uc?id=1Ab&export=download",
                "google-drive: https://drive.google.com/uc?export=download&id=1Ab",
            ),
            (
                "https://drive.usercontent.google.com/download?export=download&confirm=t&id=1Ab",
                "google-drive: https://drive.google.com/uc?export=download&id=1Ab",
            ),
            (
                "https://docs.google.com/viewer?a=v&srcid=1Ab",
                "google-drive: https://drive.google.com/uc?export=download&id=1Ab",
            ),
            ("https://docs.google.com/forms/", "unknown"),
            (
                "https://drive.google.com/drive/u/0/folders/1Ab",
                "google-drive: online-document",
            ),
            (
                "https://wx.mail.qq.com/ftn/download?func=3&key=a&code=b",
                "qq-mail: online-document",
            ),
            (
                "https://mail.qq.com/cgi-bin/ftnExs_download?k=1&code=a1b2",
                "qq-mail: online-document",
            ),
            (
                "https://exmail.qq.com/cgi-bin/ftnExs_download?k=1&code=a1b2",
                "qq-mail: online-document",
            ),
            ("https://mail.qq.com/", "unknown"),
            (
                "http://fs.163.com/fs/display/?p=X-NETEASE-HUGE-ATTACHMENT&file=A",
                "netease: online-document",
            ),
            (
                "https://mail.126.com/large-attachment-download/index.html?file=A",
                "netease: online-document",
            ),
            ("https://u.163.com/AbCdEf", "netease: online-document"),
            ("https://www.163.com/news", "unknown"),
            ("https://we.tl/t-AbC", "wetransfer: online-document"),
            (
                "https://company.wetransfer.com/downloads/a/b",
                "wetransfer: online-document",
            ),
            ("https://wetransfer.com/", "unknown"),
            ("https://drive.google.com/file/d/a%26b/view", "unknown"),
            ("https://drive.google.com/", "unknown"),
            (
                "http://docs.google.com/file/d/1Ab/edit",
                "google-drive: https://drive.google.com/uc?export=download&id=1Ab",
            ),
            ("http://docs.google.com/spreadsheets/d/1Ab/edit", "unknown"),
            ("http://www.dropbox.com/s/a/b.png", "unknown"),
            (
                "https://drive.google.com.evil.example/file/d/1Ab/view",
                "unknown",
            ),
            (
                "https://1drv.ms/u/s!Aa",
                "onedrive: https://api.onedrive.com/v1.0/shares/u!aHR0cHM6Ly8xZHJ2Lm1zL3UvcyFBYQ/root/content",
            ),
            ("https://1drv.ms/f/s!Aa", "onedrive: online-document"),
            (
                "https://x-my.sharepoint.com/:x:/g/personal/a/Ex?e=1&web=1",
                "sharepoint: https://x-my.sharepoint.com/:x:/g/personal/a/Ex?e=1&download=1",
            ),
            ("https://x.sharepoint.com/sites/a", "unknown"),
            (
                "https://www.dropbox.com/scl/fi/a/b%20c.png?rlkey=x&dl=0#f",
                "dropbox: https://www.dropbox.com/scl/fi/a/b%20c.png?rlkey=x&dl=1",
            ),
            (
                "https://www.dropbox.com/scl/fo/a/b?rlkey=x",
                "dropbox: online-document",
            ),
            ("https://www.dropbox.com/login", "unknown"),
            (
                "https://app.box.com/s/abc",
                "box: https://app.box.com/shared/static/abc.png",
            ),
            ("https://app.box.com/s/a/b", "unknown"),
            ("https://xbox.com/s/abc", "unknown"),
            (
                "https://www.icloud.com/attachment/?u=https%3A%2F%2Fcvws.icloud-content.com%2FB%2F%24%7Bf%7D%3Fe%3D1%26k%3D%24%7Buk%7D&uk=a+b&f=a%2520b&sz=7",
                "mail-drop: https://cvws.icloud-content.com/B/a%20b?e=1&k=a%2Bb",
            ),
            (
                "https://www.icloud.com/attachment/?u=https%3A%2F%2Fevil.example%2F%3Fx.icloud-content.com&uk=a&f=a",
                "mail-drop: bad-url",
            ),
            (
                "https://www.icloud.com/attachment/?u=https%3A%2F%2Fcvws.icloud-content.com%2F%24%7Bf%7D&f=a",
                "mail-drop: missing-parameter",
            ),
        ] {
            assert_eq!(plain(page, Some("coast.png")), expected, "{page}");
        }
    }

    #[test]
    fn share_url_of_a_nextcloud_or_filelink_server_gives_the_file_url() {
        for (page, expected) in [
            (
                "https://c.example/s/AbC",
                "nextcloud https://c.example/s/AbC/download",
            ),
            (
                "https://c.example/x/index.php/s/AbC/?a=b",
                "nextcloud https://c.example/x/index.php/s/AbC/download?a=b",
            ),
            (
                "https://c.example/s/AbC/download",
                "nextcloud https://c.example/s/AbC/download",
            ),
            ("https://c.example/f/1", "filelink https://c.example/f/1"),
        ] {
            let (provider, link) = shared(&ServerUrl::parse(page).unwrap());
            assert_eq!(
                format!("{} {}", provider.word, link.plain.unwrap()),
                expected
            );
        }
    }
}

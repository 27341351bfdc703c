//! The page `embody.html` in Chromium, opened from `file:`. A server on 127.0.0.1 records all requests.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use embody::view::MailView;

use super::web::built;
use crate::common::browser::chromium;
use crate::common::devtools::Browser;

/// Time in which a page makes the requests that it makes.
const SETTLED: Duration = Duration::from_secs(2);

/// Recorded for a connection without a request.
const CONNECTION: &str = "(connection)";

/// A server that records the paths of all requests. It answers each with an empty document.
struct Recorder {
    port: u16,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let paths = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&paths);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let recorded = Arc::clone(&recorded);
                std::thread::spawn(move || answer(stream, &recorded));
            }
        });
        Self { port, paths }
    }

    /// Returns the paths that were requested, and forgets them.
    fn taken(&self) -> Vec<String> {
        let mut paths = std::mem::take(&mut *self.paths.lock().unwrap());
        paths.sort();
        paths.dedup();
        paths
    }
}

fn answer(mut stream: TcpStream, paths: &Mutex<Vec<String>>) {
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok();
    let mut request = [0; 4096];
    let read = stream.read(&mut request).unwrap_or(0);
    let text = String::from_utf8_lossy(&request[..read]);
    // A connection without a request counts as well: a preconnect tells the sender that the mail was opened.
    let path = text.split_ascii_whitespace().nth(1).unwrap_or(CONNECTION);
    paths.lock().unwrap().push(path.to_owned());
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
}

/// Opens a page in Chromium, waits until `ready` is true, and returns the browser.
fn opened(chromium: &Path, page: &str, ready: &str) -> Browser {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    fs::write(&file, page).unwrap();
    let mut browser = Browser::start(chromium);
    browser.open(&file);
    browser.wait_for(&format!("document.readyState === 'complete' && ({ready})"));
    browser
}

const IS_READY: &str = "document.documentElement.hasAttribute('data-ready')";

/// Returns the document after the page showed its mail.
fn shown(chromium: &Path, page: &str) -> String {
    let mut browser = opened(chromium, page, IS_READY);
    // A request may follow the display.
    std::thread::sleep(SETTLED);
    let document = browser.value("document.documentElement.outerHTML");
    document.as_str().unwrap().to_owned()
}

/// Returns the page with a mail in it, which it opens at once.
fn with_mail(page: &str, mail: &[u8]) -> String {
    let block = format!(
        "<script type=\"text/plain\" class=\"mail\" data-name=\"mail.eml\">{}</script>\n",
        STANDARD.encode(mail)
    );
    let at = page.rfind("<script>").unwrap();
    format!("{}{block}{}", &page[..at], &page[at..])
}

/// Kinds of references that a browser follows without a click, and some that it follows with one. `URL` is the server.
const HOSTILE: &[&str] = &[
    "<img src='URL/img'>",
    "<img srcset='URL/srcset 1x, URL/srcset2 2x'>",
    "<img lowsrc='URL/lowsrc' dynsrc='URL/dynsrc' src='URL/img2'>",
    "<picture><source srcset='URL/source'><img src='data:,'></picture>",
    "<input type=image src='URL/input'>",
    "<video poster='URL/poster' src='URL/video' autoplay></video>",
    "<video><source src='URL/video-source'><track src='URL/track' default></video>",
    "<audio src='URL/audio' autoplay preload=auto></audio>",
    "<iframe src='URL/iframe'></iframe>",
    "<iframe srcdoc='<img src=\"URL/srcdoc\">'></iframe>",
    "<frameset><frame src='URL/frame'></frameset>",
    "<object data='URL/object'></object>",
    "<object type='image/svg+xml' data='URL/object-svg'></object>",
    "<embed src='URL/embed'>",
    "<applet archive='URL/applet' code=x></applet>",
    "<script src='URL/script'></script>",
    "<script>new Image().src='URL/inline-script'; fetch('URL/fetch'); navigator.sendBeacon('URL/beacon')</script>",
    "<script type=module>import 'URL/module'</script>",
    "<img src=x onerror=\"new Image().src='URL/onerror'\">",
    "<svg onload=\"new Image().src='URL/onload'\"></svg>",
    "<details open ontoggle=\"fetch('URL/ontoggle')\">x</details>",
    "<link rel=stylesheet href='URL/stylesheet'>",
    "<link rel=icon href='URL/icon'>",
    "<link rel=preload as=image href='URL/preload'>",
    "<link rel=prefetch href='URL/prefetch'>",
    "<link rel=preconnect href='URL/'>",
    "<link rel=dns-prefetch href='URL/'>",
    "<link rel=modulepreload href='URL/modulepreload'>",
    "<link rel=prerender href='URL/prerender'>",
    "<link rel=manifest href='URL/manifest'>",
    "<link rel=import href='URL/import'>",
    "<style>@import 'URL/import-css';</style>",
    "<style>@import url(URL/import-css2);</style>",
    "<style>@\\69mport 'URL/import-escaped';</style>",
    "<style>body{background:url(URL/css-body)}</style>",
    "<style>p{background-image:u\\72l(URL/css-escaped)}</style>",
    "<style>p{background:url/**/(URL/css-comment)}</style>",
    "<style>p{background:image-set('URL/image-set' 1x)}</style>",
    "<style>p{background:-webkit-image-set(url(URL/webkit-image-set) 1x)}</style>",
    "<style>li{list-style-image:url('URL/list-style')}</style>",
    "<style>p::before{content:url(URL/content)}</style>",
    "<style>p{cursor:url(URL/cursor),auto}</style>",
    "<style>p{border-image:url(URL/border-image) 1}</style>",
    "<style>p{mask-image:url(URL/mask)}p{-webkit-mask-image:url(URL/webkit-mask)}</style>",
    "<style>p{filter:url(URL/filter#x)}</style>",
    "<style>p{shape-outside:url(URL/shape)}</style>",
    "<style>@font-face{font-family:f;src:url(URL/font)}p{font-family:f}</style>",
    "<style>@namespace x url(URL/namespace);</style>",
    "<style>p{--x:url(URL/variable);background:var(--x)}</style>",
    "<style>@media screen{p{background:url(URL/media)}}</style>",
    "<style>@supports(color:red){p{background:url(URL/supports)}}</style>",
    "<style>@layer{p{background:url(URL/layer)}}</style>",
    "<style></style/x>p{background:url(URL/odd-end)}</style>",
    "<p style='background:url(URL/style)'>x</p>",
    "<p style='background:url(&quot;URL/style-quoted&quot;)'>x</p>",
    "<table background='URL/table'><tr><td background='URL/td'>x</td></tr></table>",
    "<body background='URL/body'>",
    "<ul><li style='list-style:url(URL/li)'>x</ul>",
    "<svg><image href='URL/svg-image'/><image xlink:href='URL/svg-xlink'/></svg>",
    "<svg><use href='URL/svg-use#x'/></svg>",
    "<svg><feImage href='URL/fe-image'/></svg>",
    "<svg><style>text{background:url(URL/svg-style)}</style><text>x</text></svg>",
    "<svg><script href='URL/svg-script'></script></svg>",
    "<svg><a xlink:href='URL/svg-a'><text>x</text></a><set attributeName=href to='URL/svg-set'/></svg>",
    "<math><mtext><img src='URL/math'></mtext></math>",
    "<math href='URL/math-href'><mglyph src='URL/mglyph'></math>",
    "<noscript><img src='URL/noscript'></noscript>",
    "<noscript><p title='</noscript><img src=URL/mxss>'></noscript>",
    "<template><img src='URL/template'></template>",
    "<xmp></xmp><img src='URL/xmp'>",
    "<textarea></textarea><img src='URL/textarea'>",
    "<!--[if mso]><img src='URL/mso'><![endif]--><!--[if !mso]><!--><img src='URL/not-mso'><!--<![endif]-->",
    "<meta http-equiv=refresh content='0;url=URL/refresh'>",
    "<base href='URL/base/'><img src='relative'>",
    "<form action='URL/form' id=f><button autofocus>x</button></form><script>f.submit()</script>",
    "<a href='URL/a' ping='URL/ping'>x</a>",
    "<a href='javascript:fetch(\"URL/javascript\")' autofocus>x</a>",
    "<blockquote cite='URL/cite'><q cite='URL/q'>x</q></blockquote>",
    "<img src='//127.0.0.1:PORT/no-scheme'>",
    "<img src='http:&#x2f;/127.0.0.1:PORT/entity'>",
    "<img src='ht\ntp://127.0.0.1:PORT/newline'>",
    "<img/src='URL/slash'/onerror=x>",
    "<img src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='URL/data-svg'/></svg>\">",
    "<iframe src=\"data:text/html,<img src='URL/data-html'>\"></iframe>",
    "<portal src='URL/portal'></portal><fencedframe src='URL/fenced'></fencedframe>",
];

fn page_of(markups: &[&str], port: u16) -> String {
    let url = format!("http://127.0.0.1:{port}");
    let mut html = String::new();
    for (index, markup) in markups.iter().enumerate() {
        let markup = markup
            .replace("URL", &url)
            .replace("PORT", &port.to_string());
        writeln!(html, "<div id=d{index}><p>{index}</p>{markup}</div>").unwrap();
    }
    html
}

fn mail_of(html: &str) -> String {
    format!(
        "From: Mallory <m@example.org>\nSubject: a hostile mail\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n{html}"
    )
}

#[test]
fn hostile_mail_makes_no_request_in_the_page_but_many_without_it() {
    let test = "hostile_mail_makes_no_request_in_the_page_but_many_without_it";
    let Some(chromium) = chromium(test) else {
        return;
    };
    let Some(folder) = built(test) else { return };
    let recorder = Recorder::start();
    let html = page_of(HOSTILE, recorder.port);

    // The control: the same HTML as a page. A redirect and a form would replace the page before it has made all requests.
    let control: Vec<&str> = HOSTILE
        .iter()
        .copied()
        .filter(|markup| !markup.contains("refresh") && !markup.contains("form"))
        .collect();
    let browser = opened(&chromium, &page_of(&control, recorder.port), "true");
    std::thread::sleep(SETTLED);
    let leaked = recorder.taken();
    assert!(
        leaked.len() > 30,
        "the control made only these requests: {leaked:?}"
    );
    drop(browser);
    // The browser may have opened a connection that it did not use before it ended.
    std::thread::sleep(SETTLED);
    recorder.taken();

    let page = fs::read_to_string(folder.path().join("embody.html")).unwrap();
    let dom = shown(&chromium, &with_mail(&page, mail_of(&html).as_bytes()));
    assert!(
        dom.contains("<h1>a hostile mail</h1>") && dom.contains("srcdoc="),
        "the page did not show the mail"
    );
    assert_eq!(recorder.taken(), Vec::<String>::new());

    // The policies hold without the cleaning as well, except for connections without a request, which no policy can block.
    let unclean = page.replace("null : cleanHtml(html, picture)", "null : html");
    assert_ne!(unclean, page);
    let (_, script) = unclean.rsplit_once("<script>").unwrap();
    let (script, _) = script.split_once("</script>").unwrap();
    let digest = STANDARD.encode(<sha2::Sha256 as sha2::Digest>::digest(script.as_bytes()));
    let (before, rest) = unclean.split_once("'sha256-").unwrap();
    let (_, after) = rest.split_once('\'').unwrap();
    let unclean = format!("{before}'sha256-{digest}'{after}");
    let dom = shown(&chromium, &with_mail(&unclean, mail_of(&html).as_bytes()));
    assert!(
        dom.contains("srcdoc=") && dom.contains("/svg-image"),
        "the page did not show the mail"
    );
    let mut requests = recorder.taken();
    requests.retain(|path| path != CONNECTION);
    assert_eq!(requests, Vec::<String>::new());
}

#[test]
fn page_shows_the_mail_its_attachments_and_what_is_missing() {
    let test = "page_shows_the_mail_its_attachments_and_what_is_missing";
    let Some(chromium) = chromium(test) else {
        return;
    };
    let Some(folder) = built(test) else { return };
    let page = fs::read_to_string(folder.path().join("embody.html")).unwrap();
    let mail = "From: Ada <ada@example.org>\nTo: b@example.org\nSubject: =?utf-8?q?Caf=C3=A9?= <b>menu</b>\nMIME-Version: 1.0\n\
        Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nHello there.\n\
        --b\nContent-Type: application/pdf; name=\"menu.pdf\"\nContent-Disposition: attachment\n\n%PDF-1.4\n\
        --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/wine-list.txt\"\n\n\
        Content-Type: text/plain\n\n--b--\n";
    let dom = shown(&chromium, &with_mail(&page, mail.as_bytes()));
    for expected in [
        "<h1>Café &lt;b&gt;menu&lt;/b&gt;</h1>",
        "Ada &lt;ada@example.org&gt;",
        "Hello there.",
        "menu.pdf",
        "1 file is missing",
        "wine-list.txt",
        "embody filter --follow all --fetch https",
        "data-ready",
    ] {
        assert!(dom.contains(expected), "{expected} is not in the page");
    }
    let (_, shown) = dom.split_once("id=\"problems\"").unwrap();
    assert!(
        shown.starts_with(" role=\"alert\"></div>"),
        "{}",
        &shown[..200]
    );
}

#[test]
fn mailbox_is_listed_and_hostile_nesting_is_shown_as_text() {
    let test = "mailbox_is_listed_and_hostile_nesting_is_shown_as_text";
    let Some(chromium) = chromium(test) else {
        return;
    };
    let Some(folder) = built(test) else { return };
    let page = fs::read_to_string(folder.path().join("embody.html")).unwrap();
    let mbox = "From a@b Mon Jan  6 10:00:00 2020\nFrom: Ada <a@b>\nSubject: first\n\nx\n\nFrom a@b Mon Jan  6 10:00:00 2020\nFrom: Bob <b@b>\nSubject: second\n\ny\n";
    let dom = shown(&chromium, &with_mail(&page, mbox.as_bytes()));
    assert!(dom.contains("2 mails") && dom.contains(">first<") && dom.contains(">second<"));

    let deep = format!("{}deep{}", "<div>".repeat(20_000), "</div>".repeat(20_000));
    let dom = shown(&chromium, &with_mail(&page, mail_of(&deep).as_bytes()));
    assert!(dom.contains("nested too deeply") && dom.contains("data-ready"));
}

/// Chooses a file for the first missing one, saves the mail, and returns its bytes in base64.
const FILL: &str = r#"(async () => {
  const later = (condition) => new Promise((resolve) => {
    const wait = () => (condition() ? resolve() : setTimeout(wait, 20));
    wait();
  });
  document.querySelector(".reference button").click();
  const files = new DataTransfer();
  files.items.add(new File(["Merlot\n"], "wine.txt", { type: "text/plain" }));
  const chooser = document.getElementById("filler");
  chooser.files = files.files;
  chooser.dispatchEvent(new Event("change"));
  await later(() => document.getElementById("status").textContent.includes("wine.txt"));
  let saved = null;
  const made = URL.createObjectURL;
  URL.createObjectURL = (blob) => { saved = blob; return made(blob); };
  document.querySelector(".tools .primary").click();
  await later(() => saved !== null);
  const bytes = new Uint8Array(await saved.arrayBuffer());
  return btoa(String.fromCharCode(...bytes));
})()"#;

#[test]
fn saved_mail_contains_the_chosen_file_and_has_the_bytes_of_the_library() {
    let test = "saved_mail_contains_the_chosen_file_and_has_the_bytes_of_the_library";
    let Some(chromium) = chromium(test) else {
        return;
    };
    let Some(folder) = built(test) else { return };
    let page = fs::read_to_string(folder.path().join("embody.html")).unwrap();
    let mail = "Subject: menu\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHello.\n\
        --b\nContent-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/wine.txt\"\n\n\
        Content-Type: text/plain\n\n--b--\n";
    let mut browser = opened(&chromium, &with_mail(&page, mail.as_bytes()), IS_READY);
    let saved = STANDARD
        .decode(browser.value(FILL).as_str().unwrap())
        .unwrap();
    let mut view = MailView::new(mail, SystemTime::now());
    view.fill(0, "Merlot\n", Some("text/plain")).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&saved),
        String::from_utf8_lossy(&view.repaired())
    );
    assert!(!String::from_utf8_lossy(&saved).contains("external-body"));
}

//! The dashboard of a real coordinator, requested by a client that can send any request.

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use nqueens::cluster::auth::{Fingerprint, Role, client_config};
use nqueens::cluster::campaign::UnitResult;
use nqueens::cluster::coordinator::AddressFile;
use nqueens::cluster::protocol::{Channel, Security};
use nqueens::tally::{Parts, Residues};
use support::program::assert_refused;
use support::{
    Coordinator, NQUEENS, PATIENCE, Process, Scratch, Worker, authority, credentials, eventually,
    printed, submit,
};

const AT_ANY_PORT: [&str; 4] = ["--dashboard", "127.0.0.1:0", "--sync", "1s"];

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A browser that enforces no policy of its own.
struct Browser {
    address: String,
    /// The authority that the server must have; `None` for plain HTTP.
    pin: Option<Fingerprint>,
    cookie: Option<String>,
}

struct Response {
    code: u16,
    headers: Vec<(String, String)>,
    bytes: Vec<u8>,
    /// The head as text.
    body: String,
}

impl Response {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &value[..])
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Browser {
    /// Creates a browser for the dashboard of the coordinator in this folder.
    fn new(data: &Path, pin: Option<Fingerprint>) -> Self {
        let url = AddressFile::read(data).expect("it runs").dashboard.expect("it has one");
        let scheme = if pin.is_some() { "https://" } else { "http://" };
        let address =
            url.strip_prefix(scheme).and_then(|rest| rest.strip_suffix('/')).expect("a URL");
        Self { address: address.to_owned(), pin, cookie: None }
    }

    fn origin(&self) -> String {
        format!("{}://{}", if self.pin.is_some() { "https" } else { "http" }, self.address)
    }

    /// Sends exactly this request.
    fn send(&self, request: &str) -> BufReader<Box<dyn Stream>> {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        let mut stream: Box<dyn Stream> = match self.pin {
            None => Box::new(stream),
            Some(pin) => {
                let mut config = client_config(pin, None).expect("a configuration");
                config.alpn_protocols = vec![b"http/1.1".to_vec()];
                let name = "127.0.0.1".try_into().expect("a name");
                let client =
                    rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
                Box::new(rustls::StreamOwned::new(client, stream))
            }
        };
        stream.write_all(request.as_bytes()).expect("sent");
        BufReader::new(stream)
    }

    fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n",
            body.len()
        );
        if headers.iter().all(|(name, _)| *name != "Host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        let cookie = self.cookie.iter().map(|cookie| ("Cookie", &cookie[..]));
        for (name, value) in headers.iter().copied().chain(cookie) {
            request += &format!("{name}: {value}\r\n");
        }
        let mut stream = self.send(&format!("{request}\r\n{body}"));
        let (code, headers) = head(&mut stream);
        let mut bytes = Vec::new();
        // A server may close the connection without announcing it.
        let _ = stream.read_to_end(&mut bytes);
        let body = String::from_utf8_lossy(&bytes).into_owned();
        Response { code, headers, bytes, body }
    }

    fn get(&self, path: &str) -> Response {
        self.request("GET", path, &[], "")
    }

    /// Sends a POST request as the page does.
    fn post(&self, path: &str, body: &str) -> Response {
        let origin = self.origin();
        let headers = [("Origin", &origin[..]), ("Content-Type", "application/json")];
        self.request("POST", path, &headers, body)
    }

    /// Signs in with a new token for this role.
    fn sign_in(&mut self, coordinator: &Coordinator, role: &str, name: &str) -> u16 {
        let token = token(coordinator, role);
        let body = serde_json::json!({ "token": token, "name": name }).to_string();
        let answer = self.post("/sign-in", &body);
        if let Some(cookie) = answer.header("set-cookie") {
            for word in [
                "__Host-nqueens-",
                "; Path=/;",
                "HttpOnly",
                "Secure",
                "SameSite=Strict",
                "Max-Age=",
            ] {
                assert!(cookie.contains(word), "{cookie}");
            }
            self.cookie = Some(cookie.split(';').next().expect("a pair").to_owned());
        }
        answer.code
    }
}

fn head(stream: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).expect("a line");
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let code =
        lines.first().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect("a status");
    let pairs = lines[1..].iter().filter_map(|line| line.split_once(": "));
    (code, pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect())
}

fn token(coordinator: &Coordinator, role: &str) -> String {
    printed(&["token", "create", "--data", coordinator.data(), "--role", role]).trim().to_owned()
}

/// Returns the routes that need a session, and those that change something.
fn routes(job: &str) -> (Vec<String>, Vec<String>) {
    let looks = [
        "/app.js",
        "/elements.js",
        "/format.js",
        "/pictures.js",
        "/api/me",
        "/api/live",
        "/nothing",
    ]
    .map(str::to_owned);
    let of_job =
        ["", "/map/0", "/history/0", "/certificate"].map(|part| format!("/api/jobs/{job}{part}"));
    let changes = ["pause", "resume", "cancel"].map(|action| format!("/api/jobs/{job}/{action}"));
    let of_worker = ["drain", "release"].map(|action| format!("/api/workers/nobody/{action}"));
    (looks.into_iter().chain(of_job).collect(), changes.into_iter().chain(of_worker).collect())
}

#[tokio::test]
async fn without_a_session_only_the_sign_in_page_is_served_and_every_response_has_security_headers()
{
    let scratch = Scratch::new("door");
    let data = scratch.path("data");
    let pin = authority(&data).fingerprint();
    let coordinator = Coordinator::start(&data, &AT_ANY_PORT);
    let job = submit(&coordinator.channel(), 10, 0).await;
    let browser = Browser::new(&data, Some(pin));
    let checked = |answer: Response, code: u16, what: &str| {
        assert_eq!(answer.code, code, "{what}: {}", answer.body);
        let policy = answer.header("content-security-policy").expect(what);
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{what}");
        }
        answer
    };
    let (looks, changes) = routes(&job);
    for path in &looks {
        checked(browser.get(path), 401, path);
    }
    for path in changes.iter().map(String::as_str).chain(["/sign-out"]) {
        checked(browser.post(path, "{}"), 401, path);
    }
    assert_eq!(checked(browser.get("/"), 303, "/").header("location"), Some("/sign-in"));
    for path in ["/sign-in", "/sign-in.js", "/theme.js", "/style.css", "/icon.svg"] {
        let answer = checked(browser.get(path), 200, path);
        // The page has no inline scripts or styles, so the policy can forbid them.
        assert!(!answer.body.contains("style=") && !answer.body.contains("onclick"), "{path}");
    }
    assert_eq!(checked(browser.get("/sign-in/known"), 200, "known").json()["known"], false);
    // A forged cookie, one of another dashboard, and a malformed one.
    for cookie in [
        format!("__Host-nqueens-1={}", "a".repeat(52)),
        format!(
            "__Host-nqueens-{}={}",
            browser.address.rsplit_once(':').expect("a port").1,
            "a".repeat(52)
        ),
        "__Host-nqueens-=; =;;".to_owned(),
    ] {
        let browser = Browser {
            cookie: Some(cookie.clone()),
            address: browser.address.clone(),
            pin: Some(pin),
        };
        checked(browser.get("/api/me"), 401, &cookie);
    }
    // Another host name for this address gets nothing, not even the sign-in page.
    for host in ["evil.example", "localhost.evil.example:80"] {
        checked(browser.request("GET", "/sign-in", &[("Host", host)], ""), 421, host);
    }
}

#[tokio::test]
async fn viewers_read_operators_control_and_cross_site_requests_are_refused() {
    let scratch = Scratch::new("steering");
    let data = scratch.path("data");
    let pin = authority(&data).fingerprint();
    let coordinator = Coordinator::start(&data, &AT_ANY_PORT);
    let job = submit(&coordinator.channel(), 10, 0).await;
    let (looks, changes) = routes(&job);
    let (mut viewer, mut operator) =
        (Browser::new(&data, Some(pin)), Browser::new(&data, Some(pin)));
    assert_eq!(Browser::new(&data, Some(pin)).sign_in(&coordinator, "worker", ""), 401);
    assert_eq!(viewer.sign_in(&coordinator, "viewer", "watcher"), 204);
    assert_eq!(operator.sign_in(&coordinator, "operator", "watcher"), 401, "the name is another's");
    assert_eq!(operator.sign_in(&coordinator, "operator", "Anna!"), 400, "no name");
    assert_eq!(operator.sign_in(&coordinator, "operator", "anna"), 204);

    let me = viewer.get("/api/me").json();
    assert_eq!((&me["name"], &me["may_control"]), (&"watcher".into(), &false.into()));
    let absent = |path: &String| path == "/nothing" || path.ends_with("/certificate");
    for path in looks.iter().filter(|path| *path != "/api/live") {
        assert_eq!(viewer.get(path).code, if absent(path) { 404 } else { 200 }, "{path}");
    }
    let report = viewer.get(&format!("/api/jobs/{job}")).json();
    assert_eq!((&report["n"], &report["state"]), (&10.into(), &"running".into()));
    let map = viewer.get(&format!("/api/jobs/{job}/map/0")).json();
    assert_eq!(map["units"], report["units"]);
    for path in &changes {
        assert_eq!(viewer.post(path, "{}").code, 403, "{path}");
    }

    // A request that does not come from the page changes nothing, whatever its cookie.
    let pause = format!("/api/jobs/{job}/pause");
    let own = operator.origin();
    let kind = ("Content-Type", "application/json");
    for (headers, code) in [
        (vec![kind], 403),
        (vec![kind, ("Origin", "https://evil.example")], 403),
        (vec![kind, ("Origin", "null")], 403),
        (vec![kind, ("Origin", &own[..]), ("Sec-Fetch-Site", "cross-site")], 403),
        (vec![("Origin", &own[..])], 415),
        (vec![("Origin", &own[..]), ("Content-Type", "text/plain")], 415),
    ] {
        assert_eq!(operator.request("POST", &pause, &headers, "{}").code, code, "{headers:?}");
    }
    assert_eq!(
        coordinator.last_job().await.state(),
        nqueens::cluster::protocol::v1::JobState::Running
    );
    assert_eq!(operator.get(&pause).code, 405, "GET changes nothing");
    let changed = operator.post(&pause, "{}");
    assert_eq!((changed.code, &changed.json()["job"]), (200, &job[..].into()));
    assert_eq!(
        coordinator.last_job().await.state(),
        nqueens::cluster::protocol::v1::JobState::Paused
    );
    for action in ["drain", "release"] {
        assert_eq!(
            operator.post(&format!("/api/workers/nobody/{action}"), "{}").code,
            404,
            "{action}"
        );
    }
    assert_eq!(operator.post(&format!("/api/jobs/{}/pause", "0".repeat(32)), "{}").code, 404);
    assert_eq!(
        operator.post(&format!("/api/jobs/{}/pause", &job[..8]), "{}").code,
        404,
        "whole names only"
    );
    assert_eq!(operator.post("/sign-in", &"x".repeat(10_000)).code, 413);
}

#[tokio::test]
async fn sessions_survive_a_restart_and_end_by_revocation_or_sign_out() {
    let scratch = Scratch::new("sessions");
    let data = scratch.path("data");
    let pin = authority(&data).fingerprint();
    let mut coordinator = Coordinator::start(&data, &AT_ANY_PORT);
    let first = Browser::new(&data, Some(pin)).address;
    let (mut anna, mut bert) = (Browser::new(&data, Some(pin)), Browser::new(&data, Some(pin)));
    let one_use = token(&coordinator, "viewer");
    let body = serde_json::json!({ "token": one_use }).to_string();
    let bought = bert.post("/sign-in", &body);
    bert.cookie =
        bought.header("set-cookie").and_then(|cookie| Some(cookie.split(';').next()?.to_owned()));
    assert_eq!((bought.code, bert.get("/api/me").code), (204, 200));
    assert_eq!(bert.post("/sign-in", &body).code, 401, "the token is used up");
    assert_eq!(anna.sign_in(&coordinator, "operator", "anna"), 204);
    let register =
        std::fs::read_to_string(data.join("authority").join("register")).expect("readable");
    let secret = anna
        .cookie
        .as_ref()
        .and_then(|cookie| Some(cookie.split_once('=')?.1.to_owned()))
        .expect("one");
    assert!(!register.contains(&secret), "the secret is on no disk");
    let listed: serde_json::Value =
        serde_json::from_str(&printed(&["token", "list", "--data", coordinator.data(), "--json"]))
            .expect("JSON");
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(2));

    coordinator.restart();
    // It has another port now, and cookies are named by port.
    let again = Browser::new(&data, Some(pin)).address;
    for browser in [&mut anna, &mut bert] {
        let port = |address: &str| address.rsplit_once(':').expect("a port").1.to_owned();
        browser.cookie = browser.cookie.as_ref().map(|c| c.replace(&port(&first), &port(&again)));
        browser.address = again.clone();
        assert_eq!(browser.get("/api/me").code, 200);
    }
    assert_eq!(anna.get("/sign-in/known").json()["known"], true);

    // The event stream of a revoked session ends too.
    let cookie = anna.cookie.clone().expect("one");
    let request =
        format!("GET /api/live HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n\r\n", anna.address);
    let mut stream = anna.send(&request);
    let (code, headers) = head(&mut stream);
    assert_eq!(code, 200);
    assert!(
        headers.iter().any(|(name, value)| name == "content-type" && value == "text/event-stream")
    );
    let mut next_event = || loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).expect("a line") > 0, "the stream has ended");
        if let Some(event) = line.strip_prefix("event: ") {
            return event.trim().to_owned();
        }
    };
    assert_eq!(next_event(), "all");
    assert_eq!(next_event(), "change");
    let printed_ = printed(&["revoke", "--data", coordinator.data(), "anna"]);
    assert!(printed_.contains("1 session of anna revoked"), "{printed_}");
    while next_event() != "over" {}
    assert_eq!(anna.get("/api/me").code, 401);

    let out = bert.post("/sign-out", "{}");
    assert_eq!(
        (out.code, out.header("set-cookie").map(|c| c.contains("Max-Age=0"))),
        (204, Some(true))
    );
    assert_eq!(bert.get("/api/me").code, 401, "the remaining cookie is invalid");
}

#[tokio::test]
async fn an_operator_can_release_a_quarantined_worker() {
    let scratch = Scratch::new("release");
    let data = scratch.path("data");
    let authority = authority(&data);
    let coordinator = Coordinator::start(&data, &AT_ANY_PORT);
    submit(&coordinator.channel(), 9, 0).await;
    let liar = credentials(&authority, "liar", Role::Worker);
    let security = Security::Tls(authority.fingerprint(), Some(Box::new(liar)));
    let mut liar = Worker::new(
        "liar",
        Channel::new(&coordinator.address, &security, PATIENCE).expect("a channel"),
    );
    liar.sync().await.expect("leases");
    // A count that its own residues contradict.
    let lie = |completion: &mut UnitResult| {
        completion.parts = Parts::default();
        completion.parts.add(24, 5u64, Residues::of(6), 0u64).expect("small");
    };
    liar.work(lie).await.expect("a verdict");

    let mut operator = Browser::new(&data, Some(authority.fingerprint()));
    assert_eq!(operator.sign_in(&coordinator, "operator", "anna"), 204);
    let release = "/api/workers/liar/release";
    assert_eq!((operator.post(release, "{}").code, operator.post(release, "{}").code), (200, 404));
    assert!(liar.sync().await.expect("it can sync again") > 0, "and gets leases");
}

#[test]
fn a_viewer_can_download_the_certificate_of_a_proof() {
    let scratch = Scratch::new("certificate");
    let data = scratch.path("data");
    let pin = authority(&data).fingerprint();
    let coordinator = Coordinator::start(&data, &AT_ANY_PORT);
    let mut viewer = Browser::new(&data, Some(pin));
    assert_eq!(viewer.sign_in(&coordinator, "viewer", "watcher"), 204);
    let token = token(&coordinator, "worker");
    let join = coordinator.address.to_string();
    let mut worker = Command::new(NQUEENS);
    worker.args([
        "worker",
        "--threads",
        "1",
        "--device",
        "cpu",
        "--join",
        &join,
        "--token",
        &token,
    ]);
    worker.args(["--log-level", "error", "--data"]).arg(scratch.path("worker"));
    let _worker =
        Process(worker.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("starts"));
    for (what, n, name) in
        [("first", "20", "first-20.proof"), ("beautiful", "20", "beautiful-20.proof")]
    {
        let submit = ["submit", what, n, "--data", coordinator.data(), "--json"];
        let report: serde_json::Value = serde_json::from_str(&printed(&submit)).expect("JSON");
        let path = format!("/api/jobs/{}/certificate", report["job"].as_str().expect("a name"));
        let answer = eventually("certificate", || {
            let answer = viewer.get(&path);
            // Before there is a certificate, the response says so.
            assert!(matches!(answer.code, 200 | 409), "{}: {}", answer.code, answer.body);
            (answer.code == 200).then_some(answer)
        });
        assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
        let attached = format!("attachment; filename=\"{name}\"");
        assert_eq!(answer.header("content-disposition"), Some(&attached[..]));
        let file = scratch.file(name);
        std::fs::write(&file, dechunked(&answer)).expect("writable");
        assert!(printed(&["check", &file]).starts_with("proved: "), "{what}");
        assert_eq!(viewer.post(&path, "{}").code, 405, "it is read-only");
        assert_eq!(viewer.request("GET", &path, &[("Host", "evil.example")], "").code, 421);
    }
}

/// Returns the bytes of a chunked response.
fn dechunked(answer: &Response) -> Vec<u8> {
    if answer.header("transfer-encoding") != Some("chunked") {
        return answer.bytes.clone();
    }
    let (mut whole, mut rest) = (Vec::new(), &answer.bytes[..]);
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").expect("a line");
        let size = std::str::from_utf8(&rest[..end])
            .ok()
            .and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.expect("a size");
        if size == 0 {
            return whole;
        }
        whole.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
}

#[test]
fn sign_in_attempts_are_limited() {
    let scratch = Scratch::new("tries");
    let data = scratch.path("data");
    let pin = authority(&data).fingerprint();
    let _coordinator = Coordinator::start(&data, &AT_ANY_PORT);
    let browser = Browser::new(&data, Some(pin));
    let wrong = serde_json::json!({ "token": "nqt1.wrong" }).to_string();
    let codes: Vec<u16> = (0..12).map(|_| browser.post("/sign-in", &wrong).code).collect();
    assert_eq!((codes[0], codes[11]), (401, 429), "{codes:?}");
    assert_eq!(browser.get("/sign-in").code, 200);
}

#[test]
fn an_unfinished_request_times_out() {
    let scratch = Scratch::new("unfinished");
    let data = scratch.path("data");
    let pin = authority(&data).fingerprint();
    let _coordinator = Coordinator::start(&data, &AT_ANY_PORT);
    let browser = Browser::new(&data, Some(pin));
    let unfinished = |path: &str| {
        let mut stream = browser.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nOrigin: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
            browser.address,
            browser.origin()
        ));
        head(&mut stream).0
    };
    assert_eq!(unfinished("/sign-in"), 408);
    // An attempt over the limit is refused before the body has arrived.
    let wrong = serde_json::json!({ "token": "nqt1.wrong" }).to_string();
    while browser.post("/sign-in", &wrong).code != 429 {}
    assert_eq!(unfinished("/sign-in"), 429);
}

#[test]
fn a_session_has_a_limited_number_of_streams() {
    let scratch = Scratch::new("streams");
    let data = scratch.path("data");
    let pin = authority(&data).fingerprint();
    let coordinator = Coordinator::start(&data, &AT_ANY_PORT);
    let (mut anna, mut bert) = (Browser::new(&data, Some(pin)), Browser::new(&data, Some(pin)));
    assert_eq!(anna.sign_in(&coordinator, "viewer", "anna"), 204);
    assert_eq!(bert.sign_in(&coordinator, "viewer", "bert"), 204);
    let watch = |browser: &Browser| {
        let cookie = browser.cookie.as_ref().expect("one");
        let mut stream = browser.send(&format!(
            "GET /api/live HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\n\r\n",
            browser.address
        ));
        (head(&mut stream).0, stream)
    };
    let mut open: Vec<_> = (0..8).map(|_| watch(&anna)).collect();
    assert!(open.iter().all(|(code, _)| *code == 200));
    assert_eq!(watch(&anna).0, 429, "a ninth");
    assert_eq!(watch(&bert).0, 200, "another has streams of their own");
    // A stream that ends frees its slot.
    open.pop();
    let began = std::time::Instant::now();
    while watch(&anna).0 != 200 {
        assert!(began.elapsed() < PATIENCE, "its slot is still taken");
    }
}

/// Writes the files of the page to play with, as far as a server needs them.
fn play_folder(folder: &Path) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/play/page");
    fs::create_dir_all(folder).expect("a folder");
    for entry in fs::read_dir(page).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, folder.join(path.file_name().expect("a name"))).expect("copied");
    }
    for name in ["nqueens-play.wasm", "theme.js", "icon.svg", "secret"] {
        fs::write(folder.join(name), name).expect("written");
    }
}

#[test]
fn the_page_to_play_with_needs_no_session_and_only_its_own_files_are_served() {
    let scratch = Scratch::new("play");
    let (data, folder) = (scratch.path("data"), scratch.path("play"));
    play_folder(&folder);
    let pin = authority(&data).fingerprint();
    let play = ["--play", folder.to_str().expect("UTF-8")];
    let coordinator = Coordinator::start(&data, &[&AT_ANY_PORT[..], &play].concat());
    let browser = Browser::new(&data, Some(pin));
    let moved = browser.get("/play");
    assert_eq!((moved.code, moved.header("location")), (303, Some("/play/")));
    for (path, kind) in [
        ("/play/", "text/html"),
        ("/play/main.js", "text/javascript"),
        ("/play/style.css", "text/css"),
        ("/play/nqueens-play.wasm", "application/wasm"),
    ] {
        let answer = browser.get(path);
        assert_eq!(answer.code, 200, "{path}");
        assert!(
            answer.header("content-type").is_some_and(|found| found.starts_with(kind)),
            "{path}"
        );
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.contains("script-src 'self' 'wasm-unsafe-eval';"), "{policy}");
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    assert_eq!(browser.get("/play/nqueens-play.wasm").body, "nqueens-play.wasm");
    // Other paths need a session, like all others of the dashboard.
    for path in [
        "/play/secret",
        "/play/../secret",
        "/play/..%2fsecret",
        "/play//secret",
        "/play/index.html/",
    ] {
        assert_eq!(browser.get(path).code, 401, "{path}");
    }
    assert_eq!(browser.request("GET", "/play/", &[("Host", "evil.example")], "").code, 421);
    assert_eq!(browser.get("/").code, 303);
    drop(coordinator);

    fs::remove_file(folder.join("worker.js")).expect("it was there");
    let other = scratch.path("other");
    let other = other.to_str().expect("UTF-8");
    let command = ["coordinator", "--data", other, "--dashboard", "127.0.0.1:0", play[0], play[1]];
    assert_refused(&command, 7, &["worker.js", "build the folder with crates/play/build.sh"]);
    assert_refused(&["coordinator", "--data", other, play[0], play[1]], 2, &["--dashboard"]);
}

#[test]
fn without_an_authority_the_dashboard_is_local_and_still_same_origin_only() {
    let scratch = Scratch::new("open");
    let data = scratch.path("data");
    let coordinator = Coordinator::start(&data, &AT_ANY_PORT);
    let browser = Browser::new(&data, None);
    assert_eq!(browser.get("/").code, 200);
    assert_eq!(browser.get("/api/me").json()["may_control"], true);
    assert_eq!(browser.request("GET", "/", &[("Host", "evil.example")], "").code, 421);
    let drain = "/api/workers/nobody/drain";
    let headers = [("Content-Type", "application/json"), ("Origin", "http://evil.example")];
    assert_eq!(browser.request("POST", drain, &headers, "{}").code, 403);
    assert_eq!(browser.post(drain, "{}").code, 404);
    drop(coordinator);
    let other = scratch.path("other");
    let other = other.to_str().expect("UTF-8");
    assert_refused(
        &["coordinator", "--data", other, "--dashboard", "0.0.0.0:0"],
        2,
        &["--dashboard 0.0.0.0:0 is reachable from other machines"],
    );
    assert_refused(
        &["cluster", "8", "--dashboard", "0.0.0.0:0"],
        2,
        &["--dashboard 0.0.0.0:0 is reachable from other machines"],
    );
}

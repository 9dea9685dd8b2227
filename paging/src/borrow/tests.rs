//! Recruiters made by the tests, on sockets: requests to them, and the handling of their answers.

use super::*;
use gleaner_schemas::lending::{LeaseRequest, RefusalKind};
use gleaner_trust::{Authority, ClientPaths, ClientTrust, Role, ServerPaths, ServerTrust};
use rustls::{ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const ID: &str = "0123456789abcdef0123456789abcdef";
const GENERATION: u64 = 7;

/// Answers one request after another, each on a connection of its own. Returns the requests: request line and
/// headers, then the body.
fn recruiter(answers: Vec<(u16, String)>) -> (String, JoinHandle<Vec<String>>) {
    let (listener, address) = listen();
    let serve_one = move |answer| serve(listener.accept().unwrap().0, answer);
    let served = thread::spawn(move || answers.into_iter().map(serve_one).collect());
    (format!("http://{address}"), served)
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn serve(stream: impl Read + Write, (status, body): (u16, String)) -> String {
    let mut reader = BufReader::new(stream);
    let mut asked = String::new();
    let mut bytes = 0;
    loop {
        let from = asked.len();
        reader.read_line(&mut asked).unwrap();
        let line = asked[from..].to_lowercase();
        if let Some(said) = line.strip_prefix("content-length:") {
            bytes = said.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut document = vec![0; bytes];
    reader.read_exact(&mut document).unwrap();
    asked.push_str(&String::from_utf8(document).unwrap());
    let head = format!("HTTP/1.1 {status} x\r\nConnection: close\r\n");
    let length = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let _ = reader.get_mut().write_all((head + &length).as_bytes()); // the client may hang up
    asked
}

fn recruiters(urls: &[&str]) -> Recruiters {
    try_recruiters(urls).unwrap()
}

fn try_recruiters(urls: &[&str]) -> Result<Recruiters, BorrowError> {
    Recruiters::new(Settings {
        urls: urls.iter().map(|url| (*url).to_owned()).collect(),
        trust: None,
        client: Some("pager".to_owned()),
        patience: Duration::from_secs(60),
    })
}

fn lease(bytes: u64) -> String {
    format!(
        r#"{{"lease_id": "{ID}", "generation": {GENERATION}, "client": "pager", "key": "k", "granted_bytes": {bytes},
        "remaining_bytes": {bytes}, "expires_in_ms": 60000, "host_id": "h", "address": "192.0.2.1:10809", "is_reachable": true}}"#
    )
}

fn leases(of: &[String]) -> String {
    format!(r#"{{"leases": [{}]}}"#, of.join(","))
}

fn refusal(kind: &str) -> String {
    format!(
        r#"{{"type": "urn:gleaner:refusal:{kind}", "title": "x", "status": 503, "detail": "not\u001b[2Jnow", "kind": "{kind}", "retry_in_ms": 1500}}"#
    )
}

fn request() -> LeaseRequest {
    LeaseRequest::new(4096, "k".to_owned())
}

/// Returns an address at which nothing listens any more.
fn nowhere() -> String {
    format!("http://{}", listen().1)
}

#[test]
fn a_lease_is_asked_for_renewed_listed_and_given_back() {
    let (url, served) = recruiter(vec![
        (201, leases(&[lease(2 << 20)])),
        (200, lease(2 << 20)),
        (200, leases(&[lease(2 << 20)])),
        (204, String::new()),
    ]);
    let recruiters = recruiters(&[&format!("{url}/")]);
    let granted = recruiters.lease(&request()).unwrap().remove(0);
    assert_eq!(granted.address.as_deref(), Some("192.0.2.1:10809"));
    assert_eq!(
        (granted.lease.generation, granted.lease.remaining_bytes),
        (7, 2 << 20)
    );
    assert_eq!(recruiters.renew(ID, 30_000).unwrap(), granted);
    assert_eq!(recruiters.leases().unwrap(), [granted]);
    recruiters.release(ID).unwrap();
    let asked = served.join().unwrap();
    for (asked, line) in asked.iter().zip([
        "POST /v1/leases HTTP".to_owned(),
        format!("POST /v1/leases/{ID}/renew HTTP"),
        "GET /v1/leases HTTP".to_owned(),
        format!("DELETE /v1/leases/{ID} HTTP"),
    ]) {
        assert!(asked.starts_with(&line), "{asked}");
        assert!(asked.to_lowercase().contains("gleaner-client: pager\r\n"));
    }
    let body = |asked: &str| {
        let (_, body) = asked.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).unwrap()
    };
    let expected = json!({"bytes": 4096, "copies": 1, "key": "k", "term_ms": 60_000});
    assert_eq!(body(&asked[0]), expected);
    assert_eq!(body(&asked[1]), json!({"term_ms": 30_000}));
}

#[test]
fn by_tls_both_are_who_they_say_and_new_certificates_are_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let authority = Authority::init(&file("pki"), "here", 1).unwrap();
    let issue = |role: &Role, name: &str| {
        let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
        let issued = authority.issue(role, 1).unwrap();
        issued.write(&file(&certificate), &file(&key)).unwrap();
        (file(&certificate), file(&key))
    };
    let names = vec!["127.0.0.1".to_owned()];
    let (certificate, key) = issue(&Role::Recruiter { names }, "recruiter");
    let paths = ServerPaths {
        certificate,
        key,
        authority: authority.certificate_path(),
        revocation_list: None,
    };
    let tls = ServerTrust::load(&paths).unwrap().config();
    let (listener, address) = listen();
    let served = thread::spawn(move || {
        let shown = |body: String| {
            let stream = listener.accept().unwrap().0;
            let mut connection = ServerConnection::new(tls.clone()).unwrap();
            let mut stream = stream;
            connection.complete_io(&mut stream).unwrap();
            let certificate = connection.peer_certificates().unwrap()[0].clone();
            serve(StreamOwned::new(connection, stream), (200, body));
            certificate
        };
        [shown(leases(&[])), shown(leases(&[]))]
    });
    let client = Role::Client {
        name: "pager".to_owned(),
    };
    let (certificate, key) = issue(&client, "client");
    let paths = ClientPaths {
        certificate,
        key,
        authority: authority.certificate_path(),
    };
    let recruiters = Recruiters::new(Settings {
        urls: vec![format!("https://{address}")],
        trust: Some(ClientTrust::load(&paths).unwrap()),
        client: None,
        patience: Duration::from_secs(60),
    });
    let recruiters = recruiters.unwrap();
    recruiters.leases().unwrap();
    issue(&client, "client");
    recruiters.leases().unwrap();
    let [first, second] = served.join().unwrap();
    assert_ne!(first, second);
}

#[test]
fn the_next_one_is_asked_where_one_does_not_answer_and_first_from_then_on() {
    let (url, served) = recruiter(vec![
        (200, leases(&[lease(2 << 20)])),
        (503, refusal("no_memory")),
    ]);
    let (other, _still_listens) = recruiter(vec![(503, refusal("starting"))]);
    let recruiters = recruiters(&[&nowhere(), &other, &url]);
    recruiters.lease(&request()).unwrap();
    // A refusal that concerns all hosts would be the same everywhere: no other recruiter is asked.
    match recruiters.lease(&request()).unwrap_err() {
        BorrowError::Refused { url: by, refusal } => {
            assert_eq!((by, refusal.kind), (url, RefusalKind::NoMemory));
            assert_eq!(refusal.retry_in_ms, Some(1500));
            assert_eq!(refusal.detail, "not?[2Jnow");
        }
        other => panic!("{other}"),
    }
    served.join().unwrap();
}

#[test]
fn a_refusal_says_more_than_silence() {
    let (url, _served) = recruiter(vec![(503, refusal("starting"))]);
    let failed = recruiters(&[&url, &nowhere()]).lease(&request());
    assert!(matches!(failed, Err(BorrowError::Refused { .. })));
    let failed = recruiters(&[&nowhere()]).lease(&request());
    assert!(matches!(failed, Err(BorrowError::Unreachable { .. })));
}

#[test]
fn who_never_answers_is_given_up() {
    let (_listener, address) = listen(); // the kernel accepts connections, and nobody answers them
    let settings = Settings {
        urls: vec![format!("http://{address}")],
        trust: None,
        client: None,
        patience: Duration::from_millis(200),
    };
    let began = Instant::now();
    let failed = Recruiters::new(settings).unwrap().leases();
    assert!(matches!(failed, Err(BorrowError::Unreachable { .. })));
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn what_no_recruiter_says_is_not_believed() {
    for (status, body) in [
        (200, "<html>".to_owned()),
        (502, "<html>".to_owned()),
        (302, refusal("no_memory")),
        (200, leases(&[])),
        (200, leases(&[lease(2 << 20), lease(2 << 20)])),
        (200, leases(&[lease(1024)])),
        (200, leases(&[lease(2 << 20).replace(ID, "../../x")])),
        (204, String::new()),
        (503, r#"{"error": "x"}"#.to_owned()),
        (200, " ".repeat(17 << 20)),
    ] {
        let (url, _served) = recruiter(vec![(status, body.clone())]);
        let failed = recruiters(&[&url]).lease(&request());
        let is_foreign = matches!(failed, Err(BorrowError::Foreign { .. }));
        assert!(is_foreign, "{status} {:.40}: {failed:?}", body);
    }
    let (url, _served) = recruiter(vec![(200, lease(4096).replace(ID, &ID.replace('0', "1")))]);
    let failed = recruiters(&[&url]).renew(ID, 1000);
    assert!(matches!(failed, Err(BorrowError::Foreign { .. })));
}

#[test]
fn plain_http_never_leaves_this_machine_and_ids_lead_nowhere_else() {
    for url in ["http://127.0.0.1:1", "http://[::1]:1/", "http://localhost"] {
        try_recruiters(&[url]).unwrap();
    }
    for (url, why) in [
        ("http://192.0.2.1:1", "use https://"),
        ("http://localhost.example", "use https://"),
        ("https://192.0.2.1:1", "certificate"),
        ("http://127.0.0.1:1/x", "leave out"),
        ("http://me@127.0.0.1:1", "leave out"),
        ("127.0.0.1:1", "is no address"),
        ("", "is no address"),
    ] {
        let failed = try_recruiters(&[url]).err().unwrap().to_string();
        assert!(failed.contains(why), "{url}: {failed}");
    }
    assert!(try_recruiters(&[]).is_err());
    for id in ["", "x", "../hosts", &ID.to_uppercase()] {
        let failed = recruiters(&[&nowhere()]).release(id);
        assert!(matches!(failed, Err(BorrowError::NoLease { .. })), "{id}");
    }
}

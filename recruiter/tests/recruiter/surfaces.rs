//! Tests of the command line, and of the documents that it prints.

use crate::hosts::Host;
use crate::running::{GIB, MIB, QUICK, Recruiter, asked, program};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(program()).args(args).output().unwrap()
}

#[track_caller]
fn fails(args: &[&str], code: i32, words: &[&str]) {
    let output = run(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
}

#[test]
fn what_cannot_be_served_is_said_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recruiter.toml");
    let file = file.to_str().unwrap();
    let nowhere = "forecasts = \"/nowhere/findings.json\"\nlocal_listen = \"127.0.0.1:0\"";
    std::fs::write(file, nowhere).unwrap();
    let words = ["/nowhere/findings.json"];
    fails(&["run", "--config", file], 1, &words);
    std::fs::write(folder.path().join("findings.json"), "{}").unwrap();
    let none = folder.path().join("findings.json");
    std::fs::write(file, "local_listen = \"127.0.0.1:0\"").unwrap();
    fails(
        &[
            "run",
            "--config",
            file,
            "--forecasts",
            none.to_str().unwrap(),
        ],
        1,
        &["findings.json", "gleaner analyze"],
    );
    fails(&["run", "--listen", "nowhere"], 2, &["--listen"]);
    fails(
        &["status", "--url", "http://127.0.0.1:1"],
        3,
        &["http://127.0.0.1:1", "does not answer"],
    );
    fails(&["status", "--url", "https://localhost:1"], 3, &["http://"]);
}

#[test]
fn help_has_examples_and_exit_codes() {
    for args in [&["--help"][..], &["run", "--help"], &["status", "--help"]] {
        let output = run(args);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success());
        assert!(
            text.contains("Examples:") && text.contains("xit codes"),
            "{text}"
        );
    }
}

#[test]
fn the_status_is_for_people_and_for_programs() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let host = Host::new(1, GIB).link(&recruiter.url);
    recruiter.ready(1);
    assert_eq!(recruiter.lease("pager", &asked(MIB, "a")).status, 201);
    let output = run(&["status", "--url", &recruiter.url]);
    let text = String::from_utf8(output.stdout).unwrap();
    for word in [
        "1 host, 1 linked",
        "1.0 GiB",
        &host.id,
        "pager",
        "idle",
        "2.0 MiB",
    ] {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
    let output = run(&["status", "--url", &recruiter.url, "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["hosts"][0]["quota"]["quota_bytes"], GIB);
    assert_eq!(json["leases"]["leases"][0]["client"], "pager");
}

#[test]
fn the_openapi_document_is_served_and_printed_alike() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let served = recruiter.get("/openapi.json").body;
    let printed: Value = serde_json::from_slice(&run(&["openapi"]).stdout).unwrap();
    assert_eq!(served, printed);
    let paths = served["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 12);
    // Each operation describes its refusals, all of which have the same form.
    for (path, methods) in paths {
        for (method, operation) in methods.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            for (status, response) in responses.iter().filter(|(s, _)| s.as_str() >= "400") {
                let content = &response["content"]["application/problem+json"];
                assert!(content.is_object(), "{method} {path} {status}");
            }
        }
    }
}

#[test]
fn a_web_page_on_the_recruiters_machine_can_neither_ask_nor_link() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let _host = Host::new(1, GIB).link(&recruiter.url);
    recruiter.ready(1);
    let say = |head: &str, body: &str| {
        let mut socket = TcpStream::connect(recruiter.url.rsplit('/').next().unwrap()).unwrap();
        let length = body.len();
        let words = format!(
            "{head}\r\nConnection: close, Upgrade\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        socket.write_all(words.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    };
    let page = "Host: localhost\r\nOrigin: https://evil.example";
    let link = format!(
        "GET /v1/hosts/{:032x}/link HTTP/1.1\r\n{page}\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        7
    );
    for answer in [
        say(&link, ""),
        say(&format!("POST /v1/leases HTTP/1.1\r\n{page}"), "{}"),
        say("GET /v1/quotas HTTP/1.1\r\nHost: evil.example", ""),
    ] {
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        assert!(answer.contains("application/problem+json"), "{answer}");
    }
    // A body above the size limit is refused.
    let long = format!("{{\"bytes\": 1, \"key\": \"{}\"}}", "x".repeat(100_000));
    let head = "POST /v1/leases HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    let answer = say(head, &long);
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("application/problem+json"), "{answer}");
}

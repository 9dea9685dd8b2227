use super::*;

fn judged(url: &str, end: Result<End, Trouble>) -> Vec<Finding> {
    let way = Approach {
        url: url.to_owned(),
        address: Address::parse(url).ok(),
        steps: vec!["connected in 1 ms".to_owned()],
        end,
    };
    let remedies = NetworkRemedies {
        server: "collector",
        start: "start".to_owned(),
        enrol: "enrol".to_owned(),
        address: "edit".to_owned(),
    };
    judge(&way, &remedies)
}

#[test]
fn each_step_has_its_own_trouble_and_remedy() {
    let url = "https://c.example:7443";
    let answered = |status| {
        Ok(End::Answered {
            status,
            difference_ms: None,
        })
    };
    for (end, message, remedy) in [
        (answered(200), None, ""),
        (Ok(End::Connected), None, ""),
        (answered(403), Some(Message::HostRefused), "enrol"),
        (
            answered(500),
            Some(Message::AnswerWrong),
            "ssh c.example sudo gleaner doctor collector",
        ),
        (
            Err(Trouble::Address("x".to_owned())),
            Some(Message::AddressWrong),
            "edit",
        ),
        (
            Err(Trouble::Unresolved("x".to_owned())),
            Some(Message::NameUnresolved),
            "getent ahosts c.example",
        ),
        (
            Err(Trouble::Refused),
            Some(Message::ConnectionRefused),
            "ssh c.example sudo systemctl start gleaner-collector",
        ),
        (
            Err(Trouble::Timeout("connection")),
            Some(Message::ConnectionTimeout),
            "dport 7443",
        ),
        (
            Err(Trouble::Connection("x".to_owned())),
            Some(Message::ConnectionFails),
            "ip route get c.example",
        ),
        (
            Err(Trouble::Authority),
            Some(Message::AuthorityOther),
            "enrol",
        ),
        (
            Err(Trouble::ServerExpired),
            Some(Message::ServerExpired),
            "--name c.example",
        ),
        (
            Err(Trouble::ServerName),
            Some(Message::ServerName),
            "--name c.example",
        ),
        (
            Err(Trouble::HostRefused("x".to_owned())),
            Some(Message::HostRefused),
            "enrol",
        ),
        (
            Err(Trouble::Tls("x".to_owned())),
            Some(Message::AnswerWrong),
            "doctor collector",
        ),
    ] {
        let finding = judged(url, end.clone()).remove(0);
        assert_eq!(finding.message, message, "{end:?}");
        assert!(
            finding
                .remedy
                .as_deref()
                .unwrap_or_default()
                .contains(remedy),
            "{finding:?}"
        );
        assert_eq!(finding.remedy.is_some(), message.is_some());
    }
    let here = judged("https://127.0.0.1:7443", Err(Trouble::Refused)).remove(0);
    assert_eq!(here.remedy.as_deref(), Some("start"));
    let late = judged(
        url,
        Ok(End::Answered {
            status: 200,
            difference_ms: Some(-3_600_000),
        }),
    );
    assert_eq!(late[1].message, Some(Message::ClockDiffers));
}

#[test]
fn ways_end_where_they_end() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1000]);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
    });
    let way = read(&format!("http://{address}"), None, "/");
    assert_eq!(
        way.end,
        Ok(End::Answered {
            status: 200,
            difference_ms: None
        })
    );
    thread.join().unwrap();
    let way = read(&format!("https://{address}"), None, "/");
    assert_eq!(way.end, Err(Trouble::Refused));
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let way = read(&format!("http://{}", mute.local_addr().unwrap()), None, "/");
    assert_eq!(way.end, Err(Trouble::Timeout("answer")));
    let way = read("https://no.such.name.invalid:1", None, "/");
    assert!(matches!(way.end, Err(Trouble::Unresolved(_))), "{way:?}");
    assert!(matches!(
        read("c:1", None, "/").end,
        Err(Trouble::Address(_))
    ));
}

//! Tests with a configuration that has every kind of key, read from files and the environment.

use super::*;
use crate::config::values;
use proptest::prelude::*;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    #[serde(deserialize_with = "values::interval_from::<100, _>")]
    interval: Option<Duration>,
    #[serde(deserialize_with = "values::size_or_none::<1, _>")]
    cap: Option<Option<u64>>,
    #[serde(deserialize_with = "values::share")]
    headroom_share: Option<f64>,
    #[serde(deserialize_with = "values::loopback_or_none")]
    local: Option<Option<SocketAddr>>,
    #[serde(deserialize_with = "values::address")]
    listen: Option<SocketAddr>,
    mode: Mode,
    always_active: Vec<String>,
    tries: Option<usize>,
    damon: bool,
    database: Option<PathBuf>,
    options: BTreeMap<String, toml::Value>,
    ship: Ship,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Gentle,
    Paper,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Ship {
    collector: String,
    #[serde(deserialize_with = "values::interval")]
    interval: Option<Duration>,
}

const DAEMON: &str = "agent";

fn load_both(text: &str, variables: &[(&str, &str)]) -> Result<LoadedConfig<File>, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.toml");
    std::fs::write(&path, text).unwrap();
    let owned = |&(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
    load_from(DAEMON, Some(&path), variables.iter().map(owned))
}

fn values_of(text: &str, variables: &[(&str, &str)]) -> File {
    load_both(text, variables).unwrap().values
}

/// Text of the error that loading returns, without the file's folder.
fn said(text: &str, variables: &[(&str, &str)]) -> String {
    let said = load_both(text, variables).unwrap_err().to_string();
    match said.find("agent.toml") {
        Some(at) if said.starts_with('/') => said[at..].to_owned(),
        _ => said,
    }
}

#[test]
fn every_key_is_known_with_what_it_takes() {
    let found = keys::<File>();
    let kinds = [
        ("always_active", Kind::List),
        ("cap", Kind::Text),
        ("damon", Kind::Other),
        ("database", Kind::Text),
        ("headroom_share", Kind::Other),
        ("interval", Kind::Text),
        ("listen", Kind::Text),
        ("local", Kind::Text),
        ("mode", Kind::Text),
        ("options", Kind::Map),
        ("ship.collector", Kind::Text),
        ("ship.interval", Kind::Text),
        ("tries", Kind::Other),
    ];
    let found: Vec<_> = found
        .iter()
        .map(|(path, kind)| (path.join("."), *kind))
        .collect();
    let expected = kinds.map(|(key, kind)| (key.to_owned(), kind));
    assert_eq!(found, expected);
}

#[test]
fn the_environment_wins_over_the_file_key_by_key() {
    let text = "interval = \"1m\"\ntries = 3\nalways_active = [\"a\"]\n[ship]\ncollector = \"c\"\ninterval = \"2m\"\n";
    let loaded = load_both(
        text,
        &[
            ("GLEANER_AGENT_INTERVAL", "30s"),
            ("GLEANER_AGENT_SHIP_COLLECTOR", "https://d:1"),
            ("GLEANER_AGENT_HEADROOM_SHARE", "0.25"),
            ("GLEANER_AGENT_DAMON", "true"),
            ("GLEANER_AGENT_CAP", "none"),
            ("GLEANER_AGENT_MODE", "paper"),
            ("GLEANER_AGENT_LOCAL", "[::1]:7"),
            ("GLEANER_AGENT_ALWAYS_ACTIVE", "b, c"),
            ("GLEANER_AGENT_OPTIONS_REGION", "7"),
            ("GLEANER_AGENT_DATABASE", "/a b/\"c\" = 1"),
            // Variables of other programs are ignored, even with invalid values.
            ("GLEANER_AGENTS_INTERVAL", "soon"),
            ("GLEANER_MEMORYD_MODE", "greedy"),
            ("INTERVAL", "soon"),
        ],
    );
    let LoadedConfig { values, origin } = loaded.unwrap();
    let expected = File {
        interval: Some(Duration::from_secs(30)),
        cap: Some(None),
        headroom_share: Some(0.25),
        local: Some("[::1]:7".parse().ok()),
        listen: None,
        mode: Mode::Paper,
        always_active: vec!["b".into(), "c".into()],
        tries: Some(3),
        damon: true,
        database: Some("/a b/\"c\" = 1".into()),
        options: [("region".to_owned(), toml::Value::from("7"))].into(),
        ship: Ship {
            collector: "https://d:1".into(),
            interval: Some(Duration::from_secs(120)),
        },
    };
    assert_eq!(values, expected);
    assert_eq!(origin.overrides().len(), 10);
    let by = &origin.overrides()[9];
    assert_eq!(
        (by.variable.as_str(), by.key.as_str()),
        ("GLEANER_AGENT_SHIP_COLLECTOR", "ship.collector")
    );
    let list = values_of("", &[("GLEANER_AGENT_ALWAYS_ACTIVE", "[\"a, b\"]")]);
    assert_eq!(list.always_active, ["a, b"]);
    let none = values_of(text, &[("GLEANER_AGENT_ALWAYS_ACTIVE", "")]);
    assert!(none.always_active.is_empty());
}

#[test]
fn what_is_wrong_in_the_file_is_said_by_line_and_key() {
    for (text, expected) in [
        (
            "\nintervall = \"9s\"",
            "agent.toml, line 2: unknown field `intervall`, expected one of `interval`",
        ),
        (
            "interval = \"soon\"",
            "agent.toml, line 1: interval: `soon` is no length of time: write it like 90s",
        ),
        (
            "# x\ninterval = \"99ms\"",
            "agent.toml, line 2: interval: 99ms is too short: 100ms is the minimum",
        ),
        (
            "cap = \"0B\"",
            "agent.toml, line 1: cap: 0B is too little: 1 B is the minimum",
        ),
        (
            "cap = \"512\"",
            "agent.toml, line 1: cap: `512` is no size: write it like 512MiB",
        ),
        (
            "headroom_share = 15",
            "agent.toml, line 1: headroom_share: 15 is no share",
        ),
        (
            "local = \"0.0.0.0:1\"",
            "agent.toml, line 1: local: 0.0.0.0:1 is no loopback address",
        ),
        (
            "local = \"here\"",
            "agent.toml, line 1: local: `here` is no address: write it like 127.0.0.1:7480, or none",
        ),
        (
            "listen = \"7443\"",
            "agent.toml, line 1: listen: `7443` is no address",
        ),
        (
            "mode = \"greedy\"",
            "agent.toml, line 1: mode: unknown variant `greedy`, expected `gentle` or `paper`",
        ),
        (
            "damon = 1",
            "agent.toml, line 1: damon: invalid type: integer `1`, expected a boolean",
        ),
        (
            "[ship]\ninterval = \"2m\"\ncollector = 1",
            "agent.toml, line 3: ship.collector: invalid type",
        ),
        (
            "ship.interval = \"soon\"",
            "agent.toml, line 1: ship.interval: `soon` is",
        ),
        (
            "[ship]\nurl = \"x\"",
            "agent.toml, line 2: unknown field `url`, expected `collector` or `interval`",
        ),
        (
            "[shop]\nurl = \"x\"",
            "agent.toml, line 1: unknown field `shop`",
        ),
        (
            "always_active = [\n\"a\",\n7]",
            "line 3: always_active: invalid type",
        ),
        ("damon = true\ndamon = false", "agent.toml, line 2: "),
        ("interval = ", "agent.toml, line 1: "),
    ] {
        let said = said(text, &[]);
        assert!(said.contains(expected), "{text:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let nowhere = load_from::<File>(DAEMON, Some(Path::new("/nowhere/x.toml")), []);
    let said = nowhere.unwrap_err().to_string();
    assert!(
        said.contains("/nowhere/x.toml") && said.contains("--config"),
        "{said}"
    );
}

#[test]
fn what_is_wrong_in_the_environment_is_said_by_name() {
    for (name, value, expected) in [
        (
            "INTERVALL",
            "9s",
            "GLEANER_AGENT_INTERVALL: gleaner-agent has no such setting; after GLEANER_AGENT_ there may come ALWAYS_ACTIVE, CAP",
        ),
        (
            "",
            "9s",
            "GLEANER_AGENT_: gleaner-agent has no such setting",
        ),
        (
            "interval",
            "9s",
            "GLEANER_AGENT_interval: gleaner-agent has no such setting",
        ),
        ("SHIP", "x", "GLEANER_AGENT_SHIP: gleaner-agent has no such"),
        (
            "OPTIONS",
            "x",
            "GLEANER_AGENT_OPTIONS: gleaner-agent has no such",
        ),
        (
            "INTERVAL",
            "soon",
            "GLEANER_AGENT_INTERVAL: `soon` is no length of time",
        ),
        (
            "INTERVAL",
            "",
            "GLEANER_AGENT_INTERVAL: `` is no length of time",
        ),
        (
            "SHIP_INTERVAL",
            "x",
            "GLEANER_AGENT_SHIP_INTERVAL: `x` is no length",
        ),
        (
            "HEADROOM_SHARE",
            "1.5",
            "GLEANER_AGENT_HEADROOM_SHARE: 1.5 is no share",
        ),
        (
            "HEADROOM_SHARE",
            "much",
            "GLEANER_AGENT_HEADROOM_SHARE: invalid type: string \"much\", expected f64",
        ),
        (
            "TRIES",
            "1\ndamon = true",
            "GLEANER_AGENT_TRIES: invalid type: string",
        ),
        ("ALWAYS_ACTIVE", "[\"a\"", "GLEANER_AGENT_ALWAYS_ACTIVE: "),
        (
            "MODE",
            "greedy",
            "GLEANER_AGENT_MODE: unknown variant `greedy`",
        ),
    ] {
        let said = said(
            "interval = \"1m\"",
            &[(&format!("GLEANER_AGENT_{name}"), value)],
        );
        assert!(said.starts_with(expected), "{name}={value}: {said}");
    }
}

#[test]
fn a_setting_is_blamed_where_it_was_made() {
    let text = "interval = \"1m\"\n[ship]\n\ncollector = \"c\"\n";
    let loaded = load_both(text, &[("GLEANER_AGENT_TRIES", "3")]).unwrap();
    let place = |key: &str| {
        let said = loaded.origin.wrong(key, "no").to_string();
        said[said.rfind('/').map_or(0, |at| at + 1)..].to_owned()
    };
    assert_eq!(place("interval"), "agent.toml, line 1: interval: no");
    assert_eq!(
        place("ship.collector"),
        "agent.toml, line 4: ship.collector: no"
    );
    assert_eq!(place("tries"), "GLEANER_AGENT_TRIES: no");
    assert_eq!(place("mode"), "agent.toml: mode: no");
    let wrong = Origin::wrong_argument("--interval", "no");
    assert_eq!(wrong.to_string(), "--interval: no");
    let nowhere = Origin::new("memoryd", None, Vec::new());
    let said = nowhere.wrong("mode", "no").to_string();
    assert_eq!(said, "the configuration of gleaner-memoryd: mode: no");
}

#[test]
fn a_check_says_which_file_what_wins_and_what_is_wrong() {
    let variables = [
        ("GLEANER_AGENT_TRIES", "3"),
        ("GLEANER_AGENT_DAMON", "true"),
    ];
    let loaded = load_both("", &variables).unwrap();
    let path = loaded.origin.path().unwrap().display().to_string();
    let checked = check(DAEMON, Ok(&loaded.origin));
    assert!(checked.is_valid);
    let wins = "GLEANER_AGENT_DAMON (damon), GLEANER_AGENT_TRIES (tries) win over it";
    assert_eq!(
        checked.text(),
        format!("gleaner-agent: {path} is good; {wins}\n")
    );
    let settings = checked.settings.unwrap();
    assert_eq!(settings.to_string(), "damon = true\ntries = 3\n");
    let nothing = Origin::new(DAEMON, None, Vec::new());
    let said = check(DAEMON, Ok(&nothing)).text();
    assert_eq!(
        said,
        "gleaner-agent: there is no file, and the defaults hold\n"
    );

    let wrong = load_both("\n[ship]\ninterval = 1", &[]).unwrap_err();
    let checked = check(DAEMON, Err(&wrong));
    let problem = checked.problem.clone().unwrap();
    assert_eq!((checked.is_valid, problem.line), (false, Some(3)));
    assert_eq!(problem.key.as_deref(), Some("ship.interval"));
    assert_eq!(checked.file, problem.file);
    assert_eq!(checked.text(), format!("gleaner-agent: {wrong}\n"));
    let wrong = load_both("", &[("GLEANER_AGENT_MODE", "x")]).unwrap_err();
    let problem = check(DAEMON, Err(&wrong)).problem.unwrap();
    assert_eq!(problem.variable.as_deref(), Some("GLEANER_AGENT_MODE"));
    assert_eq!((problem.key.as_deref(), problem.file), (Some("mode"), None));
}

#[test]
fn keys_are_taken_out_of_their_comments() {
    let file = "# Prose = not a key.\n\n# tries = 3\n[ship]\n# Of a = b.\n# collector = \"c\" # for example\n";
    let found = uncommented(file);
    assert_eq!(found.len(), 2);
    assert_eq!(
        (found[0].text.as_str(), found[0].is_default),
        ("tries = 3\n", true)
    );
    assert_eq!(found[1].path, ["ship", "collector"]);
    assert!(!found[1].is_default);
    assert_eq!(values_of(&found[1].text, &[]).ship.collector, "c");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Any text in the environment is kept unchanged, or the error names its variable.
    #[test]
    fn text_stays_text(text in any::<String>().prop_filter("no environment holds it", |t| !t.contains('\0'))) {
        let values = values_of("[ship]\ncollector = \"before\"", &[("GLEANER_AGENT_SHIP_COLLECTOR", &text)]);
        prop_assert_eq!(values.ship.collector, text.clone());
        for name in ["INTERVAL", "CAP", "HEADROOM_SHARE", "LOCAL", "LISTEN", "MODE", "ALWAYS_ACTIVE", "TRIES", "DAMON"] {
            let name = format!("GLEANER_AGENT_{name}");
            match load_both("", &[(&name, &text)]) {
                Ok(loaded) => prop_assert_eq!(&loaded.origin.overrides()[0].variable, &name),
                Err(error) => prop_assert!(error.to_string().starts_with(&name), "{}", error),
            }
        }
    }

    /// A number in the environment has the same value as in the file.
    #[test]
    fn numbers_are_as_in_the_file(share in 0.0..=1.0f64, tries in 0..1_000_000usize) {
        let in_file = values_of(&format!("headroom_share = {share:?}\ntries = {tries}"), &[]);
        let variables = [
            ("GLEANER_AGENT_HEADROOM_SHARE", format!("{share:?}")),
            ("GLEANER_AGENT_TRIES", tries.to_string()),
        ];
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        prop_assert_eq!(in_file, values_of("", &variables));
    }

    /// Any file gives values, or an error of one line with the file's name.
    #[test]
    fn any_file_is_read_or_refused(text in any::<String>()) {
        if let Err(error) = load_both(&text, &[]) {
            prop_assert!(error.to_string().contains("agent.toml"), "{}", error);
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }
}

/// Writes the main file and drop-ins into a folder of their own, and loads them.
fn load_with_drop_ins(
    main: &str,
    drop_ins: &[(&str, &str)],
) -> (tempfile::TempDir, Result<LoadedConfig<File>, ConfigError>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.toml");
    std::fs::write(&path, main).unwrap();
    std::fs::create_dir(folder.path().join("agent.d")).unwrap();
    for (name, text) in drop_ins {
        std::fs::write(folder.path().join("agent.d").join(name), text).unwrap();
    }
    let loaded = load_from(DAEMON, Some(&path), []);
    (folder, loaded)
}

#[test]
fn drop_ins_win_over_the_file_in_the_order_of_their_names() {
    let (folder, loaded) = load_with_drop_ins(
        "tries = 1\nalways_active = [\"a\"]\n[ship]\ncollector = \"https://a\"\ninterval = \"5s\"\n",
        &[
            (
                "20-own.toml",
                "tries = 3\n[ship]\ncollector = \"https://c\"\n",
            ),
            ("10-own.toml", "tries = 2\nalways_active = [\"b\"]\n"),
            ("30-not.toml.dpkg-old", "tries = 4\n"),
            (".40-hidden.toml", "tries = 5\n"),
        ],
    );
    let loaded = loaded.unwrap();
    assert_eq!(loaded.values.tries, Some(3));
    assert_eq!(loaded.values.always_active, ["b"]);
    assert_eq!(loaded.values.ship.collector, "https://c");
    assert_eq!(loaded.values.ship.interval, Some(Duration::from_secs(5)));
    let of = |name: &str| folder.path().join(name).display().to_string();
    let wrong = |key: &str| loaded.origin.wrong(key, "no").to_string();
    let (first, second) = (of("agent.d/10-own.toml"), of("agent.d/20-own.toml"));
    assert_eq!(wrong("tries"), format!("{second}, line 1: tries: no"));
    assert_eq!(
        wrong("always_active"),
        format!("{first}, line 2: always_active: no")
    );
    assert_eq!(
        wrong("ship.interval"),
        format!("{}, line 5: ship.interval: no", of("agent.toml"))
    );
    let text = check(DAEMON, Ok(&loaded.origin)).text();
    assert_eq!(
        text,
        format!(
            "gleaner-agent: {}, {first}, {second} are good\n",
            of("agent.toml")
        )
    );
}

#[test]
fn written_keys_are_those_of_all_files_that_can_be_read() {
    let (folder, loaded) = load_with_drop_ins(
        "tries = 1\n[ship]\ninterval = \"5s\"\n",
        &[
            ("1.toml", "tries = ["),
            ("2.toml", "trys = 2\n[ship]\ncollector = \"c\"\n"),
        ],
    );
    assert!(loaded.is_err());
    let text = "tries = 1\ntrys = 2\n\n[ship]\ncollector = \"c\"\ninterval = \"5s\"\n";
    let path = folder.path().join("agent.toml");
    assert_eq!(keys_in_file(&path).to_string(), text);
    assert!(keys_in_file(&folder.path().join("none.toml")).is_empty());
}

#[test]
fn secrets_are_hidden() {
    let (_folder, loaded) = load_with_drop_ins("tries = 1\n[ship]\ncollector = \"c\"\n", &[]);
    let checked = check(DAEMON, Ok(&loaded.unwrap().origin));
    let checked = checked.hiding("ship").hiding("tries").hiding("none");
    let text = "tries = 1\n\n[ship]\ncollector = \"(hidden)\"\n";
    assert_eq!(checked.settings.unwrap().to_string(), text);
}

#[test]
fn an_error_in_a_drop_in_names_the_drop_in() {
    let (folder, loaded) = load_with_drop_ins("tries = 1\n", &[("own.toml", "\ntrys = 3\n")]);
    let own = folder.path().join("agent.d/own.toml");
    let said = loaded.unwrap_err().to_string();
    assert!(
        said.starts_with(&format!("{}, line 2: ", own.display())),
        "{said}"
    );
    assert!(said.contains("trys"), "{said}");
}

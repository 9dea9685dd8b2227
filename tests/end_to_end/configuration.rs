//! Configuration of every daemon, with the built programs: `check-config` reports correct settings,
//! overrides, and faults with their place. The daemon rejects the same faults.

use gleaner_tests::{program, repository};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// A daemon, and data for testing its configuration.
pub(super) struct Daemon {
    pub(super) name: &'static str,
    pub(super) run: &'static [&'static str],
    /// Configuration with which the daemon starts anywhere.
    pub(super) config: &'static str,
    /// Key of the configuration, a valid value for it, and an invalid value.
    pub(super) key: &'static str,
    pub(super) good: &'static str,
    pub(super) wrong: &'static str,
    /// File that the daemon creates in its state folder or in its socket folder. The test names both folders,
    /// as a service manager does.
    pub(super) leaves: &'static str,
    /// Another configuration; and the keys that only take effect after a restart, as the daemon reports them.
    pub(super) fixed: &'static str,
    pub(super) left_out: &'static str,
}

pub(super) const DAEMONS: [Daemon; 4] = [
    Daemon {
        name: "agent",
        run: &["run"],
        config: "sample_interval = \"1h\"\n",
        key: "sample_interval",
        good: "2h",
        wrong: "soon",
        leaves: "trace.db",
        fixed: "sample_interval = \"2h\"\n[ship]\nrate = \"1MiB\"\n",
        left_out: "ship",
    },
    Daemon {
        name: "memoryd",
        run: &["run"],
        config: "lock_pages = \"never\"\n",
        key: "cap",
        good: "1GiB",
        wrong: "much",
        leaves: "memoryd.sock",
        fixed: "lock_pages = \"always\"\nrecruiters = [\"http://127.0.0.1:1\"]\n",
        left_out: "huge_pages, lock_pages, recruiters",
    },
    Daemon {
        name: "collector",
        run: &["run"],
        config: "local_listen = \"127.0.0.1:0\"\n",
        key: "seal_after",
        good: "1m",
        wrong: "soon",
        leaves: "lock",
        fixed: "local_listen = \"127.0.0.1:1\"\ndisk_reserve = \"1MiB\"\n",
        left_out: "listen, local_listen or certificates, disk_reserve",
    },
    Daemon {
        name: "recruiter",
        run: &["run"],
        config: "local_listen = \"127.0.0.1:0\"\n",
        key: "announce_every",
        good: "5s",
        wrong: "0s",
        leaves: "",
        fixed: "local_listen = \"127.0.0.1:1\"\nquota_file = \"/q\"\n",
        left_out: "listen, local_listen or certificates, quota_file",
    },
];

/// The clerk keeps its settings until it is restarted. It has no watchdog, since a restart would lose its
/// pages.
pub(super) const CLERK: Daemon = Daemon {
    name: "clerk",
    run: &["run"],
    config: "size = \"8MiB\"\nlock_memory = false\n",
    key: "size",
    good: "2GiB",
    wrong: "much",
    leaves: "clerk.sock",
    fixed: "",
    left_out: "",
};

impl Daemon {
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(program(&format!("gleaner-{}", self.name)).unwrap());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GLEANER_") {
                command.env_remove(name);
            }
        }
        command
    }

    /// Configuration of the daemon in which the key has this value.
    pub(super) fn with(&self, value: &str) -> String {
        let others = self
            .config
            .lines()
            .filter(|line| !line.starts_with(self.key));
        let others: String = others.map(|line| format!("{line}\n")).collect();
        format!("{others}{} = {value:?}\n", self.key)
    }

    /// Environment variable that overrides the key.
    fn variable(&self) -> String {
        format!("GLEANER_{}_{}", self.name, self.key).to_uppercase()
    }

    fn check(&self, file: &Path, more: &[&str], variable: Option<(&str, &str)>) -> Output {
        let mut command = self.command();
        command.arg("check-config").arg("--config").arg(file);
        command.args(more).envs(variable).output().unwrap()
    }
}

/// Exit code, standard output and standard error of a command that has ended.
fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn a_configuration_is_checked_without_starting() {
    let folder = tempfile::tempdir().unwrap();
    for daemon in DAEMONS.iter().chain([&CLERK]) {
        let (name, key) = (daemon.name, daemon.key);
        let installed = repository().join("docs").join(format!("{name}.toml"));
        let (code, out, err) = told(&daemon.check(&installed, &[], None));
        let good = format!("gleaner-{name}: {} is good\n", installed.display());
        assert_eq!(
            (code, out.as_str(), err.as_str()),
            (Some(0), good.as_str(), "")
        );

        let variable = daemon.variable();
        let (code, out, _) = told(&daemon.check(&installed, &[], Some((&variable, daemon.good))));
        assert_eq!(code, Some(0));
        assert!(
            out.contains(&format!("{variable} ({key}) wins over it")),
            "{out}"
        );
        let output = daemon.check(&installed, &["--json"], Some((&variable, daemon.good)));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["is_valid"], true);
        assert_eq!(found["file"], installed.to_str().unwrap());
        assert_eq!(found["overrides"][0]["variable"], variable);
        assert_eq!(found["overrides"][0]["key"], key);
        assert_eq!(found["settings"][key], daemon.good);
        let (code, _, err) = told(&daemon.check(&installed, &[], Some((&variable, daemon.wrong))));
        assert_eq!(code, Some(1));
        assert!(
            err.starts_with(&format!("gleaner-{name}: {variable}: ")),
            "{err}"
        );
        let unknown = format!("{variable}S");
        let (code, _, err) = told(&daemon.check(&installed, &[], Some((&unknown, daemon.good))));
        assert_eq!(code, Some(1));
        assert!(
            err.contains(&format!("{unknown}: gleaner-{name} has no such setting")),
            "{err}"
        );
        assert!(err.contains(&key.to_uppercase()), "{err}");

        let file = folder.path().join(format!("{name}.toml"));
        let wrong = format!("# A remark.\n{key} = {:?}\n", daemon.wrong);
        std::fs::write(&file, wrong).unwrap();
        let (code, out, err) = told(&daemon.check(&file, &[], None));
        assert_eq!((code, out.as_str()), (Some(1), ""));
        let place = format!("gleaner-{name}: {}, line 2: {key}: ", file.display());
        assert!(err.starts_with(&place), "{err}");
        let (code, out, err) = told(&daemon.check(&file, &["--json"], None));
        let found: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, err.as_str()), (Some(1), ""));
        assert_eq!(found["settings"], Value::Null);
        assert_eq!(
            (&found["problem"]["line"], &found["problem"]["key"]),
            (&2.into(), &key.into())
        );
        assert!(
            found["problem"]["text"]
                .as_str()
                .unwrap()
                .contains(&place["gleaner-: ".len() + name.len()..])
        );

        std::fs::write(&file, format!("\n{key}s = 1\n")).unwrap();
        let (code, _, err) = told(&daemon.check(&file, &[], None));
        assert_eq!(code, Some(1));
        let place = format!(
            "{}, line 2: unknown field `{key}s`, expected",
            file.display()
        );
        assert!(err.contains(&place), "{err}");

        // A file in the `.d` folder overrides the main file. If it has a fault, the error names this file.
        let own = file.with_extension("d").join("own.toml");
        std::fs::create_dir(own.parent().unwrap()).unwrap();
        std::fs::write(&file, daemon.with(daemon.good)).unwrap();
        std::fs::write(&own, format!("\n\n{key} = {:?}\n", daemon.wrong)).unwrap();
        let (code, _, err) = told(&daemon.check(&file, &[], None));
        let place = format!("gleaner-{name}: {}, line 3: {key}: ", own.display());
        assert!(code == Some(1) && err.starts_with(&place), "{err}");
        std::fs::write(&own, format!("{key} = {:?}\n", daemon.good)).unwrap();
        std::fs::write(&file, daemon.config).unwrap();
        let (code, out, _) = told(&daemon.check(&file, &[], None));
        let good = format!(
            "gleaner-{name}: {}, {} are good\n",
            file.display(),
            own.display()
        );
        assert_eq!((code, out), (Some(0), good));
        let (code, _, err) = told(&daemon.check(&folder.path().join("none.toml"), &[], None));
        assert_eq!(code, Some(1));
        assert!(
            err.contains("none.toml") && err.contains("--config"),
            "{err}"
        );
    }
    // The folder has one configuration file and one `.d` folder for each daemon, and no other file.
    let found = std::fs::read_dir(folder.path()).unwrap();
    assert_eq!(found.count(), 2 * (DAEMONS.len() + 1));
}

/// In each line: the daemon, an invalid configuration (`⏎` ends a line), and words of the error. The checks
/// that all keys of a kind share are tested in `daemon/src/config`. A new key with checks of its own is added
/// here.
const REFUSED: &str = r#"
agent | sample_interval = "99ms" | line 1 & 99ms is too short
agent | mem_available_interval = "5ms" | 5ms is too short
agent | headroom_share = 15 | line 1 & headroom_share
agent | privacy = "open" | line 1 & open
agent | retention = "23h" | line 1 & 1d is the minimum
agent | database_limit = "512" | line 1 & 512MiB or 2GiB
agent | database_limit = "7MiB" | line 1 & 8.0 MiB is the minimum
agent | always_active_cgroups = ["cron"] | line 1 & by its path
agent | [ship] ⏎ rate = "fast" | line 2 & or none
agent | [ship] ⏎ batch_interval = "5ms" | line 2 & too short
agent | [ship] ⏎ url = "https://c" | line 2 & url
agent | [ship] ⏎ collector = "http://elsewhere:1" | line 2: ship.collector:
memoryd | cap = "much" | `much` is no size
memoryd | mode = "greedy" | unknown variant `greedy`
memoryd | headroom_share = 1.5 | from 0 to 1
memoryd | recruiters = ["http://elsewhere:1"] | line 1: recruiters:
memoryd | host_id = "otter" | 32 lower-case hex digits
memoryd | rise_after = "soon" | soon
clerk | size = "1KiB" | size: from 4KiB
clerk | size = "64TiB" | size: from 4KiB
clerk | copies = 3 | copies: 1, or 2
clerk | eviction = "oldest" | choose one of lru, fifo
clerk | placement = "best" | choose one of random
clerk | servers = ["here"] | servers: "here" is no address
clerk | disk_folder = "none" ⏎ on_revocation = "disk" | on_revocation:
clerk | certificate = "/c" | belong together
clerk | lease_size = "1MiB" | lease_size
clerk | on_revocation = "give up" | unknown variant
clerk | choice = "best" | unknown variant `best`
clerk | window = 2000 | window: 0 (adaptive), or 1 to 1024
collector | local_listen = "0.0.0.0:7480" | no loopback address
collector | listen = "0.0.0.0:7443" | listen needs TLS
collector | local_listen = "none" | nothing to listen on
collector | [retention] ⏎ thin_to = "soon" | soon
collector | [tables] ⏎ folder = "tables" | line 2: tables.folder: & no absolute path
collector | dataset = "/d" ⏎ [tables] ⏎ folder = "/d/tables" | line 3: tables.folder: & contain each other
collector | dataset = "/t/dataset" ⏎ [tables] ⏎ folder = "/t" | line 3: tables.folder: & contain each other
collector | [tables] ⏎ folder = "/t" ⏎ location = "/t" | line 3: tables.location: & s3://bucket
collector | [tables] ⏎ every = "5ms" | line 2: tables.every: & too short
collector | [tables] ⏎ place = "/t" | line 2: unknown field `place`
recruiter | listen = "0.0.0.0:1" | 0.0.0.0:1 & loopback & gleaner pki init
recruiter | local_listen = "10.0.0.1:1" | 10.0.0.1:1 & loopback
recruiter | local_listen = "none" | nothing to listen on
recruiter | announce_every = "0s" | line 1: announce_every: 0s is too short
recruiter | reserve_share = 1.5 | reserve_share & 0 to 1
recruiter | placement = "best" | best & longest-available
recruiter | certificate = "c" ⏎ listen = "0.0.0.0:1" | key
"#;

#[test]
fn what_is_refused_is_refused_by_the_check_and_by_the_daemon_alike() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.toml");
    let named = |name: &str| {
        let mut all = DAEMONS.iter().chain([&CLERK]);
        all.find(|daemon| daemon.name == name).unwrap()
    };
    for case in REFUSED.trim().lines() {
        let [name, text, words] = case.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{case}");
        };
        let (daemon, text) = (named(name), text.replace(" ⏎ ", "\n"));
        std::fs::write(&file, text).unwrap();
        let checked = told(&daemon.check(&file, &[], None));
        let (code, out, err) = &checked;
        assert_eq!((*code, out.as_str()), (Some(1), ""), "{case}");
        let is_said = words.split(" & ").all(|word| err.contains(word));
        assert!(
            is_said && err.contains(file.to_str().unwrap()),
            "{case}: {err}"
        );
        let mut run = daemon.command();
        run.env("STATE_DIRECTORY", folder.path()).args(daemon.run);
        let run = run.arg("--config").arg(&file).output().unwrap();
        assert_eq!(told(&run), checked, "{case}");
    }
    std::fs::write(&file, "").unwrap();
    let (code, _, err) = told(&named("agent").check(&file, &["--sample-interval", "99ms"], None));
    let expected = "gleaner-agent: --sample-interval: 99ms is too short: 100ms is the minimum\n";
    assert_eq!((code, err.as_str()), (Some(1), expected));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

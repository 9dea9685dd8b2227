//! Every daemon as a service: its configuration is checked without starting it, the service manager hears how it is, SIGHUP has
//! its configuration read again, and it finds its folders.

use gleaner_tests::{program, repository};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Read;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(90);

/// A daemon, and what it takes to make it do something.
struct Daemon {
    name: &'static str,
    run: &'static [&'static str],
    /// With which it starts anywhere.
    config: &'static str,
    /// A key of its own, another value for it, and one that cannot be.
    key: &'static str,
    good: &'static str,
    wrong: &'static str,
    /// What it leaves in the folder of its state, or of sockets, named by the service manager.
    leaves: &'static str,
}

const DAEMONS: [Daemon; 4] = [
    Daemon {
        name: "agent",
        run: &["run"],
        config: "interval = \"1h\"\n",
        key: "interval",
        good: "2h",
        wrong: "soon",
        leaves: "trace.db",
    },
    Daemon {
        name: "memoryd",
        run: &["run"],
        config: "lock = \"never\"\n",
        key: "cap",
        good: "1GiB",
        wrong: "much",
        leaves: "memoryd.sock",
    },
    Daemon {
        name: "collector",
        run: &["run"],
        config: "local = \"127.0.0.1:0\"\n",
        key: "seal_after",
        good: "1m",
        wrong: "soon",
        leaves: "lock",
    },
    Daemon {
        name: "recruiter",
        run: &["serve"],
        config: "local = \"127.0.0.1:0\"\n",
        key: "heartbeat",
        good: "5s",
        wrong: "0s",
        leaves: "",
    },
];

/// Holds to its settings until it is started anew, and has no watchdog: restarted, it would have lost its pages.
const CLERK: Daemon = Daemon {
    name: "clerk",
    run: &["serve"],
    config: "size = \"8MiB\"\nlock = false\n",
    key: "size",
    good: "2GiB",
    wrong: "much",
    leaves: "clerk.sock",
};

impl Daemon {
    fn command(&self) -> Command {
        let mut command = Command::new(program(&format!("gleaner-{}", self.name)).unwrap());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GLEANER_") {
                command.env_remove(name);
            }
        }
        command
    }

    /// Its configuration with this value of the key.
    fn with(&self, value: &str) -> String {
        let others = self
            .config
            .lines()
            .filter(|line| !line.starts_with(self.key));
        let others: String = others.map(|line| format!("{line}\n")).collect();
        format!("{others}{} = {value:?}\n", self.key)
    }

    /// The variable that wins over the key.
    fn variable(&self) -> String {
        format!("GLEANER_{}_{}", self.name, self.key).to_uppercase()
    }

    fn check(&self, file: &Path, more: &[&str], variable: Option<(&str, &str)>) -> Output {
        let mut command = self.command();
        command
            .arg("check-config")
            .arg("--config")
            .arg(file)
            .args(more);
        command.envs(variable).output().unwrap()
    }
}

/// Exit code, standard output and standard error.
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

        std::fs::write(&file, format!("{key}s = 1\n")).unwrap();
        let (code, _, err) = told(&daemon.check(&file, &[], None));
        assert_eq!(code, Some(1));
        assert!(
            err.contains(&format!("line 1: unknown field `{key}s`, expected")),
            "{err}"
        );
        let (code, _, err) = told(&daemon.check(&folder.path().join("none.toml"), &[], None));
        assert_eq!(code, Some(1));
        assert!(
            err.contains("none.toml") && err.contains("--config"),
            "{err}"
        );
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        DAEMONS.len() + 1
    );
}

/// The service manager's end.
struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket }
    }

    /// The next word that is no sign of life.
    #[track_caller]
    fn hear(&self) -> String {
        loop {
            let word = self.next();
            if word != "WATCHDOG=1\n" {
                return word;
            }
        }
    }

    #[track_caller]
    fn hear_of_life(&self) {
        while self.next() != "WATCHDOG=1\n" {}
    }

    #[track_caller]
    fn next(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self
            .socket
            .recv(&mut buffer)
            .expect("the service said nothing");
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }
}

/// A daemon that a service manager has started.
struct Service {
    child: Child,
    folder: PathBuf,
    config: PathBuf,
    manager: Manager,
}

impl Service {
    /// With this configuration, and folders of its own, all of them named by the service manager.
    fn start(folder: &Path, daemon: &Daemon, config: &str, args: &[&str]) -> Self {
        let file = folder.join(format!("{}.toml", daemon.name));
        std::fs::write(&file, config).unwrap();
        let notify = folder.join("notify");
        let manager = Manager::at(&notify);
        let mut command = daemon.command();
        command
            .env("NOTIFY_SOCKET", &notify)
            .env("WATCHDOG_USEC", "600000")
            .env("STATE_DIRECTORY", folder)
            .env("RUNTIME_DIRECTORY", folder)
            .env("CONFIGURATION_DIRECTORY", folder);
        let child = command.args(args).stderr(Stdio::piped()).spawn().unwrap();
        Self {
            child,
            folder: folder.to_owned(),
            config: file,
            manager,
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn reload(&self, config: &str) {
        std::fs::write(&self.config, config).unwrap();
        self.signal(Signal::HUP);
        let word = self.manager.hear();
        assert!(word.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{word}");
        let mut word = self.manager.hear();
        while word.starts_with("STATUS=") {
            word = self.manager.hear();
        }
        assert!(word.starts_with("READY=1\n"), "{word}");
    }

    /// Ends it; what it said.
    fn end(mut self) -> String {
        self.signal(Signal::TERM);
        while !self.manager.hear().starts_with("STOPPING=1\n") {}
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{said}");
        said
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_service_manager_hears_of_each_daemons_life() {
    for daemon in &DAEMONS {
        let folder = tempfile::tempdir().unwrap();
        let service = Service::start(folder.path(), daemon, daemon.config, daemon.run);
        let word = service.manager.hear();
        assert!(
            word.starts_with("READY=1\nSTATUS="),
            "{}: {word}",
            daemon.name
        );
        assert!(word.len() > "READY=1\nSTATUS=\n".len(), "{word}");
        assert!(
            service.folder.join(daemon.leaves).exists(),
            "{}",
            daemon.leaves
        );
        (0..3).for_each(|_| service.manager.hear_of_life());

        let key = daemon.key;
        service.reload(&daemon.with(daemon.wrong));
        (0..2).for_each(|_| service.manager.hear_of_life());
        service.reload(&daemon.with(daemon.good));
        (0..2).for_each(|_| service.manager.hear_of_life());
        let said = service.end();
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("configuration was read") || line.contains("goes on with"))
            .collect();
        let [broken, good] = lines[..] else {
            panic!("{}: {said}", daemon.name)
        };
        assert!(
            broken.contains("goes on with the settings it has") && broken.contains(key),
            "{said}"
        );
        assert!(good.contains("the configuration was read again"), "{said}");
    }
}

#[test]
fn the_clerk_is_a_service_too() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(folder.path(), &CLERK, CLERK.config, CLERK.run);
    let word = service.manager.hear();
    assert!(word.starts_with("READY=1\nSTATUS="), "{word}");
    let sockets = [CLERK.leaves, "clerk-status.sock"].map(|name| folder.path().join(name));
    assert!(sockets.iter().all(|socket| socket.exists()));
    assert_eq!(service.end(), "");
    assert!(sockets.iter().all(|socket| !socket.exists()));
}

#[test]
fn the_shipper_is_a_service_too() {
    let folder = tempfile::tempdir().unwrap();
    let agent = &DAEMONS[0];
    let mut command = agent.command();
    let traced = command
        .env("STATE_DIRECTORY", folder.path())
        .args([
            "run",
            "--socket",
            "none",
            "--interval",
            "100ms",
            "--samples",
            "1",
        ])
        .output();
    assert!(traced.unwrap().status.success());
    // Nobody listens there: it waits, and is well.
    let config = "[ship]\ncollector = \"http://127.0.0.1:1\"\ninterval = \"100ms\"\n";
    let service = Service::start(folder.path(), agent, config, &["ship"]);
    let word = service.manager.hear();
    assert!(word.starts_with("READY=1\nSTATUS=shipping "), "{word}");
    (0..3).for_each(|_| service.manager.hear_of_life());
    let word = service.manager.hear();
    assert!(word.starts_with("STATUS=waiting: "), "{word}");
    service.end();
}

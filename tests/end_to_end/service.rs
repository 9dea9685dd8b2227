//! Every daemon as a service: it reports its state to the service manager, reloads its configuration on
//! SIGHUP, and uses the folders that the service manager names.

use crate::configuration::{CLERK, DAEMONS, Daemon};
use gleaner_harness::{PATIENCE, Running};
use rustix::process::Signal;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// A stand-in for the service manager, which receives a daemon's messages.
struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    fn at(path: &Path) -> Self {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket }
    }

    /// Waits for the next message other than a watchdog signal.
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

/// A daemon that was started as a service manager starts it.
struct Service {
    running: Running,
    folder: PathBuf,
    config: PathBuf,
    manager: Manager,
}

impl Service {
    /// Starts the daemon with this configuration. As a service manager does, names the folders for its files.
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
        Self {
            running: Running::start(command.args(args)),
            folder: folder.to_owned(),
            config: file,
            manager,
        }
    }

    fn reload(&self, config: &str) {
        std::fs::write(&self.config, config).unwrap();
        self.running.signal(Signal::HUP);
        let word = self.manager.hear();
        assert!(word.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{word}");
        let mut word = self.manager.hear();
        while word.starts_with("STATUS=") {
            word = self.manager.hear();
        }
        assert!(word.starts_with("READY=1\n"), "{word}");
    }

    /// Ends the daemon; returns its output.
    fn end(self) -> Vec<String> {
        self.running.signal(Signal::TERM);
        while !self.manager.hear().starts_with("STOPPING=1\n") {}
        let (code, said) = self.running.ended();
        assert_eq!(code, Some(0), "{said:?}");
        said
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

        for config in [
            daemon.with(daemon.wrong),
            daemon.with(daemon.good),
            daemon.fixed.to_owned(),
        ] {
            service.reload(&config);
            (0..2).for_each(|_| service.manager.hear_of_life());
        }
        let said = service.end();
        let words = [
            "configuration was reloaded",
            "continues with",
            "after a restart",
        ];
        let of_these = |line: &&String| words.iter().any(|word| line.contains(word));
        let lines: Vec<&String> = said.iter().filter(of_these).collect();
        let [broken, good, fixed, left_out] = lines[..] else {
            panic!("{}: {said:#?}", daemon.name)
        };
        assert!(
            broken.contains("continues with its present settings") && broken.contains(daemon.key),
            "{said:#?}"
        );
        for read in [good, fixed] {
            assert!(read.contains("the configuration was reloaded"), "{said:#?}");
        }
        let expected = format!("changes of {} take effect after a restart", daemon.left_out);
        assert!(left_out.ends_with(&expected), "{left_out}");
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
    assert_eq!(service.end(), [""; 0]);
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
            "--sample-interval",
            "100ms",
            "--samples",
            "1",
        ])
        .output();
    assert!(traced.unwrap().status.success());
    // No collector listens at this address. The shipper waits, and still reports that it is alive.
    let config = "[ship]\ncollector = \"http://127.0.0.1:1\"\nbatch_interval = \"100ms\"\n";
    let service = Service::start(folder.path(), agent, config, &["ship"]);
    let word = service.manager.hear();
    assert!(word.starts_with("READY=1\nSTATUS=shipping "), "{word}");
    (0..3).for_each(|_| service.manager.hear_of_life());
    let word = service.manager.hear();
    assert!(word.starts_with("STATUS=waiting: "), "{word}");
    service.end();
}

//! A host and its servers on loopback, which the doctor examines.

use crate::delivery::running::{Running, wait_for};
use gleaner_tests::program;
use gleaner_trust::{Authority, Role, Validity};
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// A running agent, shipper and collector, with certificates.
pub(super) struct Clinic {
    folder: tempfile::TempDir,
    pub(super) authority: Authority,
    pub(super) url: String,
    pub(super) agent: Option<Running>,
    pub(super) shipper: Option<Running>,
    pub(super) collector: Option<Running>,
}

impl Clinic {
    /// Starts all three daemons, and waits until the collector has the first samples.
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        let (pki, configuration) = (path.join("pki"), path.join("etc"));
        fs::create_dir(&configuration).unwrap();
        let authority = Authority::init(&pki, "test", 3650).unwrap();
        let names = vec!["127.0.0.1".to_owned()];
        let issued = authority.issue(&Role::Collector { names }, 365).unwrap();
        let collector = pki.join("collector");
        let (certificate, key) = (
            collector.with_extension("crt"),
            collector.with_extension("key"),
        );
        issued.write(&certificate, &key).unwrap();
        let (listen, local) = (free_port(), free_port());
        let text = format!(
            "data_folder = {:?}\nlisten = \"127.0.0.1:{listen}\"\nlocal_listen = \"127.0.0.1:{local}\"\npki = {pki:?}\n\
             seal_after = \"1s\"\ndisk_reserve = \"1MiB\"\nconnections_limit = 100\n",
            path.join("collected")
        );
        fs::write(configuration.join("collector.toml"), text).unwrap();
        let text = format!(
            "sample_interval = \"1s\"\ndatabase = {:?}\nsocket = {:?}\ndatabase_limit = \"64MiB\"\n\
             [ship]\nbatch_interval = \"200ms\"\ntimeout = \"5s\"\n",
            path.join("trace/trace.db"),
            path.join("agent.sock")
        );
        fs::write(configuration.join("agent.toml"), text).unwrap();
        let mut clinic = Self {
            folder,
            authority,
            url: format!("https://127.0.0.1:{listen}"),
            agent: None,
            shipper: None,
            collector: None,
        };
        clinic.collector = Some(clinic.run(
            "gleaner-collector",
            "collector.toml",
            "run",
            "listening on http:",
        ));
        let token = clinic.token(None);
        clinic.applies(&format!(
            "{} enroll {} {token} --config {}",
            program("gleaner-agent").unwrap().display(),
            clinic.url,
            clinic.configuration("agent.toml").display()
        ));
        clinic.agent = Some(clinic.run("gleaner-agent", "agent.toml", "run", "sampling"));
        clinic.shipper = Some(clinic.run("gleaner-agent", "agent.toml", "ship", "shipping"));
        clinic
    }

    /// Runs a daemon with its configuration, and waits until its output contains `words`.
    pub(super) fn run(&self, name: &str, file: &str, command: &str, words: &str) -> Running {
        let mut run = Command::new(program(name).unwrap());
        let running = Running::start(
            run.arg(command)
                .arg("--config")
                .arg(self.configuration(file)),
        );
        running.hear(words);
        running
    }

    pub(super) fn configuration(&self, file: &str) -> PathBuf {
        self.folder.path().join("etc").join(file)
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn token(&self, host_id: Option<&str>) -> String {
        self.authority.new_token(DAY, host_id).unwrap()
    }

    /// Replaces this host's certificate by one that became valid `from` days ago and ended `ended` days ago.
    pub(super) fn replace_host_certificate(&self, host_id: &str, from: u32, ended: u32) {
        let now = SystemTime::now();
        let validity = Validity {
            from: now - DAY * from,
            until: now - DAY * ended,
        };
        let role = Role::Host {
            host_id: host_id.to_owned(),
        };
        let issued = self.authority.issue_for(&role, &validity).unwrap();
        let path = self.path("trace/ship/host.pem");
        fs::write(
            path,
            format!("{}{}", issued.certificate_pem, issued.key_pem),
        )
        .unwrap();
    }

    /// Runs the doctor for these daemons; returns its diagnosis.
    pub(super) fn diagnose(&self, daemons: &[&str]) -> Diagnosis {
        self.diagnose_with(program("gleaner").unwrap().parent().unwrap(), daemons)
    }

    /// Runs the doctor like [`Self::diagnose`], with programs from another folder.
    pub(super) fn diagnose_with(&self, programs: &Path, daemons: &[&str]) -> Diagnosis {
        let mut doctor = Command::new(program("gleaner").unwrap());
        doctor.args(["doctor", "--json"]).args(daemons);
        doctor
            .arg("--config-folder")
            .arg(self.path("etc"))
            .arg("--programs")
            .arg(programs);
        Diagnosis::of(&mut doctor)
    }

    /// Waits until the doctor finds no fault: the effect of a remedy may become visible a moment later.
    #[track_caller]
    pub(super) fn is_well(&self, daemons: &[&str]) {
        self.finds(daemons, &[]);
    }

    /// Waits until the doctor finds exactly these faults (daemon and code). On a busy machine it may also
    /// report late samples for a moment.
    #[track_caller]
    pub(super) fn finds(&self, daemons: &[&str], faults: &[(&str, &str)]) -> Diagnosis {
        self.finds_with(
            program("gleaner").unwrap().parent().unwrap(),
            daemons,
            faults,
        )
    }

    /// Waits like [`Self::finds`], with programs from another folder.
    #[track_caller]
    pub(super) fn finds_with(
        &self,
        programs: &Path,
        daemons: &[&str],
        faults: &[(&str, &str)],
    ) -> Diagnosis {
        let owned = faults
            .iter()
            .map(|(daemon, code)| ((*daemon).to_owned(), (*code).to_owned()));
        let expected: Vec<_> = owned.collect();
        let mut last = Vec::new();
        let mut found = self.diagnose_with(programs, daemons);
        wait_for("the doctor to find this, and no more", || {
            found = self.diagnose_with(programs, daemons);
            if found.faults() != last {
                last = found.faults();
                println!("{:#}", found.0); // shown if the test fails
            }
            last == expected
        });
        found
    }

    /// Runs the command of a remedy, with the built `gleaner`.
    #[track_caller]
    pub(super) fn applies(&self, command: &str) {
        let output = shell(command).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {said}");
    }
}

/// Command that runs a shell in which the built programs are found.
pub(super) fn shell(command: &str) -> Command {
    let programs = program("gleaner").unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell.env(
        "PATH",
        format!("{}:{path}", programs.parent().unwrap().display()),
    );
    shell
}

/// Diagnosis that the doctor printed as JSON.
pub(super) struct Diagnosis(pub(super) Value);

impl Diagnosis {
    /// Runs the doctor, and asserts that its exit code agrees with the diagnosis.
    #[track_caller]
    pub(super) fn of(doctor: &mut Command) -> Self {
        let output = doctor.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
        let expected = if document["fault_count"] == 0 { 0 } else { 3 };
        assert_eq!(output.status.code(), Some(expected), "{document:#} {said}");
        Self(document)
    }

    fn checks(&self) -> impl Iterator<Item = &Value> {
        self.0["checks"].as_array().unwrap().iter()
    }

    /// Daemon and code of each fault.
    pub(super) fn faults(&self) -> Vec<(String, String)> {
        let faults = self.checks().filter(|check| check["state"] == "fault");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        faults
            .map(|check| (text(&check["daemon"]), text(&check["code"])))
            .collect()
    }

    /// Finds the check of this daemon with this code.
    #[track_caller]
    pub(super) fn find(&self, daemon: &str, code: &str) -> &Value {
        let mut checks = self.checks();
        let found = checks.find(|check| check["daemon"] == daemon && check["code"] == code);
        found.unwrap_or_else(|| panic!("no {code} of {daemon}: {:#}", self.0))
    }

    /// Command with which the fault can be fixed, as the diagnosis states it.
    #[track_caller]
    pub(super) fn remedy(&self, daemon: &str, code: &str) -> String {
        self.find(daemon, code)["remedy"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

/// Returns a port on which nobody listens. It is below the ports that the kernel assigns by itself (ip(7):
/// 32768 and above).
pub(super) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        // Other test processes that run at the same time start at other ports.
        let offset = std::process::id().wrapping_mul(37).wrapping_add(next) % 12_000;
        let port = 20_000 + u16::try_from(offset).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

//! A host enrols with a collector, ships over mutual TLS, renews its certificate, and is revoked.

use gleaner_dataset::Dataset;
use gleaner_harness::{Running, succeed, wait_for};
use gleaner_schemas::rows::table;
use gleaner_tests::program;
use gleaner_trust::{Authority, Role, Validity};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(86_400);

/// A deployment in a folder: an authority, a collector and one host.
struct Deployment {
    folder: PathBuf,
    authority: Authority,
    collector: Running,
    url: String,
}

impl Deployment {
    fn start(folder: &Path) -> Self {
        let pki = folder.join("pki");
        let authority = Authority::init(&pki, "test", 3650).unwrap();
        let names = vec!["127.0.0.1".to_owned()];
        let issued = authority.issue(&Role::Collector { names }, 365).unwrap();
        fs::write(pki.join("collector.crt"), issued.certificate_pem).unwrap();
        fs::write(pki.join("collector.key"), issued.key_pem).unwrap();
        let config = folder.join("collector.toml");
        let text = format!(
            "data_folder = {:?}\nlisten = \"127.0.0.1:0\"\nlocal_listen = \"none\"\npki = {pki:?}\nseal_after = \"1s\"\ndisk_reserve = \"1MiB\"\n",
            folder.join("collected")
        );
        fs::write(&config, text).unwrap();
        let mut run = Command::new(program("gleaner-collector").unwrap());
        let collector = Running::start(run.arg("--config").arg(config).arg("run"));
        let said = collector.hear("listening on https://");
        let url = said
            .split_whitespace()
            .find(|word| word.starts_with("https://"))
            .unwrap();
        Self {
            folder: folder.to_owned(),
            authority,
            url: url.to_owned(),
            collector,
        }
    }

    fn agent(&self) -> Command {
        let config = self.folder.join("agent.toml");
        fs::write(
            &config,
            "socket = \"none\"\n[ship]\nbatch_interval = \"100ms\"\ntimeout = \"5s\"\n",
        )
        .unwrap();
        let mut command = Command::new(program("gleaner-agent").unwrap());
        command
            .arg("--config")
            .arg(config)
            .arg("--database")
            .arg(self.database());
        command
    }

    fn database(&self) -> PathBuf {
        self.folder.join("trace.db")
    }

    fn host_file(&self) -> PathBuf {
        self.folder.join("ship/host.pem")
    }

    fn sample(&self) {
        succeed(
            self.agent()
                .args(["run", "--sample-interval", "100ms", "--samples", "2"]),
        );
    }

    /// Replaces the host's certificate by another one from this deployment's authority.
    fn replace(&self, host_id: &str, validity: &Validity) {
        let role = Role::Host {
            host_id: host_id.to_owned(),
        };
        let issued = self.authority.issue_for(&role, validity).unwrap();
        let new = self.host_file().with_extension("other");
        fs::write(
            &new,
            format!("{}{}", issued.certificate_pem, issued.key_pem),
        )
        .unwrap();
        fs::rename(new, self.host_file()).unwrap();
    }
}

#[track_caller]
fn fail(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(!output.status.success(), "{command:?} succeeded");
    String::from_utf8(output.stderr).unwrap()
}

fn days_from_now(from: u32, until: u32) -> Validity {
    let now = SystemTime::now();
    Validity {
        from: now - DAY * from,
        until: now + DAY * until,
    }
}

#[test]
fn from_enrolment_to_revocation() {
    let folder = tempfile::tempdir().unwrap();
    let deployment = Deployment::start(folder.path());
    let token = deployment.authority.new_token(DAY, None).unwrap();

    // With a token of another deployment, the host sends nothing to this collector.
    let other = Authority::init(&folder.path().join("other"), "other", 10).unwrap();
    let foreign = other.new_token(DAY, None).unwrap();
    let said = fail(
        deployment
            .agent()
            .args(["enroll", &deployment.url, &foreign]),
    );
    assert!(said.contains("authority"), "{said}");
    assert!(!deployment.host_file().exists());

    let said = succeed(
        deployment
            .agent()
            .args(["enroll", "--json", &deployment.url, &token]),
    );
    let enrolled: serde_json::Value = serde_json::from_str(&said).unwrap();
    let host_id = enrolled["host_id"].as_str().unwrap().to_owned();
    let mode = fs::metadata(deployment.host_file())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut files: Vec<_> = fs::read_dir(folder.path().join("ship"))
        .unwrap()
        .map(|f| f.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["authority.crt", "collector.url", "host.pem"]);
    let said = fail(deployment.agent().args(["enroll", &deployment.url, &token]));
    assert!(said.contains("token used already"), "{said}");

    deployment.sample();
    let text = succeed(deployment.agent().args(["ship", "--once"]));
    assert!(text.contains("in 1 batches"), "{text}");
    let dataset = folder.path().join("collected/dataset");
    wait_for("the samples to be sealed", || {
        let sealed = Dataset::open(&dataset);
        sealed.is_ok_and(|d| d.rows(&table("samples").unwrap()) == 2)
    });

    // The shipper renews a certificate that is about to expire, and continues with the new one.
    let shipper = Running::start(deployment.agent().arg("ship"));
    shipper.hear("shipping");
    deployment.replace(&host_id, &days_from_now(60, 5));
    let short = fs::read_to_string(deployment.host_file()).unwrap();
    shipper.hear("the certificate is renewed");
    assert_ne!(fs::read_to_string(deployment.host_file()).unwrap(), short);
    deployment.sample();
    let pending = || {
        let status = deployment
            .agent()
            .args(["status", "--json"])
            .output()
            .unwrap();
        let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
        status["shipping"]["pending_records_count"].as_i64()
    };
    wait_for("the rest to be shipped", || pending() == Some(0));

    // With the certificate of another host, nothing is shipped, and the shipper reports the reason.
    deployment.replace(&"0".repeat(32), &days_from_now(1, 50));
    deployment.sample();
    let said = shipper.hear("does not admit this host");
    assert!(said.contains("403"), "{said}");
    deployment.replace(&host_id, &days_from_now(1, 50));
    shipper.hear("shipping again");
    wait_for("the rest to be shipped", || pending() == Some(0));

    // After the revocation, the collector rejects the host from the next request on, although the connection
    // is already open.
    deployment.authority.revoke(&host_id).unwrap();
    wait_for("the revocation to be heeded", || {
        deployment.sample();
        let said = shipper.said();
        said.iter()
            .any(|line| line.contains("does not admit this host"))
    });
    assert!(pending() > Some(0));
    deployment.collector.hear("Revoked");
}

//! nginx with TLS as the source.

use super::mounted::assert_equal;
use super::stage::{Stage, commons};
use gleaner_harness::{Random, Running, succeed, unused_address, wait_for};
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

/// Debian's nginx, unpacked by tests/setup.
const NGINX: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../target/nginx/usr/sbin/nginx"
);

/// Creates an authority, `authority.crt`, and the server's certificate for `address`, `server.crt` and `server.key`.
fn create_certificates(folder: &Path, address: IpAddr) {
    let openssl = |arguments: &str| {
        let mut command = Command::new("openssl");
        succeed(command.args(arguments.split(' ')).current_dir(folder))
    };
    let key = "req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -days 2";
    openssl(&format!(
        "{key} -subj /CN=authority -keyout authority.key -out authority.crt -addext keyUsage=keyCertSign"
    ));
    openssl(&format!(
        "{key} -subj /CN=server -keyout server.key -out server.crt -CA authority.crt -CAkey authority.key \
         -addext subjectAltName=IP:{address} -addext basicConstraints=critical,CA:FALSE"
    ));
}

/// Starts nginx with the files of `root`.
fn serve(folder: &Path, root: &Path, address: SocketAddr) -> Running {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {}; ", folder.display()))
        .concat();
    let (here, root) = (folder.display(), root.display());
    let config = format!(
        "daemon off; master_process off; pid {here}/pid; error_log {here}/error.log;
        events {{ }}
        http {{
            access_log {here}/access.log; {temporary}
            server {{
                listen {address} ssl; root {root};
                ssl_certificate {here}/server.crt; ssl_certificate_key {here}/server.key;
            }}
        }}"
    );
    fs::write(folder.join("nginx.conf"), config).unwrap();
    let mut command = Command::new(NGINX);
    command.arg("-e").arg(folder.join("error.log"));
    let running = Running::start(command.arg("-c").arg(folder.join("nginx.conf")));
    wait_for("nginx", || TcpStream::connect(address).is_ok());
    running
}

#[test]
fn nginx_with_a_certificate_of_a_trusted_authority_is_a_source_and_others_are_not() {
    let stage = Stage::new(&mut Random::new());
    let folder = tempfile::tempdir().unwrap();
    let address = unused_address();
    create_certificates(folder.path(), address.ip());
    let server = serve(folder.path(), &stage.input(), address);
    let source = format!("https://{address}");
    // SSL_CERT_FILE stands for the system's authorities.
    let verify = |authorities: &str| {
        let mut command = commons();
        command.arg("verify").arg(stage.catalog());
        command.args(["--source", &source]);
        let authorities = folder.path().join(authorities);
        command.env("SSL_CERT_FILE", authorities).output().unwrap()
    };
    let verified = verify("authority.crt");
    let said = String::from_utf8_lossy(&verified.stdout);
    assert!(verified.status.success(), "{said}");
    let refused = verify("server.crt");
    let said = String::from_utf8_lossy(&refused.stdout);
    assert_eq!(refused.status.code(), Some(3));
    assert!(said.contains("invalid peer certificate"), "{said}");

    let mounted = stage.mount_with(
        "https",
        stage
            .command("https", &source, &["--kernel-cache", "false"])
            .env("SSL_CERT_FILE", folder.path().join("authority.crt")),
    );
    assert_equal(&mounted.point, &stage.input());
    assert!(mounted.figure("source_reads_count") > 0);
    let log = fs::read_to_string(folder.path().join("access.log")).unwrap();
    assert!(log.lines().any(|line| line.contains("\" 206 ")), "{log}");
    assert_eq!(mounted.end(), [""; 0]);
    server.kill();
}

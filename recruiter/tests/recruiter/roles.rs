//! Tests of each role's rights, over real TLS.

use crate::hosts::{Host, id};
use crate::running::{
    Answer, GIB, MIB, QUICK, Recruiter, agent_with, answer, asked, get, wait_for,
};
use gleaner_trust::{
    AUTHORITY_DAYS, Authority, ClientPaths, ClientTrust, Credentials, IssuedCertificate, Role,
};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;

/// A recruiter's authority, and the certificates that it issues.
struct Deployment {
    folder: tempfile::TempDir,
    authority: Authority,
}

impl Deployment {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority =
            Authority::init(&folder.path().join("pki"), "test", AUTHORITY_DAYS).unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let deployment = Self { folder, authority };
        let issued = deployment.authority.issue(&Role::Recruiter { names }, 365);
        deployment.write("pki/recruiter", &issued.unwrap());
        deployment
    }

    fn write(&self, name: &str, issued: &IssuedCertificate) {
        fs::write(self.path(&format!("{name}.key")), &issued.key_pem).unwrap();
        fs::write(self.path(&format!("{name}.crt")), &issued.certificate_pem).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self) -> Recruiter {
        let pki = self.path("pki");
        let config = format!(
            "listen = \"127.0.0.1:0\"\nlocal_listen = \"127.0.0.1:0\"\npki = {pki:?}\n{QUICK}"
        );
        Recruiter::start_as(self.folder.path(), &config)
    }

    fn trust(&self, role: &Role) -> Arc<ClientTrust> {
        let name = format!("{}-{}", role.kind(), role.name());
        self.write(&name, &self.authority.issue(role, 90).unwrap());
        let paths = ClientPaths {
            certificate: self.path(&format!("{name}.crt")),
            key: self.path(&format!("{name}.key")),
            authority: self.path("pki/authority.crt"),
        };
        ClientTrust::load(&paths).unwrap()
    }

    fn agent(&self, role: &Role) -> Agent {
        agent_with(&self.trust(role).credentials())
    }

    fn stranger(&self) -> Agent {
        let token = self
            .authority
            .new_token(Duration::from_secs(60), None)
            .unwrap();
        let pem = self.authority.certificate_pem();
        agent_with(&Credentials::for_enrolment(pem, &token).unwrap())
    }

    /// TLS settings of a host's link.
    fn of_host(&self, host_id: &str) -> Arc<rustls::ClientConfig> {
        let host_id = host_id.to_owned();
        self.trust(&Role::Host { host_id }).credentials().config()
    }
}

fn named(name: &str) -> String {
    name.to_owned()
}

#[test]
fn each_role_may_do_its_own_and_no_more() {
    let deployment = Deployment::new();
    let recruiter = deployment.start();
    let url = recruiter.tls_url.clone().unwrap();
    let status = |agent: &Agent, path: &str| get(agent, &format!("{url}{path}")).status;
    let lease = |agent: &Agent, key: &str| -> Answer {
        let sent = agent
            .post(format!("{url}/v1/leases"))
            .send_json(asked(MIB, key));
        answer(sent.unwrap())
    };
    let client = deployment.agent(&Role::Client {
        name: named("pager"),
    });
    let other = deployment.agent(&Role::Client {
        name: named("cache"),
    });
    let reader = deployment.agent(&Role::Reader { name: named("ada") });
    let admin = deployment.agent(&Role::Admin {
        name: named("grace"),
    });
    let host = deployment.agent(&Role::Host { host_id: id(1) });
    let stranger = deployment.stranger();

    let mut memory_server = Host::new(1, GIB);
    let port = url.rsplit('/').next().unwrap().to_owned();
    memory_server.link_with(&port, Some(deployment.of_host(&id(1))));
    recruiter.ready(1);

    let who = [&client, &reader, &admin, &host, &stranger];
    for (path, wanted) in [
        ("/healthz", [200, 200, 200, 200, 200]),
        ("/openapi.json", [200, 200, 200, 200, 200]),
        ("/v1/quotas", [200, 200, 200, 403, 401]),
        ("/v1/hosts", [200, 200, 200, 403, 401]),
        ("/metrics", [403, 200, 200, 403, 401]),
        ("/v1/commons", [200, 200, 200, 403, 401]),
        // A host sees the leases of its own memory that it holds itself.
        ("/v1/leases", [200, 403, 200, 200, 401]),
    ] {
        assert_eq!(who.map(|agent| status(agent, path)), wanted, "{path}");
    }
    assert_eq!(
        who.map(|agent| lease(agent, "x").status),
        [201, 403, 201, 403, 401]
    );
    let refused = lease(&reader, "x");
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(
        detail.contains("reader ada") && detail.contains("--client"),
        "{detail}"
    );

    // The client's name comes from its certificate.
    let granted = lease(&client, "mine");
    assert_eq!(
        granted.body["leases"][0]["client"], "pager",
        "{}",
        granted.body
    );
    let id = granted.body["leases"][0]["lease_id"].as_str().unwrap();
    let path = format!("/v1/leases/{id}");
    assert_eq!(status(&client, &path), 200);
    assert_eq!(status(&other, &path), 403);
    assert_eq!(status(&admin, &path), 200);
    let posed = client
        .get(format!("{url}/v1/leases"))
        .header("Gleaner-Client", "cache")
        .call()
        .unwrap();
    assert_eq!(posed.status(), 403);
    let ended = |agent: &Agent| {
        agent
            .delete(format!("{url}{path}"))
            .call()
            .unwrap()
            .status()
    };
    assert_eq!(ended(&other), 403);
    assert_eq!(ended(&admin), 204);
    assert_eq!(status(&client, &path), 404);

    // By default, programs of this machine may read without TLS.
    assert_eq!(recruiter.get("/v1/quotas").status, 200);
    assert_eq!(recruiter.get("/metrics").status, 200);
    let refused = recruiter.lease("pager", &asked(MIB, "b"));
    assert_eq!(refused.status, 403);
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("local_access"), "{detail}");
}

#[test]
fn a_host_speaks_for_itself_alone_until_it_is_revoked() {
    let deployment = Deployment::new();
    let recruiter = deployment.start();
    let url = recruiter.tls_url.clone().unwrap();
    let mut impostor = Host::new(1, GIB);
    impostor.link_with(&url, Some(deployment.of_host(&id(2))));
    let said = recruiter.hear("may not speak for host");
    assert!(said.contains(&id(2)) && said.contains(&id(1)), "{said}");
    drop(impostor);

    let mut honest = Host::new(3, GIB);
    honest.link_with(&url, Some(deployment.of_host(&id(3))));
    recruiter.ready(1);
    deployment.authority.revoke(&id(3)).unwrap();
    wait_for("the link to end", || {
        recruiter.get("/healthz").body["links_count"] == 0
    });
    wait_for("the host to hear why", || {
        !honest.state().sent_away.is_empty()
    });
}

#[test]
fn memory_servers_receive_the_lists_in_force_and_older_ones_no_such_message() {
    let deployment = Deployment::new();
    let recruiter = deployment.start();
    let url = recruiter.tls_url.clone().unwrap();
    let [mut of_today, mut older] = [1, 2].map(|number| Host::new(number, GIB));
    of_today.state().accepts_revocation_lists = true;
    for (host, number) in [(&mut of_today, 1), (&mut older, 2)] {
        host.link_with(&url, Some(deployment.of_host(&id(number))));
    }
    recruiter.ready(2);
    let received = |wanted: &str| {
        let list = fs::read_to_string(deployment.authority.revoked_path()).unwrap();
        let words = |pem: &str| pem.split_whitespace().collect::<String>();
        wait_for(wanted, || {
            let state = of_today.state();
            state.revocations.last().map(|pem| words(pem)) == Some(words(&list))
        });
    };
    received("the first list");
    let role = Role::Client {
        name: named("pager"),
    };
    deployment.trust(&role);
    deployment.authority.revoke("pager").unwrap();
    received("the next list");
    assert_eq!(of_today.state().revocations.len(), 2, "of each once");
    // A host that links later also gets the lists.
    of_today.leave();
    of_today.link_with(&url, Some(deployment.of_host(&id(1))));
    wait_for("the list on a new link", || {
        of_today.state().revocations.len() == 3
    });
    recruiter.ready(2);
    assert!(older.state().revocations.is_empty() && older.state().sent_away.is_empty());
}

#[test]
fn a_host_leases_its_own_memory_and_nobody_elses() {
    let deployment = Deployment::new();
    let recruiter = deployment.start();
    let url = recruiter.tls_url.clone().unwrap();
    let ask = |agent: &Agent, key: &str, host_id: Option<&str>| -> Answer {
        let mut request = asked(MIB, key);
        if let Some(host_id) = host_id {
            request["host_id"] = host_id.into();
        }
        let sent = agent.post(format!("{url}/v1/leases")).send_json(request);
        answer(sent.unwrap())
    };
    let [own, other] = [id(1), id(2)];
    let host = deployment.agent(&Role::Host {
        host_id: own.clone(),
    });
    let neighbour = deployment.agent(&Role::Host {
        host_id: other.clone(),
    });
    let client = deployment.agent(&Role::Client {
        name: named("pager"),
    });
    let admin = deployment.agent(&Role::Admin {
        name: named("grace"),
    });
    let mut servers = [1, 2].map(|number| Host::new(number, GIB));
    for (server, host_id) in servers.iter_mut().zip([&own, &other]) {
        server.link_with(&url, Some(deployment.of_host(host_id)));
    }
    recruiter.ready(2);

    let refused = ask(&host, "a", Some(&own));
    assert_eq!(refused.status, 503, "{}", refused.body);
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("pages_socket"), "{detail}");
    servers[0].state().pages_socket = Some("/run/x/pages.sock".to_owned());
    let mut granted = refused;
    wait_for("the host's socket to be announced", || {
        granted = ask(&host, "a", Some(&own));
        granted.status == 201
    });
    let lease = &granted.body["leases"][0];
    assert_eq!(lease["host_id"], own.as_str());
    assert_eq!(lease["client"], format!("host:{own}"));
    assert_eq!(lease["address"], "/run/x/pages.sock");
    assert_eq!(
        (servers[0].leases_count(), servers[1].leases_count()),
        (1, 0)
    );

    for (who, agent, host_id) in [
        ("another host's memory", &host, Some(other.as_str())),
        ("any host's memory", &host, None),
        ("as a client", &client, Some(own.as_str())),
        ("as an admin", &admin, Some(own.as_str())),
        ("as the neighbour", &neighbour, Some(own.as_str())),
    ] {
        let refused = ask(agent, "b", host_id);
        assert_eq!(refused.status, 403, "{who}: {}", refused.body);
        assert_eq!(refused.body["kind"], "forbidden", "{who}");
    }
    assert_eq!(
        (servers[0].leases_count(), servers[1].leases_count()),
        (1, 0)
    );
    let path = format!("{url}/v1/leases/{}", lease["lease_id"].as_str().unwrap());
    assert_eq!(get(&host, &path).status, 200);
    assert_eq!(get(&neighbour, &path).status, 403);
    assert_eq!(get(&client, &path).status, 403);
    assert_eq!(neighbour.delete(&path).call().unwrap().status(), 403);
    assert_eq!(host.delete(&path).call().unwrap().status(), 204);
    wait_for("the lease to end", || servers[0].leases_count() == 0);

    let mut request = asked(MIB, "c");
    request["host_id"] = own.as_str().into();
    request["copies"] = 2.into();
    let sent = host.post(format!("{url}/v1/leases")).send_json(request);
    let contradicts = answer(sent.unwrap());
    assert_eq!(contradicts.status, 409, "{}", contradicts.body);
    let detail = contradicts.body["detail"].as_str().unwrap();
    assert!(detail.contains("leave out copies"), "{detail}");
}

use super::*;

fn resolve(text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("collector.toml");
    std::fs::write(&path, text).unwrap();
    let args = GlobalArgs {
        config: Some(path),
        data_folder: None,
    };
    Config::resolve(&args).map_err(|e| e.to_string())
}

#[test]
fn the_documented_file_has_every_key_and_its_default() {
    let documented = include_str!("../../../docs/collector.toml");
    let show = |text: &str| resolve(text).map(|config| format!("{config:?}"));
    config::check_documented::<ConfigFile>(documented, show).unwrap();
    for key in config::uncommented(documented) {
        let publish = match key.path[0].as_str() {
            "publish_options" => "publish = \"s3://traces\"\n",
            "publish" | "publish_grace" => "",
            _ => continue, // an example is useless alone
        };
        resolve(&format!("{publish}{}", key.text)).unwrap();
    }
}

#[test]
fn tables_have_a_folder_of_their_own() {
    let config = |more: &str| resolve(&format!("dataset = \"/srv/dataset\"\n[tables]\n{more}"));
    assert_eq!(config("every = \"1d\"").unwrap().tables, None);
    let text = "folder = \"/srv/dataset-tables\"\nlocation = \"s3://traces/tables\"";
    let tables = config(text).unwrap().tables.unwrap();
    assert_eq!(tables.folder, Path::new("/srv/dataset-tables"));
    assert_eq!(tables.every, TABLES_EVERY);
    let options = TableOptions {
        location: Some("s3://traces/tables".to_owned()),
        reserve_bytes: 1 << 30,
        ..TableOptions::default()
    };
    assert_eq!(tables.options, options);
    for folder in [
        "tables",
        "/",
        "/srv",
        "/srv/dataset",
        "/srv/dataset/a",
        "/srv/50%",
    ] {
        let error = config(&format!("folder = {folder:?}")).unwrap_err();
        assert!(error.contains("line 3: tables.folder: "), "{error}");
    }
}

#[test]
fn peers_have_addresses_and_a_readers_certificate() {
    let east = "https://east.example:7443";
    let config = |more: &str, urls: &[&str]| {
        let tls = "listen = \"0.0.0.0:7443\"\nname = \"west\"\n";
        resolve(&format!("{tls}{more}\n[peers]\nurls = {urls:?}"))
    };
    let pki = "pki = \"/etc/gleaner/pki\"";
    let peers = config(pki, &[east, "https://west.example:7443"])
        .unwrap()
        .peers;
    assert_eq!(peers.urls.len(), 2);
    let reader = peers.reader.unwrap();
    assert_eq!(reader.certificate, Path::new("/etc/gleaner/pki/peers.crt"));
    assert_eq!(
        reader.authority,
        Path::new("/etc/gleaner/pki/authority.crt")
    );
    let plain = config(pki, &["http://127.0.0.1:7481"]).unwrap().peers;
    assert!(plain.reader.is_none());
    let own = "certificate = \"/a.crt\"\nkey = \"/a.key\"\nauthority = \"/ca.crt\"";
    for (more, urls, fault) in [
        (pki, &["east.example:7443"][..], "is no address"),
        (pki, &["http://east.example:7443"], "unencrypted connection"),
        (pki, &[east, east], "is there twice"),
        (own, &[east], "set peers.certificate"),
    ] {
        let error = config(more, urls).unwrap_err();
        assert!(
            error.contains("peers.urls: ") && error.contains(fault),
            "{error}"
        );
    }
    let error = resolve(&format!("[peers]\nurls = [{east:?}]")).unwrap_err();
    assert!(error.contains("need listen"), "{error}");
    let error = resolve("name = \"East\"").unwrap_err();
    assert!(
        error.contains("name: ") && error.contains("lower-case"),
        "{error}"
    );
}

#[test]
fn what_is_kept_is_said_by_table() {
    let config = resolve("[retention]\ndays = 30\nthin_to = \"5m\"").unwrap();
    let retention = config.seal.retention;
    assert_eq!(retention.keep_days.get("samples"), Some(&30));
    assert_eq!(retention.keep_days.get("clocks"), Some(&30));
    assert_eq!(retention.thin_to_ms, 300_000);
}

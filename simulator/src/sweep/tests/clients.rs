//! Tests of recorded clients that run instead of programs.

use super::*;
use crate::dodo::ClientOutcome;
use gleaner_traces::synth::{Parameters, Preset, write};
use std::fs;
use std::path::Path;

const ONE: NonZeroUsize = NonZeroUsize::MIN;

/// Makes two workstations of the study's cluster A for a day; returns their ids.
pub(super) fn two_hosts(folder: &Path) -> Vec<String> {
    let parameters = Parameters {
        days: 1,
        hosts: 2,
        ..Parameters::of_preset(Preset::AcharyaSetiaA, 7).unwrap()
    };
    let cluster = gleaner_traces::synth::Cluster::new(&parameters).unwrap();
    write(&cluster, &folder.join("A"), |_| {}).unwrap();
    let dataset = gleaner_dataset::Dataset::open(folder.join("A")).unwrap();
    dataset.hosts().unwrap()
}

/// CSV stream of a client that requests these objects in turn, one per µs; each object is one block.
pub(super) fn stream(client: u32, objects: &[u64]) -> String {
    let line = |(at, object): (usize, &u64)| {
        let ns = at * 1000;
        format!("0.{ns:09},{object},512,read,{client}\n")
    };
    let header = "time,obj_id,obj_size,op,client\n".to_owned();
    header + &objects.iter().enumerate().map(line).collect::<String>()
}

/// Devices with simple times: a disk takes 1 ns per byte, and the network 1/8 ns per byte and 5 ns per
/// message. All else takes no time, and every host lends.
const BY_HAND: &str = "
    [scenario]
    recruitment = { is_always_idle = true, headroom_share = 0.0 }
    remote.region_bytes = 4096
    network = { bytes_per_s = 8000000000, latency_ns = 5 }
    [scenario.client]
    local_cache_bytes = 0
    [scenario.client.disks]
    seek_mean_ns = 0
    seek_max_ns = 0
    rotation_ns = 0
    media_bytes_per_s = 1000000000
    string_bytes_per_s = 1000000000000000
";

/// Scenario of `text` and `BY_HAND`; its streams are files of `folder`.
pub(super) fn file(text: &str, folder: &Path) -> ScenarioFile {
    let mut file = ScenarioFile::parse(&format!("days = 0.5\n{text}\n{BY_HAND}")).unwrap();
    for table in file.clients.iter_mut().flatten() {
        table.stream = folder.join(&table.stream);
    }
    file
}

pub(super) fn rows(
    file: &ScenarioFile,
    folder: &Path,
    threads: NonZeroUsize,
) -> Result<Vec<Row>, SweepError> {
    let plan = Plan::new(file, vec!["A".to_owned()])?;
    let cluster = Cluster::open("A", &folder.join("A"), None, plan.length_ns)?;
    run(&plan, &[cluster], threads, &|_| {})
}

fn value(row: &Row, key: &str) -> Option<f64> {
    let place = MEASURES.iter().position(|measure| measure.key == key);
    row.values[place.unwrap()].map(|spread| spread.median)
}

fn names_and_ends(clients: &[ClientOutcome]) -> Vec<(&str, Option<u64>)> {
    let told = clients.iter().map(|c| (c.name.as_str(), c.end_ns));
    told.collect()
}

/// Begin of the clients. At this time every host has samples.
const AT_NS: u64 = HOUR;

#[test]
fn two_clients_on_two_hosts_of_which_one_or_both_lend() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let hosts = two_hosts(folder);
    let objects = [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1];
    fs::write(folder.join("web.csv"), stream(0, &objects)).unwrap();
    fs::write(folder.join("mail.csv"), stream(0, &objects)).unwrap();
    let clients = |mail_works_on: &str| {
        format!(
            "[[clients]]\nstream = 'web.csv'\nhost = '{}'\nbegin_s = 3600\n
             [[clients]]\nstream = 'mail.csv'\nbegin_s = 3600\n{mail_works_on}\n
             [sweep]\nremote.region_bytes = [4096, 8192]\n",
            hosts[0]
        )
    };

    // The first client's host lends nothing; the other host lends to both clients. Each client requests a
    // lease at once and has it after 10 ns. It has read the region from disk (4096 ns) at 4106 ns, and stored
    // it remotely (512 + 5 ns) at 4623 ns. Then it ten times computes for 1000 ns and waits 5 + 64 + 5 ns for
    // a block. With regions of 8192 bytes, the first part takes 10 + 8192 + 1024 + 5 = 9231 ns.
    let found = rows(&file(&clients(""), folder), folder, ONE).unwrap();
    let [small, large] = &found[..] else {
        panic!("{found:?}")
    };
    let ends = |ns| vec![("web", Some(AT_NS + ns)), ("mail", Some(AT_NS + ns))];
    assert_eq!(names_and_ends(&small.clients[0]), ends(4623 + 10 * 1074));
    assert_eq!(names_and_ends(&large.clients[0]), ends(9231 + 10 * 1074));
    assert_eq!(small.program.to_string(), "streams");
    let web = &small.clients[0][0];
    assert_eq!(web.host_id.as_ref(), Some(&hosts[0]));
    // From disk: 512 ns for the first request, then ten times 1000 + 512 ns. Ideal: 4096 ns for the region,
    // then ten times 1000 ns.
    assert_eq!((web.baseline_ns, web.ideal_ns), (15_632, 14_096));
    let (speedup, ideal) = (15_632.0 / 15_363.0, 15_632.0 / 14_096.0);
    assert_eq!(value(small, "speedup"), Some(speedup));
    assert_eq!(value(small, "ideal_speedup"), Some(ideal));
    let share = (speedup - 1.0) / (ideal - 1.0);
    assert_eq!(value(small, "gain_share"), Some(share));
    assert_eq!(value(small, "hit_share"), Some(20.0 / 22.0));
    assert_eq!(value(small, "saved_from_disk_bytes"), Some(20.0 * 512.0));
    assert_eq!(value(small, "disk_bytes"), Some(2.0 * 4096.0));
    // With regions of 8192 bytes, even the ideal takes 8192 + 10 * 1000 ns, which is longer than from disk.
    // So no gain is possible.
    assert!(value(large, "ideal_speedup").unwrap() < 1.0);
    assert_eq!(value(large, "gain_share"), None);

    // Each host is in use by a client, so none lends. Each client's request for a lease is refused (10 ns),
    // and the client reads all blocks from disk.
    let both = clients(&format!("host = '{}'", hosts[1]));
    let found = rows(&file(&both, folder), folder, ONE).unwrap();
    assert_eq!(names_and_ends(&found[0].clients[0]), ends(15_632 + 10));
    assert_eq!(value(&found[0], "hit_share"), Some(0.0));
}

#[test]
fn a_stream_of_several_clients_is_read_once_and_they_begin_as_they_did() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let hosts = two_hosts(folder);
    // Client (ASU) 3 makes one request, 2 s after client 0.
    fs::write(folder.join("two.spc"), "0,0,512,r,5.0\n3,8,512,r,7.0\n").unwrap();
    let begins = |text: &str| {
        let found = rows(&file(text, folder), folder, ONE).unwrap();
        let told = found[0].clients[0].iter();
        told.map(|c| (c.name.clone(), c.host_id.clone(), c.begin_ns))
            .collect::<Vec<_>>()
    };
    let expected = |names: [&str; 2]| {
        let ids = hosts.iter().cloned().map(Some);
        let at = [AT_NS, AT_NS + 2_000_000_000];
        let named = names.map(str::to_owned).into_iter();
        named.zip(ids).zip(at).map(|((n, id), at)| (n, id, at))
    };
    let (first, second) = (&hosts[0], &hosts[1]);
    let all = format!(
        "[[clients]]\nstream = 'two.spc'\nblock_bytes = 512\nhost = ['{first}', '{second}']\nbegin_s = 3600"
    );
    let told: Vec<_> = expected(["two-0", "two-3"]).collect();
    assert_eq!(begins(&all), told);
    let each = format!(
        "[[clients]]\nstream = 'two.spc'\nclient = 0\nhost = '{first}'\nbegin_s = 3600
         [[clients]]\nname = 'late'\nstream = 'two.spc'\nclient = 3\nhost = '{second}'\nbegin_s = 3600"
    );
    let told: Vec<_> = expected(["two-0", "late"]).collect();
    assert_eq!(begins(&each), told);
}

#[test]
fn threads_change_nothing_and_seeds_are_told_each() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    two_hosts(folder);
    fs::write(folder.join("web.csv"), stream(4, &[1, 2, 3, 1, 2, 3])).unwrap();
    let text = "seeds = [1, 2]\n[[clients]]\nstream = 'web.csv'\n[[clients]]\nstream = 'web.csv'\nname = 'again'
        [sweep]\nremote.placement = ['random', 'spread', 'stick']";
    let file = file(text, folder);
    let found = rows(&file, folder, ONE).unwrap();
    assert_eq!((found.len(), found[0].clients.len()), (3, 2));
    let three = NonZeroUsize::new(3).unwrap();
    assert_eq!(found, rows(&file, folder, three).unwrap());
}

#[test]
fn what_cannot_be_is_refused_by_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let hosts = two_hosts(folder);
    fs::write(folder.join("web.csv"), stream(4, &[1, 2])).unwrap();
    fs::write(folder.join("none.csv"), "time,obj_id,obj_size,op,client\n").unwrap();
    let torn = stream(0, &[1, 2]) + "soon,3,512,read,0\n";
    fs::write(folder.join("torn.csv"), torn).unwrap();
    fs::write(folder.join("slow.csv"), "0,1,512\n9000000000,1,512\n").unwrap();
    let two = format!(
        "stream = 'web.csv'\nhost = ['{}', '{}']",
        hosts[0], hosts[1]
    );
    for (table, words) in [
        (
            "stream = 'web.log'",
            &[
                "clients.stream",
                "web.log",
                "oracleGeneral, csv, spc, blocks",
            ][..],
        ),
        ("stream = 'gone.csv'", &["cannot open", "gone.csv"]),
        ("stream = 'torn.csv'", &["torn.csv line 4", "soon"]),
        (
            "stream = 'none.csv'",
            &["clients.stream", "none.csv", "no request"],
        ),
        (
            "stream = 'web.csv'\nhost = 'h0009'",
            &["clients.host = h0009", "dataset A"],
        ),
        (&two, &["clients.host", "web.csv has one client"]),
        (
            "stream = 'web.csv'\nclient = 5",
            &["clients.client = 5", "web.csv", "there are 4"],
        ),
        (
            "stream = 'web.csv'\n[[clients]]\nstream = 'web.csv'",
            &["clients.name = web", "two clients"],
        ),
        (
            "stream = 'web.csv'\nbegin_s = 43200",
            &["clients.begin_s = 43200", "`days`"],
        ),
        ("stream = 'web.csv'\nbegin_s = nan", &["clients.begin_s"]),
        (
            "stream = 'web.csv'\nblock_bytes = 512",
            &["clients.block_bytes = 512", "store = \"volume\""],
        ),
        (
            "stream = 'web.csv'\nstore = 'volume'\nblock_bytes = 1000",
            &["clients.block_bytes = 1000", "power of two"],
        ),
        (
            "stream = 'web.csv'\nparams = 'time-col=0'",
            &["clients.params = time-col=0"],
        ),
        (
            "stream = 'web.csv'\nformat = 'spc'\nparams = 'time-col=1'",
            &["clients.params", "which column"],
        ),
        (
            "stream = 'slow.csv'\nparams = 'time-col=1,obj-id-col=2,obj-size-col=3'",
            &["clients.stream", "73 years"],
        ),
        (
            "stream = 'web.csv'\n[sweep]\npause_ns = [1]",
            &["pause_ns", "`clients`"],
        ),
    ] {
        let text = format!("[[clients]]\n{table}");
        let error = rows(&file(&text, folder), folder, ONE).unwrap_err();
        let said = error.to_string();
        for word in words {
            assert!(said.contains(word), "{table}\n{said}\nlacks {word}");
        }
    }
    // Objects larger than a block cannot be stored as blocks of a volume.
    let volume = "[[clients]]\nstream = 'big.csv'\nstore = 'volume'\nblock_bytes = 512";
    fs::write(
        folder.join("big.csv"),
        "time,obj_id,obj_size,op,client\n0,1,513,read,0\n",
    )
    .unwrap();
    let error = rows(&file(volume, folder), folder, ONE).unwrap_err();
    assert!(
        error.to_string().contains("513 bytes of a block of 512"),
        "{error}"
    );
}

#[test]
fn a_file_has_programs_or_clients() {
    for (text, words) in [
        (
            "programs = ['lu']\n[[clients]]\nstream = 'web.csv'",
            &["`programs`", "`clients`"][..],
        ),
        ("clients = []", &["no client", "[[clients]]"]),
        ("[[clients]]\nname = 'web'", &["line 1", "`stream`"]),
        (
            "[[clients]]\nstream = 'a.csv'\nhosts = ['h']",
            &["line 3", "`hosts`", "`host`"],
        ),
        (
            "[[clients]]\nstream = 'a.csv'\nhost = 3",
            &["line 3", "a host's id or name"],
        ),
        (
            "[[clients]]\nstream = 'a'\nformat = 'arc'",
            &["line 3", "`arc`", "`oracleGeneral`"],
        ),
        (
            "[[clients]]\nstream = 'a.csv'\n[scenario]\nthink_ns = 3",
            &["think_ns", "`clients`"],
        ),
    ] {
        let said = refused(text);
        for word in words {
            assert!(said.contains(word), "{text}\n{said}\nlacks {word}");
        }
    }
}

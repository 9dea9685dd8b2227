//! Tests of parts of a sweep.

use super::clients::{file, rows, stream, two_hosts};
use super::*;
use gleaner_traces::synth;
use std::fs;
use std::path::Path;

const ONE: NonZeroUsize = NonZeroUsize::MIN;

/// Six cases with two seeds each.
const SWEEP: &str = "
    seeds = [1, 2]
    [[clients]]
    stream = 'web.csv'
    begin_s = 3600
    [sweep]
    remote.region_bytes = [4096, 8192]
    remote.placement = ['random', 'spread', 'stick']
";

/// Objects that the client requests.
const OBJECTS: [u64; 9] = [1, 2, 3, 1, 2, 3, 1, 2, 3];

fn dataset_and_stream(folder: &Path) {
    two_hosts(folder);
    write_stream(folder, &OBJECTS);
}

fn write_stream(folder: &Path, objects: &[u64]) {
    fs::write(folder.join("web.csv"), stream(0, objects)).unwrap();
}

/// Stored form of a part of the sweep `text` in `folder`.
fn stored(text: &str, folder: &Path, number: usize, parts_count: usize) -> String {
    let file = file(text, folder);
    let plan = Plan::new(&file, vec!["A".to_owned()]).unwrap();
    let cluster = Cluster::open("A", &folder.join("A"), None, plan.length_ns).unwrap();
    let runs = plan.runs_of_part(number, parts_count);
    let clusters = [cluster];
    let summary = SweepSummary::new("short".to_owned(), file.about, plan, &clusters);
    let part = SweepPart::simulate(summary, &clusters, &runs, parts_count, ONE, &|_| {});
    part.unwrap().to_text().unwrap()
}

/// Part of all these stored parts.
fn merged<'a>(stored: impl IntoIterator<Item = &'a String>) -> Result<SweepPart, SweepError> {
    let parts = stored.into_iter().enumerate();
    let mut parts = parts.map(|(at, text)| SweepPart::from_bytes(text.as_bytes(), &at.to_string()));
    let mut all = parts.next().unwrap()?;
    for (at, part) in (1..).zip(parts) {
        all = all.merge(part?, &at.to_string())?;
    }
    Ok(all)
}

#[test]
fn parts_in_any_order_give_the_rows_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    dataset_and_stream(folder);
    let whole = rows(&file(SWEEP, folder), folder, ONE).unwrap();
    assert_eq!(whole.len(), 6);
    for parts_count in [1, 2, 5, 12, 20] {
        let numbers = 1..=parts_count;
        let mut parts: Vec<String> = numbers
            .map(|number| stored(SWEEP, folder, number, parts_count))
            .collect();
        for first in 0..parts_count {
            parts.rotate_left(1);
            // The first part is repeated at the end.
            let all = merged(parts.iter().rev().chain([&parts[0]])).unwrap();
            // A merged part can be stored and merged again.
            let again = all.to_text().unwrap();
            let (summary, found) = merged([&again, &parts[0]]).unwrap().finish().unwrap();
            assert!(found == whole, "{parts_count} parts, {first}");
            assert_eq!(summary.scenario, "short");
        }
    }
    let once = stored(SWEEP, folder, 2, 3);
    assert_eq!(once, stored(SWEEP, folder, 2, 3));
}

#[test]
fn every_run_is_in_one_part_and_a_part_has_several_values() {
    const VALUES: usize = 4;
    let text = "programs = ['lu', 'db2']
        [sweep]
        remote.placement = ['random', 'spread', 'stick', 'longest-available']";
    let plan = plan(text).unwrap();
    for parts_count in [1, 2, 3, VALUES, 9] {
        let numbers = 1..=parts_count;
        let parts: Vec<Vec<usize>> = numbers
            .map(|number| plan.runs_of_part(number, parts_count))
            .collect();
        let mut runs = parts.concat();
        runs.sort_unstable();
        assert_eq!(runs, (0..plan.runs()).collect::<Vec<_>>());
        let sizes = parts.iter().map(Vec::len);
        let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
        assert!(most - least <= 1, "{parts:?}");
        let has_one_value = |part: &Vec<usize>| {
            let mut values = part.iter().map(|run| run % VALUES);
            let first = values.next();
            part.len() > 1 && values.all(|value| Some(value) == first)
        };
        assert!(!parts.iter().any(has_one_value), "{parts:?}");
    }
}

#[track_caller]
fn assert_refused(merged: Result<SweepPart, SweepError>, words: &[&str]) {
    let said = merged.unwrap_err().to_string();
    for word in words {
        assert!(said.contains(word), "{said}\nlacks {word}");
    }
}

#[test]
fn missing_runs_are_named_by_their_parts() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    dataset_and_stream(folder);
    let part = |number| stored(SWEEP, folder, number, 4);
    let said = merged([&part(3), &part(1)]).unwrap().finish().unwrap_err();
    let said = said.to_string();
    assert!(said.contains("6 of 12 runs"), "{said}");
    assert!(said.contains("--part 2/4, --part 4/4"), "{said}");
}

#[test]
fn parts_of_other_sweeps_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    dataset_and_stream(folder);
    let first = stored(SWEEP, folder, 1, 2);
    let seeds = SWEEP.replace("seeds = [1, 2]", "seeds = [1, 3]");
    let seeds = stored(&seeds, folder, 2, 2);
    assert_refused(merged([&first, &seeds]), &["another sweep", "seeds"]);
    let stick = SWEEP.replace("'stick'", "'longest-available'");
    let stick = stored(&stick, folder, 2, 2);
    assert_refused(merged([&first, &stick]), &["another sweep", "settings"]);
    // A table's other settings belong to the stream.
    let later = stored(&SWEEP.replace("3600", "3601"), folder, 2, 2);
    assert_refused(merged([&first, &later]), &["stream 1"]);
    write_stream(folder, &[1, 2, 4]);
    let requests = stored(SWEEP, folder, 2, 2);
    assert_refused(merged([&first, &requests]), &["stream 1"]);
    // A dataset of other hosts.
    write_stream(folder, &OBJECTS);
    fs::remove_dir_all(folder.join("A")).unwrap();
    let other_seed = synth::Parameters::of_preset(synth::Preset::AcharyaSetiaA, 8).unwrap();
    let parameters = synth::Parameters {
        days: 1,
        hosts: 2,
        ..other_seed
    };
    let cluster = synth::Cluster::new(&parameters).unwrap();
    synth::write(&cluster, &folder.join("A"), |_| {}).unwrap();
    let hosts = stored(SWEEP, folder, 2, 2);
    assert_refused(merged([&first, &hosts]), &["dataset A"]);
}

#[test]
fn damaged_parts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    dataset_and_stream(folder);
    let part = stored(SWEEP, folder, 1, 1);
    assert!(merged([&part]).is_ok());
    let cut = part[..part.len() - 2].to_owned();
    let figure = part.replacen("4096", "4097", 1);
    let version = part.replacen("\n1 ", "\n0 ", 1);
    for (wrong, word) in [
        (cut, "damaged"),
        (figure, "damaged"),
        (version, "version 0"),
        (String::new(), "no part of a sweep"),
        ("{}".to_owned(), "no part of a sweep"),
        ("gleaner part of a sweep\n".to_owned(), "damaged"),
    ] {
        assert_refused(merged([&wrong]), &[word]);
    }
}

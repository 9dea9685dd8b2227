use super::*;

fn requests(application: Application) -> Vec<Request> {
    application.thinking(7).run(1, 0).collect()
}

#[test]
fn sizes_are_the_studys() {
    let gigabytes = |of: Application| of.thinking(0).layout().bytes() as f64 / 1e9;
    assert!((gigabytes(Application::Dmine) - 4.0).abs() < 0.01);
    assert!((gigabytes(Application::Db2) - 5.2).abs() < 0.01);
    assert_eq!(
        Application::Lu.thinking(0).layout().bytes(),
        8192 * 8192 * 8
    );
    assert_eq!(Application::Random.thinking(0).layout().bytes(), 2 << 30);
}

#[test]
fn dmine_scans_eight_files_side_by_side() {
    let all = requests(Application::Dmine);
    assert_eq!(all.len(), 3 * 8 * 3815);
    let first: Vec<u64> = all[..9].iter().map(|r| r.object).collect();
    assert_eq!(first, [0, 3815, 7630, 11445, 15260, 19075, 22890, 26705, 1]);
    let (scan, again) = (&all[..8 * 3815], &all[8 * 3815..2 * 8 * 3815]);
    assert_eq!(scan, again);
    let mut blocks: Vec<u64> = scan.iter().map(|r| r.object).collect();
    blocks.sort_unstable();
    assert!(blocks.into_iter().eq(0..8 * 3815), "each block once");
}

#[test]
fn lu_reads_all_slabs_left_of_each_and_writes_it() {
    let all = requests(Application::Lu);
    assert_eq!(all.len(), 128 * 129 / 2 + 128);
    assert_eq!(all.iter().filter(|r| r.is_write).count(), 128);
    // Slab s is in file s % 8; each file has 16 slabs.
    let first: Vec<(u64, bool)> = all[..9].iter().map(|r| (r.object, r.is_write)).collect();
    let (read, write) = (false, true);
    let expected = [
        (0, read),
        (0, write),
        (16, read),
        (0, read),
        (16, write),
        (32, read),
        (0, read),
        (16, read),
        (32, write),
    ];
    assert_eq!(first, expected);
}

#[test]
fn db2_scans_two_fifths_a_query_and_looks_one_page_up_after_each_request() {
    let all = requests(Application::Db2);
    let (scans, lookups): (Vec<_>, Vec<_>) =
        (all.iter().enumerate()).partition(|(i, _)| i % 2 == 0);
    assert_eq!(scans.len(), 5 * 332 * 96);
    assert!(lookups.iter().all(|(_, r)| r.bytes == 8 << 10));
    assert_eq!((scans[0].1.object, scans[0].1.bytes), (0, 64 << 10));
    // A file has 764 blocks, which is 95 · 8 + 4, so its last request has only 4 blocks.
    assert_eq!((scans[95].1.object, scans[95].1.bytes), (760, 32 << 10));
    assert_eq!(
        scans[332 * 96].1.object,
        166 * 764,
        "the second query begins a fifth further on"
    );
    let blocks = u64::from(Application::Db2.thinking(0).layout().blocks());
    assert!(all.iter().all(|r| r.object < blocks));
}

#[test]
fn hotcold_and_random_have_their_shares() {
    let hot = |application| {
        let all = requests(application);
        assert_eq!(all.len(), 262_144);
        let hot = all.iter().filter(|r| r.object < 262_144 / 5).count();
        hot as f64 / all.len() as f64
    };
    assert!((hot(Application::Hotcold) - 0.8).abs() < 0.005);
    assert!((hot(Application::Random) - 0.2).abs() < 0.005);
}

#[test]
fn runs_differ_and_seeds_say_how() {
    let run = |seed, number| -> Vec<Request> {
        Application::Hotcold
            .thinking(1)
            .run(seed, number)
            .take(50)
            .collect()
    };
    assert_eq!(run(1, 0), run(1, 0));
    assert_ne!(run(1, 0), run(1, 1));
    assert_ne!(run(1, 0), run(2, 0));
}

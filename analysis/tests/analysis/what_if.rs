//! Effects of other lending limits, worked by hand on one host.
//!
//! The host has 1 GiB and one sample a minute. The owner leaves at minute 0 and is back at 10:30. With a
//! headroom of 256 MiB:
//!
//! | minutes            | 0-6 | 7-9 | 10-11 |
//! | ---                | --- | --- | ---   |
//! | available          | 600 | 500 | 700   | MiB
//! | could be lent      | 344 | 244 | 444   |
//! | and gently         | 244 | 144 | 344   |

use crate::recording::{MIB, Recording, sample};
use gleaner_schemas::findings::{LendingMode, Parameters, WhatIf};
use gleaner_schemas::rows::{ProcessRow, SampleRow};

fn minute(at: i64) -> SampleRow {
    let available = match at {
        0..=6 => 600,
        7..=9 => 500,
        _ => 700,
    };
    let owner_idle_s = if at == 11 { 30 } else { at * 60 };
    SampleRow {
        owner_idle_ms: Some(owner_idle_s * 1000),
        mem_available_bytes: Some((available - 100) * MIB),
        ..sample(available)
    }
}

fn found() -> Vec<WhatIf> {
    let mut r = Recording::new();
    r.host("a", 60);
    for at in 0..12 {
        r.row("a", at + 1, at * 60, &minute(at));
    }
    let process = ProcessRow {
        pid: 1,
        name: "compiler".into(),
        anon_bytes: Some(500 * MIB),
        ..ProcessRow::default()
    };
    r.row("a", 12, 660, &process);
    let parameters = Parameters {
        headroom_share: 0.25,
        measures: vec!["what_if".into()],
        ..Parameters::default()
    };
    r.analyzed(&parameters).unwrap().what_if
}

fn is(
    found: &[WhatIf],
    mode: LendingMode,
    what: &dyn Fn(&WhatIf) -> bool,
    lent: f64,
    reclaims: i64,
    returned: f64,
) {
    let such: Vec<&WhatIf> = found.iter().filter(|w| w.mode == mode && what(w)).collect();
    assert_eq!(such.len(), 1, "{such:?}");
    let close = |found: f64, expected: f64| {
        assert!(
            (found - expected).abs() < 1e-6 * expected.max(1.0),
            "{found}, not {expected}: {such:?}"
        )
    };
    let (minutes, days) = (11.0, 11.0 / 1440.0);
    let w = such[0];
    assert_eq!((w.hosts_count, w.observed_s), (1, 660.0));
    close(w.mean_quota_bytes, lent * MIB as f64 / minutes / 2.0);
    close(w.quota_share, lent / minutes / 2.0 / 1024.0);
    close(w.reclaims_per_host_day, reclaims as f64 / days);
    close(w.reclaimed_bytes_per_host_day, returned * MIB as f64 / days);
}

#[test]
fn lent_and_taken_back() {
    use LendingMode::{Gentle, Paper};
    let all = found();
    let varied = |name: &'static str, value: f64| {
        move |w: &WhatIf| {
            w.varied == name
                && match name {
                    "idle_after_s" => w.idle_after_s == value,
                    "load_limit" => w.load_limit == Some(value),
                    "headroom_share" => w.headroom_share == value,
                    "minimum_idle_s" => w.minimum_idle_s == value,
                    _ => true,
                }
        }
    };
    // The lent memory in MiB times half minutes, from minute 5 on: 344 for two minutes, 244 for three, 444
    // for half a minute.
    let from_5 = 4.0 * 344.0 + 6.0 * 244.0 + 444.0;
    is(&all, Paper, &varied("none", 0.0), from_5, 1, 100.0 + 444.0);
    let gently = 4.0 * 244.0 + 6.0 * 144.0 + 344.0;
    is(&all, Gentle, &varied("none", 0.0), gently, 1, 100.0 + 344.0);
    // With these idle times, the host lends from minute 2 on, from 10 on, or never.
    let from_2 = from_5 + 6.0 * 344.0;
    is(
        &all,
        Paper,
        &varied("idle_after_s", 120.0),
        from_2,
        1,
        544.0,
    );
    is(&all, Paper, &varied("idle_after_s", 600.0), 444.0, 1, 444.0);
    is(&all, Paper, &varied("idle_after_s", 1200.0), 0.0, 0, 0.0);
    is(
        &all,
        Paper,
        &varied("minimum_idle_s", 300.0),
        444.0,
        1,
        444.0,
    );
    is(&all, Paper, &varied("minimum_idle_s", 900.0), 0.0, 0, 0.0);
    // The load is 0.1, which is not below the limit of 0.1.
    is(&all, Paper, &varied("load_limit", 0.1), 0.0, 0, 0.0);
    is(&all, Paper, &varied("load_limit", 1.0), from_5, 1, 544.0);
    // A headroom of 5 % is 51.2 MiB.
    let more = 256.0 - 51.2;
    let lent = from_5 + 11.0 * more;
    is(
        &all,
        Paper,
        &varied("headroom_share", 0.05),
        lent,
        1,
        544.0 + more,
    );
    // Scope `all` ignores the owner; only a shrinking quota reduces what is lent.
    let always = 14.0 * 344.0 + 6.0 * 244.0 + 2.0 * 444.0;
    is(&all, Paper, &varied("scope", 0.0), always, 0, 100.0);
}

#[test]
fn what_owners_page_in_again() {
    let all = found();
    let of = |mode, varied: &str| {
        all.iter()
            .find(|w| w.mode == mode && w.varied == varied)
            .unwrap()
    };
    // The compiler has 500 MiB, 444 are lent, and the kernel has 84. Memory less the reserve is 1024 − 16.
    let paper = of(LendingMode::Paper, "none");
    assert_eq!(paper.mean_memory_context_bytes, Some((20 * MIB) as f64));
    assert_eq!(paper.p99_memory_context_bytes, Some((20 * MIB) as f64));
    assert_eq!(paper.mean_reclaimed_bytes, Some((444 * MIB) as f64));
    assert_eq!(
        of(LendingMode::Gentle, "none").mean_memory_context_bytes,
        Some(0.0)
    );
    let never = all.iter().find(|w| w.minimum_idle_s == 900.0).unwrap();
    assert_eq!(
        (never.mean_memory_context_bytes, never.mean_reclaimed_bytes),
        (None, None)
    );
}

#[test]
fn a_host_whose_owner_is_out_of_sight_has_none() {
    let mut r = Recording::new();
    r.host("a", 60)
        .row("a", 1, 0, &sample(600))
        .row("a", 2, 60, &sample(600));
    let found = r.analyzed(&Parameters::default()).unwrap();
    assert_eq!(found.what_if, []);
    assert!(
        found
            .missing_measures
            .iter()
            .any(|n| n.measure == "what_if")
    );
}

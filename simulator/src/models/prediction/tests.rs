//! Compares predictions with figures worked by hand, and checks their order on any curve.

use super::*;
use gleaner_schemas::curve::{Curve, FaultPoint, FirstTouch};
use proptest::prelude::*;

fn technology(name: &str) -> Technology {
    Technology::parse(name, Technology::shipped_text(name).unwrap()).unwrap()
}

/// A program of ten seconds and 1,000 pages, which reuses a page `faults` times with half its pages.
fn curve(faults: u64) -> Curve {
    let point = |memory_pages, reuse_count| FaultPoint {
        memory_pages,
        reuse_count,
        write_backs_count: reuse_count / 2,
    };
    Curve {
        native_cpu_s: 8.0,
        native_wall_s: 10.0,
        page_bytes: 4096,
        footprint_pages: 1000,
        faults: vec![point(32, 3 * faults), point(500, faults), point(1000, 0)],
        first_touch: [1, 500, 1000]
            .map(|pages| FirstTouch {
                pages,
                references_count: pages * 1000,
            })
            .to_vec(),
        ..Curve::default()
    }
}

const HALF_BYTES: u64 = 500 * 4096;

#[test]
fn times_double_at_the_rates_of_the_paper() {
    // 1,000 faults per CPU second on NOW, 2,000 on SUBPAGE, 10,000 on MYRNOW, 4,545 on ATMNOW.
    for (name, per_s) in [
        ("now", 1000),
        ("subpage", 2000),
        ("myrnow", 10_000),
        ("atmnow", 4545),
    ] {
        let mut curve = curve(per_s * 10);
        for point in &mut curve.faults {
            point.write_backs_count = 0;
        }
        let predicted = predict(ProgramCurve(&curve), &technology(name), HALF_BYTES, 1).unwrap();
        assert!(
            (predicted.slowdown - 2.0).abs() < 1e-3,
            "{name}: {}",
            predicted.slowdown
        );
        assert_eq!(predicted.faults_count, per_s * 10);
    }
}

#[test]
fn a_sentence_says_what_it_rests_on() {
    let curve = curve(50_000);
    let predicted = predict(
        ProgramCurve(&curve),
        &technology("tcp-25gbe"),
        HALF_BYTES,
        1,
    )
    .unwrap();
    assert!(
        predicted.sentence.starts_with(
            "with 2.0 MiB local and the rest lent it would run 18 % slower on 25 GbE (10 to "
        ),
        "{}",
        predicted.sentence
    );
    assert!(
        predicted
            .sentence
            .contains("assumed figures, not measured here"),
        "{}",
        predicted.sentence
    );
    let measured = Technology {
        evidence: Evidence::Measured,
        source: "by gleaner curve calibrate on ws12".to_owned(),
        ..technology("tcp-25gbe")
    };
    let predicted = predict(ProgramCurve(&curve), &measured, HALF_BYTES, 1).unwrap();
    assert!(
        predicted
            .sentence
            .contains("measured: by gleaner curve calibrate on ws12"),
        "{}",
        predicted.sentence
    );
    assert!(!predicted.sentence.contains("not measured here"));
}

#[test]
fn costs_of_another_program_are_said_to_be_its() {
    let curve = Curve {
        program: "sort".to_owned(),
        ..curve(200_000)
    };
    for (program, said) in [
        (None, "measured: by gleaner"),
        (Some("sort"), "measured: by gleaner"),
        (
            Some("perl"),
            "measured with perl, not with sort: by gleaner",
        ),
    ] {
        let measured = Technology {
            evidence: Evidence::Measured,
            source: "by gleaner curve calibrate".to_owned(),
            program: program.map(str::to_owned),
            ..technology("tcp-25gbe")
        };
        let sentence = predict(ProgramCurve(&curve), &measured, HALF_BYTES, 1)
            .unwrap()
            .sentence;
        assert!(sentence.contains(said), "{sentence}");
    }
}

#[test]
fn a_band_of_faults_reaches_to_85_percent_of_the_memory() {
    // The points 32: 300 and 500: 100 are joined by a line; 425 pages lie 75 / 468 before its end.
    let band = fault_band(ProgramCurve(&curve(100)), HALF_BYTES).unwrap();
    assert_eq!((band.low_count, band.high_count), (100, 132));
    let inside = [99, 100, 132, 133].map(|count| band.contains(count));
    assert_eq!(inside, [false, true, true, false]);
    let whole = fault_band(ProgramCurve(&curve(100)), 1000 * 4096).unwrap();
    // 850 of the pages from 500 to 1000: 100 × 150 / 500.
    assert_eq!((whole.low_count, whole.high_count), (0, 30));
    let refused = fault_band(ProgramCurve(&curve(100)), 31 * 4096).unwrap_err();
    assert!(
        matches!(refused, Unpredictable::BelowCurve { .. }),
        "{refused}"
    );
}

#[test]
fn what_a_curve_lacks_is_said() {
    let whole = curve(10);
    let refused = |curve: &Curve, name, local_bytes| {
        let refused = predict(ProgramCurve(curve), &technology(name), local_bytes, 1);
        refused.unwrap_err().to_string()
    };
    assert!(refused(&whole, "cxl-direct", HALF_BYTES).contains("--of misses"));
    assert!(refused(&whole, "now", 4096).contains("begins at 128.0 KiB, and --local is 4.0 KiB"));
    let timeless = Curve {
        native_wall_s: 0.0,
        ..whole
    };
    assert!(refused(&timeless, "now", HALF_BYTES).contains("--native-s"));
}

#[test]
fn lines_cost_what_remote_misses_do() {
    let misses = Curve {
        misses_of_bytes: Some(1 << 20),
        ..curve(10)
    };
    // 500,000 remote misses × 900 ns in 10 s.
    let predicted = predict(ProgramCurve(&misses), &technology("cc-numa"), HALF_BYTES, 1).unwrap();
    assert!(
        (predicted.slowdown - 1.045).abs() < 1e-9,
        "{}",
        predicted.slowdown
    );
    assert_eq!(predicted.faults_count, 500_000);
}

proptest! {
    #[test]
    fn predictions_are_in_order(
        mut falls in prop::collection::vec(0u64..400_000, 2..40), native_wall_s in 0.1f64..1000.0, processes in 1u32..5,
        share in 0.01f64..1.2,
    ) {
        falls.sort_unstable_by(|a, b| b.cmp(a));
        let faults: Vec<FaultPoint> = falls.iter().zip(1..).map(|(count, at)| FaultPoint {
            memory_pages: at * 100,
            reuse_count: *count,
            write_backs_count: count / 3,
        }).collect();
        let footprint_pages = faults.len() as u64 * 100;
        let curve = Curve { native_wall_s, page_bytes: 4096, footprint_pages, faults, ..Curve::default() };
        let program = ProgramCurve(&curve);
        let local_bytes = 100 * 4096 + (share * footprint_pages as f64 * 4096.0) as u64;
        let slowdown = |name| {
            let predicted = predict(program, &technology(name), local_bytes, processes)?;
            Ok::<f64, Unpredictable>(predicted.slowdown)
        };
        for (name, _) in super::super::SHIPPED_TECHNOLOGIES {
            match predict(program, &technology(name), local_bytes, processes) {
                Ok(predicted) => {
                    let (low, high) = (predicted.low, predicted.high);
                    prop_assert!(1.0 <= low && low <= predicted.slowdown && predicted.slowdown <= high, "{:?}", predicted);
                    let more = predict(program, &technology(name), local_bytes * 2, processes).unwrap();
                    prop_assert!(more.slowdown <= predicted.slowdown * (1.0 + 1e-9), "{:?} {:?}", predicted, more);
                }
                Err(Unpredictable::NoMisses { .. }) => {}
                Err(other) => prop_assert!(false, "{}", other),
            }
        }
        // Never slower with a faster technology.
        for pair in [["rdma-100g", "tcp-100gbe"], ["tcp-100gbe", "tcp-25gbe"], ["tcp-25gbe", "tcp-10gbe"], ["tcp-10gbe", "lease-swap-10gbe"], ["myrnow", "atmnow"]] {
            let [fast, slow] = pair.map(|name| slowdown(name).unwrap());
            prop_assert!(fast <= slow * (1.0 + 1e-9), "{:?}: {} {}", pair, fast, slow);
        }
    }
}

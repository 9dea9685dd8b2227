//! Measures how fast synthetic records are generated, in rows per second on one core: as row structs, as values,
//! and sealed in a dataset: `cargo run --release -p gleaner-traces --example synth_speed -- NEW_FOLDER [HOSTS]`.
#![allow(clippy::expect_used, clippy::unwrap_used)]

use gleaner_traces::synth::{Cluster, Parameters, Preset, write};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let folder = std::env::args().nth(1).expect("name a new folder");
    let hosts = std::env::args()
        .nth(2)
        .map_or(40, |hosts| hosts.parse().unwrap());
    let parameters = Parameters {
        hosts,
        days: 2,
        ..Parameters::of_preset(Preset::Modern, 1).unwrap()
    };
    let cluster = Cluster::new(&parameters).unwrap();
    for with_values in [false, true] {
        let (begun, mut rows) = (Instant::now(), 0);
        for index in 0..parameters.hosts {
            for record in cluster.host(index) {
                rows += record.rows_count();
                if with_values {
                    let each = |_, values| -> Result<(), ()> {
                        black_box(values);
                        Ok(())
                    };
                    record.try_each(each).unwrap();
                }
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let what = if with_values { "as values" } else { "as rows" };
        println!(
            "{what}: {rows} rows in {seconds:.2} s: {:.0} a second",
            rows as f64 / seconds
        );
    }
    let begun = Instant::now();
    let written = write(&cluster, folder.as_ref(), |_| {}).unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    let (rows, files, bytes) = (written.rows, written.files, written.bytes);
    println!(
        "sealed: {rows} rows in {files} files of {bytes} bytes in {seconds:.2} s: {:.0} a second",
        rows as f64 / seconds
    );
}

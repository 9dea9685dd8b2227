//! Measures the speed and the memory use of importing one large file with many machines' rows in no order, as
//! Alibaba's: `cargo run --release -p gleaner-traces --example import_speed -- NEW_FOLDER [MACHINES [ROWS_EACH]]`.
#![allow(clippy::expect_used, clippy::unwrap_used)]

use gleaner_traces::import::alibaba::Alibaba;
use gleaner_traces::import::import;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().expect("name a new folder"));
    let mut number = |default| args.next().map_or(default, |n| n.parse().unwrap());
    let (machines, rows_each): (u64, u64) = (number(400), number(50_000));
    fs::create_dir(&folder).unwrap();
    let path = folder.join("machine_usage.csv");
    let mut file = BufWriter::new(File::create_new(&path).unwrap());
    for at in 1..=rows_each {
        for machine in 0..machines {
            // A share that changes slowly, and is sometimes invalid.
            let share = (machine * 7919 + at / 50 * 31) % 102;
            writeln!(file, "m_{machine},{},41,{share},,,43.04,33.08,5", 10 * at).unwrap();
        }
    }
    file.flush().unwrap();
    let bytes = fs::metadata(&path).unwrap().len();
    println!("{} rows, {bytes} bytes", machines * rows_each);

    let begun = Instant::now();
    let mut first = None;
    let done = import(
        &mut Alibaba::new(&path, None),
        &folder.join("dataset"),
        |_| {
            first.get_or_insert_with(|| begun.elapsed().as_secs_f64());
        },
    );
    let (done, seconds) = (done.unwrap(), begun.elapsed().as_secs_f64());
    println!(
        "{} rows new in {} files of {} bytes in {seconds:.1} s, {:.1} s of it until the first machine",
        done.new_rows_count,
        done.files_count,
        done.files_bytes,
        first.unwrap_or_default(),
    );
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM"));
    println!("{}", peak.unwrap_or_default());
}

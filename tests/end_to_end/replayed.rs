//! Runs every file of `fuzz/corpus`, and mutations of its bytes, through the decoders. libFuzzer tries more
//! mutations in `make soak`.

use gleaner_dataset::{Batch, Identity, RowsBuilder};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::SampleRow;
use gleaner_tests::fuzz::TARGETS;
use std::fs;

/// Number of mutations that are tried of each input; `make soak` sets a larger one.
fn rounds() -> u64 {
    let given = std::env::var("GLEANER_FUZZ_ROUNDS");
    given.map_or(20, |rounds| rounds.parse().unwrap())
}

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let folder = gleaner_tests::repository().join("fuzz/corpus").join(target);
    let mut paths: Vec<_> = match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => Vec::new(),
    };
    paths.sort();
    let mut inputs: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    if target == "batch" {
        inputs.push(batch());
    }
    inputs
}

fn batch() -> Vec<u8> {
    let mut samples = RowsBuilder::new(&SampleRow::TABLE);
    for sequence in 1..=3 {
        let identity = Identity {
            host_id: "00112233445566778899aabbccddeeff",
            database_id: "ffeeddccbbaa99887766554433221100",
            sequence,
            time_ms: 1_795_219_140_000 + sequence,
        };
        let row = SampleRow::default().to_values();
        samples.push(identity, row).unwrap();
    }
    Batch::encode(&[(SampleRow::TABLE, samples.finish().unwrap())]).unwrap()
}

/// Random number generator (xorshift64*). It makes the same mutations in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let thrown = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(thrown).unwrap() % most.max(1)
    }

    fn mutated(&mut self, input: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(5) {
                _ if bytes.is_empty() => bytes.push(0),
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'9', b'-'][self.below(7)],
                2 => bytes.truncate(at),
                3 => {
                    let end = (at + self.below(64)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
                _ => {
                    let end = (at + self.below(16)).min(bytes.len());
                    bytes[at..end].fill(0xff);
                }
            }
        }
        bytes
    }
}

#[test]
fn decoders_take_the_corpus_and_mutations_of_it() {
    for (name, run) in TARGETS {
        let inputs = inputs(name);
        assert!(!inputs.is_empty(), "fuzz/corpus/{name} is missing");
        for (number, input) in inputs.iter().enumerate() {
            run(input);
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15 + number as u64);
            for _ in 0..rounds() {
                let bytes = dice.mutated(input);
                let ended = std::panic::catch_unwind(|| run(&bytes));
                assert!(
                    ended.is_ok(),
                    "{name}, a mutation of input {number}: {}",
                    bytes.escape_ascii()
                );
            }
        }
    }
}

/// Writes the inputs of the corpus that are generated and not captured. Run it by hand when the schema
/// changes.
#[test]
#[ignore = "writes fuzz/corpus/batch"]
fn write_the_made_seeds() {
    let folder = gleaner_tests::repository().join("fuzz/corpus/batch");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("samples"), batch()).unwrap();
}

//! The program `gleaner`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(gleaner_cli::run(std::env::args_os()))
}

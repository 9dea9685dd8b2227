//! `gleaner doctor`: prints the diagnosis of this host.

use crate::top;
use gleaner_doctor::Doctor;
use std::io::{IsTerminal, Write};

/// Exit code if a check fails.
const FAULT: u8 = 3;

pub(crate) fn run(args: &Doctor) -> anyhow::Result<u8> {
    let mut output = std::io::stdout();
    if args.messages {
        output.write_all(gleaner_doctor::reference().as_bytes())?;
        return Ok(0);
    }
    let diagnosis = gleaner_doctor::diagnose(args);
    let text = if args.json {
        serde_json::to_string_pretty(&diagnosis)? + "\n"
    } else {
        let has_colours = top::has_colours() && output.is_terminal();
        gleaner_doctor::text(&diagnosis, top::columns(), has_colours)
    };
    output.write_all(text.as_bytes())?;
    Ok(match diagnosis.fault_count {
        0 => 0,
        _ => FAULT,
    })
}

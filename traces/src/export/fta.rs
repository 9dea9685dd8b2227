//! Events of the Failure Trace Archive (Kondo, Javadi, Iosup, Epema 2010), in its tab-separated tables.
//!
//! ```text
//! event_trace.tab   states of nodes: available (1) or not (0), start, end, and why the state ended
//! node.tab          hosts
//! component.tab     the part of each host that the events describe: its memory
//! platform.tab      the dataset
//! ```
//!
//! The archive's own programs split lines at any white space and count fields: no field may be empty or
//! contain spaces. Fields and codes: docs/exports.md.

use super::names::FTA;
use super::text::{Seconds, TextFile};
use super::{ByHost, ExportSummary, folder};
use crate::Result;
use gleaner_schemas::availability::{AvailabilityQuestion, AvailablePeriod, HostAvailability};
use gleaner_schemas::findings::{EndCause, Scope};
use gleaner_schemas::interval;
use std::path::Path;
use std::time::Duration;

const EVENT_FIELDS: &str = "# event_id\tcomponent_id\tnode_id\tplatform_id\tnode_name\tevent_type\tevent_start_time\tevent_stop_time\tevent_end_reason";
const NODE_FIELDS: &str = "# node_id\tplatform_id\tnode_name\tnode_ip\tnode_location\ttimezone\tproc_model\tos_name\tcores_per_proc\tnum_procs\tmem_size\tdisk_size\tup_bw\tdown_bw\tmetric_id\tnotes";
const COMPONENT_FIELDS: &str =
    "# component_id\tnode_id\tplatform_id\tnode_name\tcomponent_type\ttrace_start\ttrace_end";
const PLATFORM_FIELDS: &str =
    "# platform_id\tplatform_name\tplatform_location\tplatform_type\tnotes";
/// Text for an unknown value.
const NULL: &str = "NULL";

/// An export in the archive's format; its tables are being written.
pub struct Fta {
    out_dir: std::path::PathBuf,
    events: TextFile,
    nodes: TextFile,
    components: TextFile,
    platforms: TextFile,
    nodes_count: u64,
}

impl Fta {
    /// Begins an export of the answers to `question`.
    ///
    /// # Errors
    /// [`crate::ExportError::NotEmpty`] for a folder that holds anything but an export, or an error of
    /// writing.
    pub fn create(out_dir: &Path, question: &AvailabilityQuestion) -> Result<Self> {
        folder::begin(out_dir, "fta")?;
        let begin = |name: &str, fields: &str| -> Result<TextFile> {
            let mut file = TextFile::create(out_dir.join(name))?;
            file.line(fields)?;
            Ok(file)
        };
        let [events, nodes, components, platforms] = FTA;
        let mut platforms = begin(platforms, PLATFORM_FIELDS)?;
        platforms.line(format_args!(
            "0\tgleaner\t{NULL}\tdesktop_grid\t{}",
            notes(question)
        ))?;
        Ok(Self {
            out_dir: out_dir.to_owned(),
            events: begin(events, EVENT_FIELDS)?,
            nodes: begin(nodes, NODE_FIELDS)?,
            components: begin(components, COMPONENT_FIELDS)?,
            platforms,
            nodes_count: 0,
        })
    }
}

impl ByHost for Fta {
    /// Adds a host. A host without a known state is left out: an event would have to call it available or
    /// unavailable, and neither would be true.
    fn add(&mut self, host: &HostAvailability) -> Result<()> {
        if !host.is_told {
            return Ok(());
        }
        let node = self.nodes_count;
        self.nodes_count += 1;
        let name = word(&host.host_name);
        let (from, to) = (Seconds(host.from_ms), Seconds(host.to_ms));
        let cpus = (host.cpus_count).map_or_else(|| NULL.to_owned(), |count| count.to_string());
        self.nodes.line(format_args!(
            "{node}\t0\t{name}\t{NULL}\t{NULL}\t0\t{NULL}\t{NULL}\t1\t{cpus}\t{}\t{NULL}\t{NULL}\t{NULL}\t{NULL}\t{}",
            host.physical_bytes,
            word(&host.host_id)
        ))?;
        self.components
            .line(format_args!("0\t{node}\t0\t{name}\tmemory\t{from}\t{to}"))?;
        for (number, event) in events(host).enumerate() {
            let available = u8::from(event.is_available);
            let reason = event.end.map_or(NULL, reason);
            self.events.line(format_args!(
                "{number}\t0\t{node}\t0\t{name}\t{available}\t{}\t{}\t{reason}",
                Seconds(event.from_ms),
                Seconds(event.to_ms)
            ))?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<ExportSummary> {
        let mut exported = ExportSummary::default();
        let files = [self.events, self.nodes, self.components, self.platforms];
        for file in files {
            exported.add(file.lines - 1, file.finish()?); // the first line names the fields
        }
        folder::mark(&self.out_dir, "fta", true)?;
        Ok(exported)
    }
}

/// A time during which a host is available, or unavailable.
#[derive(Debug, PartialEq, Eq)]
struct Event {
    is_available: bool,
    from_ms: i64,
    to_ms: i64,
    end: Option<EndCause>,
}

/// Events from the host's first sample to its last, alternately available and unavailable. Times whose state
/// is unknown count as unavailable. Between two adjacent periods there is an unavailable event of length 0.
fn events(host: &HostAvailability) -> impl Iterator<Item = Event> + '_ {
    let not_available = |from_ms, to_ms| Event {
        is_available: false,
        from_ms,
        to_ms,
        end: None,
    };
    let mut before_ms = None;
    let periods = host
        .periods
        .iter()
        .flat_map(move |period: &AvailablePeriod| {
            let gap = match before_ms.replace(period.to_ms) {
                Some(from_ms) => Some(not_available(from_ms, period.from_ms)),
                None => (host.from_ms < period.from_ms)
                    .then(|| not_available(host.from_ms, period.from_ms)),
            };
            let available = Event {
                is_available: true,
                from_ms: period.from_ms,
                to_ms: period.to_ms,
                end: period.end,
            };
            gap.into_iter().chain([available])
        });
    let rest_ms = host.periods.last().map_or(host.from_ms, |last| last.to_ms);
    let rest = (rest_ms < host.to_ms).then(|| not_available(rest_ms, host.to_ms));
    periods.chain(rest)
}

/// Code of the cause that ended a period. The owner and the load have the archive's codes for desktops. The
/// other causes have our own codes, which are above all codes in the archive's traces.
fn reason(end: EndCause) -> &'static str {
    match end {
        EndCause::Owner => "2",
        EndCause::Load => "3",
        EndCause::Memory => "9001",
        EndCause::SleepOrPower => "9002",
        EndCause::Network => "9003",
        EndCause::Agent => "9004",
    }
}

/// Name of the available resource, in one word.
fn notes(question: &AvailabilityQuestion) -> String {
    let scope = match question.scope {
        Scope::All => "all",
        Scope::Idle => "idle",
    };
    let minimum_period =
        Duration::from_millis(u64::try_from(question.minimum_period_ms).unwrap_or(0));
    format!(
        "region_bytes={};scope={scope};minimum_period={}",
        question.region_bytes,
        interval::format(minimum_period)
    )
}

/// Makes `text` one nonempty field without spaces.
fn word(text: &str) -> String {
    let word: String = text
        .chars()
        .map(|c| {
            if c.is_whitespace() || c.is_control() {
                '_'
            } else {
                c
            }
        })
        .collect();
    if word.is_empty() {
        NULL.to_owned()
    } else {
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(periods: &[(i64, i64)]) -> HostAvailability {
        let period = |&(from_ms, to_ms): &(i64, i64)| AvailablePeriod {
            from_ms,
            to_ms,
            is_start_known: true,
            end: Some(EndCause::Owner),
        };
        HostAvailability {
            from_ms: 10,
            to_ms: 100,
            is_told: true,
            periods: periods.iter().map(period).collect(),
            ..HostAvailability::default()
        }
    }

    #[test]
    fn a_host_is_available_and_not_in_turn() {
        let told = |periods: &[(i64, i64)]| -> Vec<(bool, i64, i64)> {
            let host = host(periods);
            let told = events(&host).map(|e| (e.is_available, e.from_ms, e.to_ms));
            told.collect()
        };
        assert_eq!(told(&[]), [(false, 10, 100)]);
        assert_eq!(told(&[(10, 100)]), [(true, 10, 100)]);
        let expected = [
            (false, 10, 20),
            (true, 20, 30),
            (false, 30, 30), // the owner came and went
            (true, 30, 40),
            (false, 40, 50),
            (true, 50, 60),
            (false, 60, 100),
        ];
        assert_eq!(told(&[(20, 30), (30, 40), (50, 60)]), expected);
    }

    #[test]
    fn words_have_no_spaces() {
        assert_eq!(word("Ada's  box\t"), "Ada's__box_");
        assert_eq!(word(""), "NULL");
    }
}

//! Recorded hosts as nodes with idle memory: a dataset's hosts lend frames, and their owners reclaim them.
//!
//! With more nodes than hosts, the hosts are repeated. Each repetition runs through the recorded time from a later
//! moment, and continues with its begin: such clusters are synthetic.

use crate::event::{HOUR, MS, SECOND};
use crate::hosts::{Change, Presence, Reading, RecordedDataset, Timeline};
use gleaner_policy::idle::IdleRule;
use gleaner_policy::quota::Limits;
use gleaner_schemas::lending::Mode;
use serde::{Deserialize, Serialize};

/// Bytes of a frame of the paper's machines.
pub(super) const PAGE_BYTES: u32 = 8192;
/// Most frames of a node.
pub(super) const MOST_FRAMES: u32 = 1 << 24;

/// Rules by which recorded hosts lend frames.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recorded {
    /// Mode of lending.
    pub mode: Mode,
    /// Idle time after which a host lends, in s.
    pub idle_after_s: f64,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// True if hosts have no owners, so that they are always idle.
    pub is_always_idle: bool,
    /// Share of the quota that global memory uses.
    pub lent_share: f64,
    /// Most frames of a host.
    pub most_frames: u32,
    /// Time by which each repetition of the hosts begins later in the recorded time, in minutes. The default is a
    /// prime number, so that few repetitions begin at the same minute of an hour. **Assumed**.
    pub shift_minutes: u32,
}

impl Default for Recorded {
    fn default() -> Self {
        Self {
            mode: Mode::Paper,
            idle_after_s: IdleRule::default().idle_after_ms as f64 / 1_000.0,
            headroom_share: Limits::default().headroom_share,
            is_always_idle: false,
            lent_share: 1.0,
            most_frames: MOST_FRAMES,
            shift_minutes: 97,
        }
    }
}

impl Recorded {
    /// Reading of a dataset's hosts by these rules.
    pub(super) fn reading(&self, dataset: &RecordedDataset) -> Reading {
        dataset.reading(self.idle_after_s, self.headroom_share, self.is_always_idle)
    }
}

/// State of a recorded host from a moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostState {
    /// Begin of the state, since the simulation's begin.
    pub(super) at_ns: u64,
    /// Frames for global memory.
    pub(super) frames: u32,
    /// True if the host is in use.
    pub(super) is_in_use: bool,
}

/// States of one recorded host. The first state begins at 0.
#[derive(Clone, Debug, PartialEq)]
struct HostCourse {
    states: Vec<HostState>,
    most_frames: u32,
    mean_frames: u32,
}

/// Recorded hosts, from which nodes with idle memory are made.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedHosts {
    courses: Vec<HostCourse>,
    length_ns: u64,
    shift_ns: u64,
}

impl RecordedHosts {
    /// Hosts that lend frames of `frame_bytes` by these rules, over a time of `length_ns`. Before its first sample, a
    /// host lends nothing.
    #[must_use]
    pub fn new(hosts: &[Timeline], rules: &Recorded, frame_bytes: u32, length_ns: u64) -> Self {
        let frames = |change: &Change| {
            let bytes = change.lent_bytes(rules.mode) as f64 * rules.lent_share;
            let frames = bytes / f64::from(frame_bytes.max(1));
            // A conversion to an integer rounds down, and saturates.
            (frames as u32).min(rules.most_frames)
        };
        let course = |host: &Timeline| {
            let mut states = vec![HostState {
                at_ns: 0,
                frames: 0,
                is_in_use: false,
            }];
            for change in host
                .changes
                .iter()
                .filter(|change| change.at_ns < length_ns)
            {
                let state = HostState {
                    at_ns: change.at_ns,
                    frames: frames(change),
                    is_in_use: change.presence == Presence::InUse,
                };
                if states.last().is_some_and(|last| last.at_ns == state.at_ns) {
                    states.pop();
                }
                states.push(state);
            }
            HostCourse::new(states, length_ns)
        };
        Self {
            courses: hosts.iter().map(course).collect(),
            length_ns,
            shift_ns: u64::from(rules.shift_minutes) * 60 * SECOND % length_ns.max(1),
        }
    }

    /// Number of recorded hosts.
    #[must_use]
    pub fn count(&self) -> usize {
        self.courses.len()
    }

    /// Length of the recorded time.
    #[must_use]
    pub const fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// Most frames of a node, at any time.
    pub(super) fn most_frames(&self, node: u32) -> u32 {
        self.course(node).map_or(0, |course| course.most_frames)
    }

    /// Frames of a node, as a mean over time.
    pub(super) fn mean_frames(&self, node: u32) -> u32 {
        self.course(node).map_or(0, |course| course.mean_frames)
    }

    /// State number `step` of a node, from 0; absent after the recorded time.
    pub(super) fn state(&self, node: u32, step: u32) -> Option<HostState> {
        let states = &self.course(node)?.states;
        let repetition = u64::from(node) / self.courses.len() as u64;
        // The shift is less than the length, so that the product fits: there are at most 10,000 nodes.
        let offset_ns = (repetition * (self.shift_ns / MS) % (self.length_ns / MS).max(1)) * MS;
        let first = states.partition_point(|state| state.at_ns <= offset_ns) - 1;
        let at = first + step as usize;
        let (state, begin_ns) = match states.get(at) {
            Some(state) => (state, state.at_ns.saturating_sub(offset_ns)),
            // After the end of the recorded time, the host continues with the begin.
            None if at - states.len() <= first => {
                let state = states.get(at - states.len())?;
                (state, state.at_ns + self.length_ns - offset_ns)
            }
            None => return None,
        };
        (begin_ns < self.length_ns).then_some(HostState {
            at_ns: begin_ns,
            ..*state
        })
    }

    /// Hours of the recorded time.
    pub(super) fn hours(&self) -> f64 {
        self.length_ns as f64 / HOUR as f64
    }

    /// Course of the host that a node repeats.
    fn course(&self, node: u32) -> Option<&HostCourse> {
        self.courses.get(node as usize % self.courses.len().max(1))
    }
}

impl HostCourse {
    fn new(states: Vec<HostState>, length_ns: u64) -> Self {
        let ends = states
            .iter()
            .skip(1)
            .map(|state| state.at_ns)
            .chain([length_ns]);
        let frame_ns = states.iter().zip(ends).map(|(state, end_ns)| {
            u128::from(state.frames) * u128::from(end_ns.saturating_sub(state.at_ns))
        });
        let mean = frame_ns.sum::<u128>() / u128::from(length_ns.max(1));
        Self {
            most_frames: states.iter().map(|state| state.frames).max().unwrap_or(0),
            mean_frames: u32::try_from(mean).unwrap_or(u32::MAX),
            states,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::ModeQuotas;
    use proptest::prelude::*;

    const MINUTE: u64 = 60 * SECOND;

    fn host(changes: &[(u64, Presence, u64)]) -> Timeline {
        let change = |&(minute, presence, pages): &(u64, Presence, u64)| Change {
            at_ns: minute * MINUTE,
            presence,
            quotas: ModeQuotas {
                paper_bytes: pages * u64::from(PAGE_BYTES),
                ..ModeQuotas::default()
            },
            seen: None,
            returned: None,
        };
        Timeline {
            changes: changes.iter().map(change).collect(),
            ..Timeline::default()
        }
    }

    fn hosts(rules: &Recorded, frame_bytes: u32) -> RecordedHosts {
        let first = host(&[
            (2, Presence::Idle, 100),
            (5, Presence::InUse, 100),
            (8, Presence::Idle, 60),
        ]);
        let second = host(&[(0, Presence::Unseen, 100), (90, Presence::Idle, 100)]);
        RecordedHosts::new(&[first, second], rules, frame_bytes, 10 * MINUTE)
    }

    /// States of a node as minute, frames, and true if the host is in use.
    fn states(hosts: &RecordedHosts, node: u32) -> Vec<(u64, u32, bool)> {
        let states = (0..).map_while(|step| hosts.state(node, step));
        states
            .map(|s| (s.at_ns / MINUTE, s.frames, s.is_in_use))
            .collect()
    }

    #[test]
    fn hosts_lend_while_they_are_idle_and_repeat_with_later_begins() {
        let rules = Recorded {
            shift_minutes: 3,
            ..Recorded::default()
        };
        let of_hosts = hosts(&rules, PAGE_BYTES);
        let unseen = (0, 0, false);
        assert_eq!(
            states(&of_hosts, 0),
            [unseen, (2, 100, false), (5, 0, true), (8, 60, false)]
        );
        assert_eq!(
            states(&of_hosts, 1),
            [unseen],
            "changes after the end are left out"
        );
        // The first repetition begins at minute 3; minute 0 of the record is its minute 7.
        assert_eq!(
            states(&of_hosts, 2),
            [
                (0, 100, false),
                (2, 0, true),
                (5, 60, false),
                (7, 0, false),
                (9, 100, false)
            ]
        );
        assert_eq!((of_hosts.most_frames(2), of_hosts.most_frames(3)), (100, 0));
        assert_eq!(of_hosts.mean_frames(0), (3 * 100 + 2 * 60) / 10);
    }

    #[test]
    fn share_frame_size_and_limit_reduce_the_frames() {
        let frames = |rules: &Recorded, frame_bytes| hosts(rules, frame_bytes).most_frames(0);
        let rules = Recorded::default();
        assert_eq!(frames(&rules, 2 * PAGE_BYTES), 50);
        let half = Recorded {
            lent_share: 0.5,
            ..rules
        };
        assert_eq!(frames(&half, PAGE_BYTES), 50);
        let few = Recorded {
            most_frames: 7,
            ..rules
        };
        assert_eq!(frames(&few, PAGE_BYTES), 7);
    }

    fn presence() -> impl Strategy<Value = Presence> {
        prop::sample::select(vec![Presence::Idle, Presence::InUse, Presence::Unseen])
    }

    proptest! {
        /// A repetition is the recorded course, read from another moment on: at each moment it has the frames that
        /// the host had then.
        #[test]
        fn a_repetition_is_the_same_course_from_a_later_moment(
            changes in prop::collection::btree_map(0..60_u64, (presence(), 0..9_u64), 0..12),
            shift_minutes in 0..100_u32,
            node in 0..9_u32,
        ) {
            let changes: Vec<_> = changes.into_iter().map(|(at, (of, pages))| (at, of, pages)).collect();
            let rules = Recorded { shift_minutes, ..Recorded::default() };
            let hosts = RecordedHosts::new(&[host(&changes)], &rules, PAGE_BYTES, 60 * MINUTE);
            let at = |node, minute| {
                let mut begun = states(&hosts, node).into_iter().filter(|(begin, ..)| *begin <= minute);
                begun.next_back().map(|(_, frames, is_in_use)| (frames, is_in_use))
            };
            for minute in 0..60_u64 {
                let recorded = (minute + u64::from(node * shift_minutes)) % 60;
                prop_assert_eq!(at(node, minute), at(0, recorded));
            }
            let begins: Vec<u64> = states(&hosts, node).into_iter().map(|(begin, ..)| begin).collect();
            prop_assert!(begins.is_sorted() && begins.first() == Some(&0));
        }
    }
}

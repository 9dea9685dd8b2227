//! A program on a node: one process, which computes, reads a page, and waits for it.

use super::outcome::Reads;
use super::programs::{Program, References};
use gleaner_policy::global::message::Origin;
use gleaner_policy::global::{NodeId, Uid};

/// Use of a page by a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) uid: Uid,
    /// Place of the page on the node's disk or server.
    pub(super) place: u64,
    is_write: bool,
    asked_ns: u64,
}

/// Sequence of a process's references.
#[derive(Clone, Debug)]
enum Work {
    /// A first pass over all pages, then the counted references, again and again.
    Client {
        program: Program,
        references: References,
        file: u32,
    },
    /// A loop over `pages` pages, of which the first half is shared with other bystanders.
    Bystander { pages: u32, think_ns: u64 },
}

/// Change of a client's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The counted part begins.
    Begun,
    /// The counted part has ended.
    Ended,
}

/// State of a process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    node: NodeId,
    work: Work,
    /// Number of the next reference.
    at: usize,
    waiting: Option<Access>,
    /// Number of reads that the process has made.
    pub(super) asked: u64,
    /// Reads that were answered.
    pub(super) reads: Reads,
    /// Time at which the counted part began, and the reads before.
    begun: Option<(u64, Reads)>,
    /// Time at which the counted part ended, and the reads before.
    ended: Option<(u64, Reads)>,
    /// CPU time of the kernel when the present computing began.
    pub(super) kernel_ns: u64,
    /// True if the process stops before its next reference.
    pub(super) is_paused: bool,
    /// True if the process has stopped.
    pub(super) is_parked: bool,
}

impl Process {
    /// A client; `file` distinguishes the files of clients.
    pub(super) fn client(
        node: NodeId,
        program: Program,
        references: References,
        file: u32,
    ) -> Self {
        let work = Work::Client {
            program,
            references,
            file,
        };
        Self::new(node, work, 0)
    }

    /// A bystander that begins its loop at page `at`.
    pub(super) fn bystander(node: NodeId, pages: u32, think_ns: u64, at: u32) -> Self {
        Self::new(node, Work::Bystander { pages, think_ns }, at as usize)
    }

    fn new(node: NodeId, work: Work, at: usize) -> Self {
        Self {
            node,
            work,
            at,
            waiting: None,
            asked: 0,
            reads: Reads::default(),
            begun: None,
            ended: None,
            kernel_ns: 0,
            is_paused: false,
            is_parked: false,
        }
    }

    /// Returns true for a bystander.
    pub(super) const fn is_bystander(&self) -> bool {
        matches!(self.work, Work::Bystander { .. })
    }

    /// Enters the counted part, or leaves it, if the process is at its boundary.
    pub(super) fn change_phase(&mut self, now_ns: u64) -> Option<Phase> {
        let Work::Client {
            program,
            references,
            ..
        } = &self.work
        else {
            return None;
        };
        let first_pass = program.pages() as usize;
        if self.at == first_pass + references.counted.len() {
            self.at = first_pass;
            if self.ended.is_none() {
                self.ended = Some((now_ns, self.reads));
                return Some(Phase::Ended);
            }
        } else if self.at == first_pass && self.begun.is_none() {
            self.begun = Some((now_ns, self.reads));
            return Some(Phase::Begun);
        }
        None
    }

    /// Compute time before the next reference.
    pub(super) fn think_ns(&self) -> u64 {
        match &self.work {
            Work::Client { references, .. } if self.begun.is_some() => references.think_ns,
            Work::Client { .. } => 0,
            Work::Bystander { think_ns, .. } => *think_ns,
        }
    }

    /// Page of the next reference.
    pub(super) fn next_uid(&self) -> Uid {
        let (uid, ..) = self.next_use();
        uid
    }

    /// Page of the next reference, its place on disk or server, and whether the process writes it.
    fn next_use(&self) -> (Uid, u64, bool) {
        match &self.work {
            Work::Client {
                program,
                references,
                file,
            } => {
                let first_pass = program.pages() as usize;
                let counted = self.at.checked_sub(first_pass);
                let counted = counted.and_then(|at| references.counted.get(at));
                let page = counted.map_or(self.at as u32, |reference| reference.page);
                let is_write = counted.is_some_and(|reference| reference.is_write);
                let number = u64::from(page);
                let uid = if program.is_file() {
                    Uid::shared((u128::from(file + 1) << 32) | u128::from(page))
                } else {
                    Uid::private(self.node, number)
                };
                (uid, number, is_write)
            }
            Work::Bystander { pages, .. } => {
                let page = self.at as u64 % u64::from(*pages);
                let uid = if page < u64::from(*pages / 2) {
                    Uid::shared(u128::from(page))
                } else {
                    Uid::private(self.node, page)
                };
                (uid, page, false)
            }
        }
    }

    /// The next reference, for which the process then waits.
    pub(super) fn ask(&mut self, now_ns: u64) -> Uid {
        let (uid, place, is_write) = self.next_use();
        self.at += 1;
        self.asked += 1;
        self.waiting = Some(Access {
            uid,
            place,
            is_write,
            asked_ns: now_ns,
        });
        uid
    }

    /// Place of the page for which the process waits.
    pub(super) fn place(&self, uid: Uid) -> Option<u64> {
        let access = self.waiting.filter(|access| access.uid == uid);
        access.map(|access| access.place)
    }

    /// Time of the read for which the process waits.
    pub(super) fn waits_since_ns(&self) -> Option<u64> {
        self.waiting.map(|access| access.asked_ns)
    }

    /// Ends the wait. Returns the place of a page that the process writes; an error if the process waits for
    /// another page, or for none.
    pub(super) fn answer(&mut self, uid: Uid, origin: Origin) -> Result<Option<u64>, ()> {
        let access = self.waiting.take_if(|access| access.uid == uid).ok_or(())?;
        self.reads.count(origin);
        Ok(access.is_write.then_some(access.place))
    }

    /// Program, time and reads of a client's counted part.
    pub(super) fn counted(&self) -> Option<(Program, u64, Reads)> {
        let Work::Client { program, .. } = &self.work else {
            return None;
        };
        let ((begun_ns, before), (ended_ns, after)) = (self.begun?, self.ended?);
        Some((*program, ended_ns - begun_ns, after.since(&before)))
    }
}

//! Choice of the memory server that takes a page (E. Felten and J. Zahorjan, *Issues in the Implementation of
//! a Remote Memory Paging System*, University of Washington 91-03-09, 1991, section 3.1).
//!
//! The clerk and the simulator use the same enum of policies. The paper warns of thrashing: a server that is
//! fast for a while is flooded with pages, and then abandoned. [`Choice::Stick`] therefore changes servers
//! slowly.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

/// Microseconds of a second.
const SECOND_US: i64 = 1_000_000;
/// Seconds whose answers count.
const SECONDS: usize = 10;
/// Time for which a server must be better before a client changes to it, and least time between two such
/// changes.
pub const PATIENCE_US: i64 = 30 * SECOND_US;
/// Largest answer time of a better server, as a share of the present server's.
const BETTER: f64 = 0.8;
/// Interval at which servers are compared.
const INTERVAL_US: i64 = SECOND_US / 10;
/// Longest time between two comparisons after which a server still counts as better without a break.
const PAUSE_US: i64 = 10 * SECOND_US;
/// Number of preferred servers: one for each copy of a page.
const COPIES: usize = 2;

/// Policy of the choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// The server with the most free pages; servers that can be sent a request at once come first.
    #[default]
    Spread,
    /// The server with the best mean answer time of the last 10 s, until it is full, or another one has been
    /// better by a fifth for 30 s.
    Stick,
}

impl Choice {
    /// Name in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Stick => "stick",
        }
    }
}

/// A connected server, as a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageServer {
    /// Number of the server; numbers are small, since each has a record.
    pub number: usize,
    /// Number of pages that fit besides those stored there.
    pub free_pages: u32,
    /// True if a new request would wait at the client.
    pub is_busy: bool,
    /// True if the server's host has another copy of the page.
    pub has_copy: bool,
}

impl PageServer {
    const fn can_take(&self) -> bool {
        self.free_pages > 0 && !self.has_copy
    }
}

/// Chooses servers for one client, and remembers their answer times.
#[derive(Clone, Debug, Default)]
pub struct Chooser {
    choice: Choice,
    records: Vec<Record>,
    /// Servers that take new pages under [`Choice::Stick`]: for the first copy of a page, and for the second.
    preferred: [Option<usize>; COPIES],
    /// Time at which the first preferred server was chosen.
    changed_us: i64,
    compared_us: Option<i64>,
    changes_count: u64,
}

/// Answers of one server.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    /// Sums by second; a second's place is its number modulo [`SECONDS`].
    seconds: [AnswerSum; SECONDS],
    /// Time since which the server has been better than the preferred one.
    better_since_us: Option<i64>,
}

/// Answers within one second.
#[derive(Clone, Copy, Debug, Default)]
struct AnswerSum {
    second: i64,
    sum_us: u64,
    count: u64,
}

impl Record {
    fn add(&mut self, took_us: u64, now_us: i64) {
        let second = now_us.div_euclid(SECOND_US);
        let at = second.rem_euclid(SECONDS as i64) as usize;
        let sum = &mut self.seconds[at];
        if sum.second != second {
            *sum = AnswerSum {
                second,
                ..AnswerSum::default()
            };
        }
        sum.sum_us = sum.sum_us.saturating_add(took_us);
        sum.count += 1;
    }

    /// Mean answer time of the present second and the nine before; `None` without an answer.
    fn mean_us(&self, now_us: i64) -> Option<f64> {
        let newest = now_us.div_euclid(SECOND_US);
        let is_recent = |sum: &&AnswerSum| newest - sum.second < SECONDS as i64;
        let recent = || self.seconds.iter().filter(is_recent);
        let count: u64 = recent().map(|sum| sum.count).sum();
        let sum_us: f64 = recent().map(|sum| sum.sum_us as f64).sum();
        (count > 0).then(|| sum_us / count as f64)
    }
}

impl Chooser {
    /// Chooser without any answer so far.
    #[must_use]
    pub fn new(choice: Choice) -> Self {
        Self {
            choice,
            ..Self::default()
        }
    }

    /// Policy of the choice.
    #[must_use]
    pub const fn choice(&self) -> Choice {
        self.choice
    }

    /// Number of changes to a better server while the former one had room.
    #[must_use]
    pub const fn changes_count(&self) -> u64 {
        self.changes_count
    }

    /// Counts a server's answer; error answers are not counted.
    pub fn answered(&mut self, number: usize, took_us: u64, now_us: i64) {
        match self.choice {
            Choice::Spread => {}
            Choice::Stick => self.record(number).add(took_us, now_us),
        }
    }

    /// Discards a server's answers and its preference, because it is disconnected or its lease has ended.
    pub fn forget(&mut self, number: usize) {
        if let Some(record) = self.records.get_mut(number) {
            *record = Record::default();
        }
        for preferred in &mut self.preferred {
            if *preferred == Some(number) {
                *preferred = None;
            }
        }
    }

    /// Chooses a server with room for a page; `None` if there is none. `servers` has each connected server
    /// once.
    pub fn choose(
        &mut self,
        servers: impl Iterator<Item = PageServer> + Clone,
        now_us: i64,
    ) -> Option<usize> {
        match self.choice {
            Choice::Spread => roomiest(servers),
            Choice::Stick => self.stick(servers, now_us),
        }
    }

    fn stick(
        &mut self,
        servers: impl Iterator<Item = PageServer> + Clone,
        now_us: i64,
    ) -> Option<usize> {
        for rank in 0..COPIES {
            let preferred = self.preferred[rank];
            let server = servers
                .clone()
                .find(|server| Some(server.number) == preferred);
            match server {
                // The host has a copy already: the next preferred server takes this one.
                Some(server) if server.has_copy && rank + 1 < COPIES => {}
                Some(server) if server.can_take() => {
                    let better = match rank {
                        0 => self.lasting_better(server.number, servers, now_us),
                        _ => None,
                    };
                    let Some(better) = better else {
                        return Some(server.number);
                    };
                    self.prefer(rank, better, now_us);
                    self.changes_count += 1;
                    return Some(better);
                }
                _ => {
                    let best = self.best(servers, now_us)?;
                    self.prefer(rank, best, now_us);
                    return Some(best);
                }
            }
        }
        None
    }

    /// Server with room that has the best mean answer time. Servers without recent answers come last, the one
    /// with the most room first.
    fn best(&self, servers: impl Iterator<Item = PageServer>, now_us: i64) -> Option<usize> {
        let mean_us = |server: &PageServer| {
            let mean_us = self.mean_us(server.number, now_us);
            mean_us.unwrap_or(f64::INFINITY)
        };
        let able = servers.filter(PageServer::can_take);
        let best = able.min_by(|a, b| {
            let by_answers = mean_us(a).total_cmp(&mean_us(b));
            let by_room = by_answers.then(b.free_pages.cmp(&a.free_pages));
            by_room.then(a.number.cmp(&b.number))
        });
        best.map(|server| server.number)
    }

    /// Best server that has been better than `present` by a fifth for long enough, if the last change is old
    /// enough.
    fn lasting_better(
        &mut self,
        present: usize,
        servers: impl Iterator<Item = PageServer>,
        now_us: i64,
    ) -> Option<usize> {
        let since_us = self.compared_us.map(|compared_us| now_us - compared_us);
        if since_us.is_some_and(|since_us| since_us < INTERVAL_US) {
            return None;
        }
        let has_paused = since_us.is_none_or(|since_us| since_us > PAUSE_US);
        self.compared_us = Some(now_us);
        let present_us = self.mean_us(present, now_us);
        let mut best: Option<(f64, usize)> = None;
        for server in servers {
            let mean_us = self.mean_us(server.number, now_us);
            let better_us = mean_us.filter(|mean_us| {
                let is_better =
                    present_us.is_some_and(|present_us| *mean_us <= present_us * BETTER);
                is_better && server.number != present && server.free_pages > 0
            });
            let record = self.record(server.number);
            let before_us = record.better_since_us.filter(|_| !has_paused);
            record.better_since_us = better_us.map(|_| before_us.unwrap_or(now_us));
            let has_lasted = record
                .better_since_us
                .is_some_and(|since_us| now_us - since_us >= PATIENCE_US);
            if let Some(mean_us) = better_us
                && has_lasted
                && server.can_take()
                && best.is_none_or(|(best_us, _)| mean_us < best_us)
            {
                best = Some((mean_us, server.number));
            }
        }
        let may_change = now_us - self.changed_us >= PATIENCE_US;
        best.filter(|_| may_change).map(|(_, number)| number)
    }

    fn prefer(&mut self, rank: usize, number: usize, now_us: i64) {
        for preferred in &mut self.preferred {
            if *preferred == Some(number) {
                *preferred = None;
            }
        }
        self.preferred[rank] = Some(number);
        if rank == 0 {
            self.changed_us = now_us;
            self.compared_us = None;
            for record in &mut self.records {
                record.better_since_us = None;
            }
        }
    }

    fn mean_us(&self, number: usize, now_us: i64) -> Option<f64> {
        self.records.get(number)?.mean_us(now_us)
    }

    fn record(&mut self, number: usize) -> &mut Record {
        if self.records.len() <= number {
            self.records.resize_with(number + 1, Record::default);
        }
        &mut self.records[number]
    }
}

/// Server with the most free pages, of those that are not busy if there are any; of equals, the last.
fn roomiest(servers: impl Iterator<Item = PageServer>) -> Option<usize> {
    let able = servers.filter(PageServer::can_take);
    let roomiest = able.max_by_key(|server| (!server.is_busy, server.free_pages));
    roomiest.map(|server| server.number)
}

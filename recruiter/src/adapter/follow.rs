//! Main loop of `follow`: reads the quota and the server's use, and sets the server's limit.

use super::limit::{Rule, Uses};
use super::report::{Change, LimitReason};
use super::server::Server;
use super::source::{self, QuotaNews};
use super::{Failure, FollowArgs};
use gleaner_schemas::lending::HostQuota;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Interval of checks of the server. The server may have restarted and lost its limit.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Interval of checks while the server uses more than its limit.
const LOOK_SOON: Duration = Duration::from_millis(50);
/// Share of the limit by which the server may exceed it, since allocators round up.
const OVER_SHARE: f64 = 0.02;

/// Keeps the server's limit up to date until a signal arrives.
///
/// # Errors
/// Permanent faults; with `--once`, every fault.
pub fn run(args: &FollowArgs) -> Result<(), Failure> {
    let (sender, heard) = channel();
    listen_to_signals(sender.clone())?;
    let mut follower = Follower::new(args)?;
    source::start(args, sender)?;
    follower.follow(&heard)
}

fn listen_to_signals(heard: Sender<QuotaNews>) -> Result<(), Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(Failure::Signals)?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = heard.send(QuotaNews::End);
        }
    });
    Ok(())
}

struct Follower<'a> {
    args: &'a FollowArgs,
    rule: Rule,
    server: Server,
    uses: Uses,
    /// Last quota received, with the server's use when the quota was determined.
    quota: Option<(HostQuota, u64)>,
    /// Reason why there is no quota.
    absence_reason: LimitReason,
    /// Time of the last good news from the source.
    heard_at: Instant,
    /// Last message about the source since that time.
    said_of_source: Option<String>,
    server_fails: bool,
    said_that_nothing_is_evicted: bool,
}

impl<'a> Follower<'a> {
    fn new(args: &'a FollowArgs) -> Result<Self, Failure> {
        Ok(Self {
            args,
            rule: Rule {
                minimum_bytes: args.minimum,
                share: args.share,
                quota_includes_use: args.quota_includes_use,
            },
            server: Server::new(args)?,
            uses: Uses::default(),
            quota: None,
            absence_reason: LimitReason::Lost,
            heard_at: Instant::now(),
            said_of_source: None,
            server_fails: false,
            said_that_nothing_is_evicted: false,
        })
    }

    fn follow(&mut self, heard: &Receiver<QuotaNews>) -> Result<(), Failure> {
        loop {
            let wait = match self.keep() {
                Ok(LimitState::Within) if self.args.once && self.quota.is_some() => return Ok(()),
                Ok(LimitState::Over) => LOOK_SOON,
                Ok(_) => LOOK_EVERY,
                Err(failure) if self.args.once => return Err(failure),
                Err(failure) => {
                    self.log_server_failure(&failure);
                    LOOK_EVERY
                }
            };
            match heard.recv_timeout(wait) {
                Ok(QuotaNews::End) => return self.end(),
                Ok(heard) => self.hear(heard)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => (),
            }
            if self.args.once && self.quota.is_none() && self.is_lost() {
                return Err(Failure::NothingHeard(self.args.quota_timeout.as_secs()));
            }
        }
    }

    fn hear(&mut self, heard: QuotaNews) -> Result<(), Failure> {
        match heard {
            QuotaNews::Quota(quota) => {
                self.is_well();
                let same = self.quota.as_ref().filter(|(before, _)| {
                    before.quota_bytes == quota.quota_bytes && before.lent_bytes == quota.lent_bytes
                });
                let used_bytes = match same {
                    Some((_, used_bytes)) => *used_bytes,
                    None => {
                        if let Ok(state) = self.server.state() {
                            self.uses.push(Instant::now(), state.used_bytes);
                        }
                        let age_ms = u64::try_from(quota.age_ms).unwrap_or(0);
                        self.uses
                            .least_bytes(Instant::now(), Duration::from_millis(age_ms))
                    }
                };
                self.quota = Some((quota, used_bytes));
            }
            QuotaNews::AsBefore => self.is_well(),
            QuotaNews::Nothing(failure) if self.args.once => return Err(failure),
            QuotaNews::Nothing(failure) => {
                self.log_source_failure(&failure);
                (self.quota, self.absence_reason) = (None, LimitReason::NoHost);
            }
            QuotaNews::Trouble(failure) => self.log_source_failure(&failure),
            QuotaNews::End => (),
        }
        Ok(())
    }

    /// Sets the limit if it has changed. Returns the server's state with respect to the limit.
    fn keep(&mut self) -> Result<LimitState, Failure> {
        if self.quota.is_some() && self.is_lost() {
            (self.quota, self.absence_reason) = (None, LimitReason::Lost);
        }
        if self.quota.is_none() && !self.is_lost() && self.absence_reason == LimitReason::Lost {
            return Ok(LimitState::NotYet);
        }
        let (wanted, limit_reason) = match &self.quota {
            Some((quota, used_bytes)) => (
                self.rule.limit_bytes(quota, *used_bytes),
                LimitReason::Quota,
            ),
            None => (self.rule.minimum_bytes, self.absence_reason),
        };
        let is_over = self.set(wanted, limit_reason)?;
        if std::mem::take(&mut self.server_fails) {
            eprintln!("gleaner-recruiter: {} answers again", self.server.name());
        }
        Ok(if is_over {
            LimitState::Over
        } else {
            LimitState::Within
        })
    }

    /// Sets the server's limit. Returns true if the server still uses more memory than that and can soon
    /// return some.
    fn set(&mut self, wanted: u64, limit_reason: LimitReason) -> Result<bool, Failure> {
        let wanted = self.server.nearest(wanted);
        let state = self.server.state()?;
        self.uses.push(Instant::now(), state.used_bytes);
        if state.limit_bytes != wanted {
            self.server.set_limit(wanted)?;
            let name = self.server.name();
            let change = Change {
                previous_limit_bytes: state.limit_bytes,
                limit_bytes: wanted,
                used_bytes: state.used_bytes,
                ..Change::new(
                    &name,
                    limit_reason,
                    self.quota.as_ref().map(|(quota, _)| quota),
                )
            };
            change.tell(self.args.json);
            self.warn_without_eviction()?;
        }
        let most = wanted as f64 * (1.0 + OVER_SHARE);
        if state.used_bytes as f64 <= most {
            return Ok(false);
        }
        self.server.shrink_to_limit()?;
        let state = self.server.state()?;
        self.uses.push(Instant::now(), state.used_bytes);
        // Memory that cannot be freed now (fragments in Redis) is checked each second, as is everything else.
        Ok(state.used_bytes as f64 > most && self.server.reclaims_gradually())
    }

    /// Makes the server return its memory when `follow` ends, since then nothing reacts to the owner's
    /// return.
    fn end(&mut self) -> Result<(), Failure> {
        let begin = Instant::now();
        while self.set(self.rule.minimum_bytes, LimitReason::Ending)?
            && begin.elapsed() < LOOK_EVERY
        {}
        Ok(())
    }

    fn is_lost(&self) -> bool {
        self.heard_at.elapsed() > self.args.quota_timeout
    }

    fn is_well(&mut self) {
        self.heard_at = Instant::now();
        if self.said_of_source.take().is_some() {
            eprintln!("gleaner-recruiter: the quota is known again");
        }
    }

    fn log_source_failure(&mut self, failure: &Failure) {
        let words = failure.to_string();
        if self.said_of_source.as_ref() != Some(&words) {
            eprintln!("gleaner-recruiter: {words}");
            self.said_of_source = Some(words);
        }
    }

    fn log_server_failure(&mut self, failure: &Failure) {
        if !std::mem::replace(&mut self.server_fails, true) {
            eprintln!("gleaner-recruiter: {failure}; trying again");
        }
    }

    fn warn_without_eviction(&mut self) -> Result<(), Failure> {
        if !self.said_that_nothing_is_evicted && !self.server.evicts()? {
            self.said_that_nothing_is_evicted = true;
            eprintln!(
                "gleaner-recruiter: {} evicts nothing, and will refuse writes instead of giving memory back: set its \
                 maxmemory-policy, to allkeys-lru for one",
                self.server.name()
            );
        }
        Ok(())
    }
}

/// State of a server with respect to its limit.
enum LimitState {
    /// No quota has arrived yet.
    NotYet,
    /// The server uses more than its limit.
    Over,
    /// The server is within its limit.
    Within,
}

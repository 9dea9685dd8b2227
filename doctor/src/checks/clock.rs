//! Checks whether the clock is synchronised. The kernel says so (adjtimex(2)), whichever daemon does it.

use crate::finding::Finding;
use crate::message::Message;
use gleaner_schemas::units::Seconds;

const SUBJECT: &str = "clock";
/// Largest acceptable difference between two clocks. The collector reports hosts with a larger one.
const DIFFERENCE_MS: i64 = 60_000;

/// State of the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    is_synchronised: bool,
    /// Largest possible error of the clock, in microseconds.
    error_us: i64,
}

/// Reads the kernel's clock state; changes nothing.
pub(crate) fn read() -> Option<Clock> {
    call::adjtimex()
}

#[allow(unsafe_code)]
mod call {
    use super::Clock;

    pub(super) fn adjtimex() -> Option<Clock> {
        // SAFETY: the structure consists of plain numbers; with all zero, `modes` sets nothing.
        let mut timex: libc::timex = unsafe { std::mem::zeroed() };
        // SAFETY: the structure outlives the call.
        let state = unsafe { libc::adjtimex(&raw mut timex) };
        (state >= 0).then_some(Clock {
            is_synchronised: timex.status & libc::STA_UNSYNC == 0,
            #[allow(clippy::useless_conversion)] // the field's width depends on the machine
            error_us: i64::from(timex.maxerror),
        })
    }
}

/// Judges the clock. `has_timedatectl`: systemd has a command that turns synchronisation on.
pub(crate) fn judge(clock: Option<Clock>, has_timedatectl: bool) -> Finding {
    let Some(clock) = clock else {
        return Finding::of(
            Message::ClockUnsynchronised,
            SUBJECT,
            "the kernel does not tell whether it is kept right",
        );
    };
    let error = Seconds(clock.error_us as f64 / 1e6);
    if clock.is_synchronised {
        return Finding::ok(SUBJECT, format!("kept right, to {error} at worst"));
    }
    let remedy = match has_timedatectl {
        true => "sudo timedatectl set-ntp true".to_owned(),
        false => super::program::install("chrony"),
    };
    Finding::of(
        Message::ClockUnsynchronised,
        SUBJECT,
        "nothing keeps it right",
    )
    .remedy(remedy)
}

/// Judges the difference: the server's clock less ours. If our clock is synchronised, the remedy is for the
/// server's machine.
pub(crate) fn judge_difference(
    server: &str,
    difference_ms: i64,
    ours: Option<Clock>,
) -> Option<Finding> {
    const REMEDY: &str = "sudo timedatectl set-ntp true";
    if difference_ms.saturating_abs() <= DIFFERENCE_MS {
        return None;
    }
    let amount = Seconds::from_ms(difference_ms.saturating_abs());
    let (direction, opposite) = if difference_ms > 0 {
        ("behind", "ahead of")
    } else {
        ("ahead of", "behind")
    };
    Some(if ours.is_some_and(|clock| clock.is_synchronised) {
        let found = format!(
            "the clock of {server} is {amount} {opposite} this host's, which is kept right: fix it there"
        );
        let host = server.split_once("://").map_or(server, |(_, rest)| rest);
        let host = host.split(['/', '?']).next().unwrap_or(host);
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        let remedy = format!("ssh {} {REMEDY}", host.trim_matches(['[', ']']));
        Finding::of(Message::ClockDiffers, SUBJECT, found).remedy(remedy)
    } else {
        let found = format!("this host's clock is {amount} {direction} that of {server}");
        Finding::of(Message::ClockDiffers, SUBJECT, found).remedy(REMEDY)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_judged() {
        let clock = |is_synchronised| {
            Some(Clock {
                is_synchronised,
                error_us: 12_000,
            })
        };
        assert!(judge(clock(true), true).text.contains("12 ms"));
        assert_eq!(
            judge(clock(false), true).remedy.as_deref(),
            Some("sudo timedatectl set-ntp true")
        );
        assert_eq!(
            judge(clock(false), false).message,
            Some(Message::ClockUnsynchronised)
        );
        assert_eq!(
            judge(None, false).message,
            Some(Message::ClockUnsynchronised)
        );
        assert!(read().is_some());
        assert_eq!(judge_difference("c", 60_000, None), None);
        assert_eq!(
            judge_difference("c", i64::MIN, None).unwrap().message,
            Some(Message::ClockDiffers)
        );
        assert!(
            judge_difference("c", 90_000, clock(false))
                .unwrap()
                .text
                .contains("1 min 30 s behind that of c")
        );
    }

    #[test]
    fn a_host_whose_clock_is_kept_right_is_not_told_to_fix_it() {
        let right = Clock {
            is_synchronised: true,
            error_us: 12_000,
        };
        for (server, host) in [
            ("https://c.lab:7443", "c.lab"),
            ("https://[::1]:7443", "::1"),
        ] {
            let finding = judge_difference(server, -90_000, Some(right)).unwrap();
            let wanted = format!("the clock of {server} is 1 min 30 s behind this host's");
            assert!(finding.text.starts_with(&wanted), "{}", finding.text);
            assert_eq!(
                finding.remedy,
                Some(format!("ssh {host} sudo timedatectl set-ntp true"))
            );
        }
    }
}

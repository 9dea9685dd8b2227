//! Queueing of page-ins and page-outs for a link: the mixed network of Felten and Zahorjan, with a CPU of its own for
//! each process, and page-outs in the background.

use crate::queueing::{PageTimes, QueueingError, RemotePaging};

/// Times and rates of a process that pages to remote memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagingTimes {
    /// Duration of the process without page-ins, in seconds.
    pub native_s: f64,
    /// Page-ins during that time.
    pub page_ins: f64,
    /// Page-outs during that time.
    pub page_outs: f64,
    /// Delay of a page-in besides the link, in seconds.
    pub delay_s: f64,
    /// Time of a page on the link, in seconds.
    pub link_s: f64,
}

/// Range of page-ins, and most page-outs, per work unit of [`RemotePaging`].
const PAGE_INS: (f64, f64) = (1e-3, 1e4);
/// Rate of pages per second from which the short work unit is used.
const FREQUENT_PER_S: f64 = 100.0;
/// Work units, in seconds of the native duration. With the short one, the model's range ends at 100 million pages a
/// second.
const SHORT_UNIT_S: f64 = 1e-4;
const LONG_UNIT_S: f64 = 1.0;

impl PagingTimes {
    /// Duration as a multiple of the native one, without any queueing.
    #[must_use]
    pub fn slowdown_alone(&self) -> f64 {
        1.0 + self.page_ins * (self.delay_s + self.link_s) / self.native_s
    }

    /// Duration as a multiple of the native one, if this number of such processes share the link.
    ///
    /// # Errors
    /// A rate or time outside the ranges of the queueing model.
    pub fn slowdown(&self, processes: u32) -> Result<f64, QueueingError> {
        if self.page_ins <= 0.0 {
            return Ok(1.0);
        }
        let per_s = |pages: f64| pages / self.native_s;
        let is_frequent = per_s(self.page_ins.max(self.page_outs)) >= FREQUENT_PER_S;
        let unit_s = if is_frequent {
            SHORT_UNIT_S
        } else {
            LONG_UNIT_S
        };
        let page_in_units = per_s(self.page_ins) * unit_s;
        let paging = RemotePaging {
            page_ins_per_work_unit: page_in_units.max(PAGE_INS.0),
            page_outs_per_work_unit: per_s(self.page_outs) * unit_s,
            jobs_per_client: 1,
            clients: processes,
            servers: 1,
            client_speed: 1.0 / unit_s,
            page_in: PageTimes {
                cpu_s: self.delay_s,
                network_s: self.link_s,
                server_s: 0.0,
            },
            page_out: PageTimes {
                cpu_s: 0.0,
                network_s: self.link_s,
                server_s: 0.0,
            },
        };
        let means = paging.solve()?;
        let slowdown = 1.0 / unit_s / means.work_units_per_s;
        // Rates below the model's range were raised to it.
        let excess = (page_in_units / PAGE_INS.0).min(1.0);
        Ok(1.0 + (slowdown - 1.0).max(0.0) * excess)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYRNOW: PagingTimes = PagingTimes {
        native_s: 1.0,
        page_ins: 10_000.0,
        page_outs: 0.0,
        delay_s: 20e-6,
        link_s: 80e-6,
    };

    fn near(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-6,
            "{found}, not {expected}"
        );
    }

    #[test]
    fn one_process_waits_for_nobody() {
        near(MYRNOW.slowdown(1).unwrap(), 2.0);
        near(MYRNOW.slowdown_alone(), 2.0);
        let rare = PagingTimes {
            page_ins: 1e-5,
            ..MYRNOW
        };
        assert!((rare.slowdown(1).unwrap() - 1.0).abs() < 1e-8);
        let none = PagingTimes {
            page_ins: 0.0,
            page_outs: 5.0,
            ..MYRNOW
        };
        near(none.slowdown(4).unwrap(), 1.0);
    }

    #[test]
    fn others_and_page_outs_make_it_slower() {
        let two = MYRNOW.slowdown(2).unwrap();
        // A link that serves 12,500 pages a second bounds ten processes.
        let ten = MYRNOW.slowdown(10).unwrap();
        assert!(two > 2.0 && ten > two, "{two} {ten}");
        assert!(ten >= 10.0 * 10_000.0 / 12_500.0, "{ten}");
        let with_page_outs = PagingTimes {
            page_outs: 5_000.0,
            ..MYRNOW
        };
        assert!(with_page_outs.slowdown(1).unwrap() > 2.0);
    }
}

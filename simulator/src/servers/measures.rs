//! Figures of an outcome, in the order of the output.

use super::outcome::{Outcome, PageIns};

/// A figure of an outcome.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Key in JSON and CSV; it has the unit.
    pub key: &'static str,
    /// Heading of the column in the table.
    pub label: &'static str,
    /// Meaning of the figure.
    pub meaning: &'static str,
    pub(super) value: fn(&Outcome) -> Option<f64>,
}

macro_rules! measures {
    ($($key:literal, $label:literal, $meaning:literal => $value:expr;)*) => {
        /// All figures, in the order of the output.
        pub const MEASURES: [Measure; [$($key),*].len()] = [$(Measure {
            key: $key,
            label: $label,
            meaning: $meaning,
            value: $value,
        }),*];
    };
}

measures! {
    "owner_ms", "owner, ms",
        "time until 99 % of the reclaimed memory is the owner's, longest of the returns" =>
        |of| {
            let times = of.returns.iter().filter_map(|owner| owner.owner_ns);
            times.max().map(|ns| ns as f64 / 1e6)
        };
    "copies_ms", "copies, ms",
        "time until the last second copy that a return made necessary has arrived, longest of the returns" =>
        |of| {
            let times = of.returns.iter().filter_map(|owner| owner.copied_ns);
            times.max().map(|ns| ns as f64 / 1e6)
        };
    "shutdown_network_bytes", "network, bytes", "bytes that shutdowns send in their first 10 s" =>
        |of| Some(of.returns.iter().map(|owner| owner.network_bytes).sum::<u64>() as f64);
    "owner_disk_bytes", "owner's disk, bytes",
        "bytes on the disks of servers in the first 10 s of their shutdowns" =>
        |of| Some(of.returns.iter().map(|owner| owner.owner_disk_bytes).sum::<u64>() as f64);
    "p50_us", "p50, us", "median page-in before the first owner's return" =>
        |of| quantile(&of.before, 0.5);
    "p99_us", "p99, us", "99th percentile of page-ins before the first owner's return" =>
        |of| quantile(&of.before, 0.99);
    "during_p50_us", "p50 during, us", "median page-in in the first 10 s after the owner's return" =>
        |of| quantile(&of.during, 0.5);
    "during_p99_us", "p99 during, us",
        "99th percentile of page-ins in the first 10 s after the owner's return" =>
        |of| quantile(&of.during, 0.99);
    "after_p50_us", "p50 after, us", "median of later page-ins" =>
        |of| quantile(&of.after, 0.5);
    "after_p99_us", "p99 after, us", "99th percentile of later page-ins" =>
        |of| quantile(&of.after, 0.99);
    "server_share", "from servers", "share of the page-ins that a server's memory answers" =>
        |of| {
            let all = of.page_ins();
            (all > 0).then(|| of.server_page_ins as f64 / all as f64)
        };
    "distinct_share", "distinct", "share of the servers' used room that has distinct pages" =>
        |of| Some(of.distinct_share);
    "lost_with_one_pages", "lost with one", "pages that would be lost with the worst server" =>
        |of| Some(of.lost_with_one_pages as f64);
    "lost_pages", "lost", "pages that are lost" => |of| Some(of.lost_pages as f64);
    "preparation_messages_per_s", "messages/s", "messages between servers per second in normal times" =>
        |of| Some(of.preparation_messages as f64 * 1e9 / of.length_ns.max(1) as f64);
    "load_variation", "variation of load", "standard deviation of the servers' requests over their mean" =>
        Outcome::load_variation;
    "servers_per_client", "servers/client", "servers on which a client depends, mean of the clients" =>
        |of| Some(of.servers_of_clients as f64 / of.clients.max(1) as f64);
    "changes_per_client", "changes/client", "changes of a client to a better server, mean of the clients" =>
        |of| Some(of.changes as f64 / of.clients.max(1) as f64);
}

fn quantile(page_ins: &PageIns, share: f64) -> Option<f64> {
    page_ins.quantile_ns(share).map(|ns| ns as f64 / 1e3)
}

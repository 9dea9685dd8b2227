//! Stations of one node: CPU, links and disk, each of which serves one request at a time, in order of arrival.

/// Times until which a node's stations are busy, in ns since the simulation's begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    cpu_free_ns: u64,
    out_free_ns: u64,
    in_free_ns: u64,
    disk_free_ns: u64,
    /// Page after the last one that the disk has served.
    next_on_disk: Option<u64>,
    /// CPU time of the kernel so far: it delays the node's program.
    pub(super) kernel_ns: u64,
}

impl Machine {
    /// Time at which the CPU begins work that arrives at `now_ns`.
    pub(super) fn begin_ns(&self, now_ns: u64) -> u64 {
        now_ns.max(self.cpu_free_ns)
    }

    /// The CPU works for the kernel between these times.
    pub(super) fn occupy(&mut self, from_ns: u64, until_ns: u64) {
        self.cpu_free_ns = until_ns;
        self.kernel_ns += until_ns - from_ns;
    }

    /// Time at which a request ends that arrives at the disk at `now_ns`. `time_ns` returns the time of the access,
    /// given whether the page follows the page before.
    pub(super) fn disk(
        &mut self,
        now_ns: u64,
        page: u64,
        time_ns: impl FnOnce(bool) -> u64,
    ) -> u64 {
        let is_sequential = self.next_on_disk == Some(page);
        self.next_on_disk = Some(page + 1);
        self.disk_free_ns = now_ns.max(self.disk_free_ns) + time_ns(is_sequential);
        self.disk_free_ns
    }
}

/// Time at which both links are free for a page that is ready at `now_ns`. They are occupied for `link_ns` from then.
pub(super) fn occupy_links(
    sender: &mut Machine,
    receiver: &mut Machine,
    now_ns: u64,
    link_ns: u64,
) -> u64 {
    let begin_ns = now_ns.max(sender.out_free_ns).max(receiver.in_free_ns);
    sender.out_free_ns = begin_ns + link_ns;
    receiver.in_free_ns = begin_ns + link_ns;
    begin_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_held_at_both_ends() {
        let [mut a, mut b, mut c] = [(); 3].map(|()| Machine::default());
        assert_eq!(occupy_links(&mut a, &mut b, 10, 5), 10);
        assert_eq!(occupy_links(&mut a, &mut c, 11, 5), 15, "the sender's link");
        assert_eq!(
            occupy_links(&mut b, &mut c, 11, 5),
            20,
            "the receiver's link"
        );
        assert_eq!(
            occupy_links(&mut c, &mut a, 11, 5),
            11,
            "directions are independent"
        );
    }

    #[test]
    fn the_disk_is_faster_in_order() {
        let mut machine = Machine::default();
        let time_ns = |is_sequential| if is_sequential { 3 } else { 14 };
        let mut read = |page, now_ns| machine.disk(now_ns, page, time_ns);
        assert_eq!(
            [read(7, 0), read(8, 1), read(8, 100), read(9, 101)],
            [14, 17, 114, 117]
        );
    }
}

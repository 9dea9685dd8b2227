//! Stations of a host: CPU, links and disk, each of which serves one request at a time, in order of arrival.

/// Times until which a host's stations are busy, in ns since the simulation's begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Machine {
    cpu_free_ns: u64,
    out_free_ns: u64,
    in_free_ns: u64,
    disk_free_ns: u64,
}

impl Machine {
    /// Time at which the CPU ends work that arrives at `now_ns`.
    pub(super) fn compute(&mut self, now_ns: u64, work_ns: u64) -> u64 {
        self.cpu_free_ns = now_ns.max(self.cpu_free_ns) + work_ns;
        self.cpu_free_ns
    }

    /// Time at which the disk ends an access that arrives at `now_ns`.
    pub(super) fn access_disk(&mut self, now_ns: u64, access_ns: u64) -> u64 {
        self.disk_free_ns = now_ns.max(self.disk_free_ns) + access_ns;
        self.disk_free_ns
    }

    /// Time at which the CPU has done all its work.
    pub(super) const fn computes_until_ns(&self) -> u64 {
        self.cpu_free_ns
    }

    /// Time at which the outgoing link has carried all pages.
    pub(super) const fn sends_until_ns(&self) -> u64 {
        self.out_free_ns
    }

    /// Time at which the incoming link has carried all pages.
    pub(super) const fn receives_until_ns(&self) -> u64 {
        self.in_free_ns
    }
}

/// Time at which a page has left the sender and reached the receiver's link; both links are occupied for
/// `link_ns`.
pub(super) fn transfer(
    machines: &mut [Machine],
    (sender, receiver): (usize, usize),
    now_ns: u64,
    link_ns: u64,
) -> u64 {
    let out_free_ns = machines[sender].out_free_ns;
    let in_free_ns = machines[receiver].in_free_ns;
    let end_ns = now_ns.max(out_free_ns).max(in_free_ns) + link_ns;
    machines[sender].out_free_ns = end_ns;
    machines[receiver].in_free_ns = end_ns;
    end_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stations_serve_in_order() {
        let mut machines = [Machine::default(); 3];
        assert_eq!(transfer(&mut machines, (0, 1), 10, 5), 15);
        assert_eq!(
            transfer(&mut machines, (0, 2), 11, 5),
            20,
            "the sender's link"
        );
        assert_eq!(
            transfer(&mut machines, (1, 2), 11, 5),
            25,
            "the receiver's link"
        );
        assert_eq!(
            transfer(&mut machines, (2, 0), 11, 5),
            16,
            "the other direction"
        );
        assert_eq!(
            [
                machines[0].sends_until_ns(),
                machines[0].receives_until_ns()
            ],
            [20, 16]
        );
        assert_eq!(
            [machines[0].compute(3, 4), machines[0].compute(4, 4)],
            [7, 11]
        );
        assert_eq!(machines[0].computes_until_ns(), 11);
        assert_eq!(
            [machines[0].access_disk(3, 4), machines[0].access_disk(9, 4)],
            [7, 13]
        );
    }
}

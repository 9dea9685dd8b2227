//! A client workstation, which handles its program's requests one after the other.

use super::check::Violation;
use super::cluster::{Cluster, NEVER, RegionPlace};
use super::local::Local;
use super::machine::Machine;
use super::outcome::Counts;
use super::process::{Process, Stage, Step};
use crate::Request;
use crate::applications::Layout;

/// Conversion between a program's blocks and its regions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    layout: Layout,
    /// Blocks of a full region.
    region_blocks: u32,
    regions_a_file: u32,
    /// Number of the client's first region: regions are numbered client by client.
    first_region: u32,
}

impl Geometry {
    /// Geometry with regions of about `region_bytes`: the largest multiple of the program's largest request
    /// that fits, or one such request if none fits. No region spans two files.
    pub(super) fn new(layout: Layout, region_bytes: u64) -> Self {
        let request = u64::from(layout.largest_request_bytes.max(layout.block_bytes).max(1));
        let requests = (region_bytes / request).max(1);
        let blocks = requests * request / u64::from(layout.block_bytes.max(1));
        let region_blocks = blocks.clamp(1, u64::from(layout.file_blocks.max(1))) as u32;
        Self {
            regions_a_file: layout.file_blocks.div_ceil(region_blocks),
            region_blocks,
            first_region: 0,
            layout,
        }
    }

    /// Geometry with the same regions, numbered after the regions of other clients.
    pub(super) const fn after(self, first_region: u32) -> Self {
        Self {
            first_region,
            ..self
        }
    }

    /// Number of regions.
    pub(super) const fn regions(&self) -> u32 {
        self.layout.files * self.regions_a_file
    }

    /// Sizes of all regions, in order.
    pub(super) fn region_bytes(&self) -> impl Iterator<Item = u64> {
        let regions = self.first_region..self.first_region + self.regions();
        regions.map(|region| self.extent(region).1)
    }

    fn file(&self, block: u32) -> u32 {
        block / self.layout.file_blocks
    }

    fn region(&self, block: u32) -> u32 {
        let file = self.file(block);
        let in_file = block - file * self.layout.file_blocks;
        self.first_region + file * self.regions_a_file + in_file / self.region_blocks
    }

    /// First block of a region, and its bytes.
    fn extent(&self, region: u32) -> (u32, u64) {
        let region = region - self.first_region;
        let (file, in_file) = (region / self.regions_a_file, region % self.regions_a_file);
        let first = in_file * self.region_blocks;
        let blocks = self.region_blocks.min(self.layout.file_blocks - first);
        let bytes = u64::from(blocks) * u64::from(self.layout.block_bytes);
        (file * self.layout.file_blocks + first, bytes)
    }

    fn byte_of(&self, block: u32) -> u64 {
        u64::from(block) * u64::from(self.layout.block_bytes)
    }
}

/// A client's own machine.
pub(super) struct Workstation {
    pub(super) geometry: Geometry,
    pub(super) machine: Machine,
    pub(super) local: Local,
    pub(super) counts: Counts,
}

impl Workstation {
    /// Executes the process' next step; `now_ns` is the time of this step.
    #[inline]
    pub(super) fn step(
        &mut self,
        cluster: &mut Option<Cluster<'_>>,
        process: &mut Process,
        now_ns: u64,
    ) -> Result<Step, Violation> {
        if let Some(cluster) = cluster
            && now_ns >= cluster.next_ns
        {
            cluster.advance(now_ns)?;
        }
        match process.stage {
            Stage::Ask => self.ask(cluster, process, now_ns),
            Stage::Disk => Ok(self.disk(process, now_ns)),
            Stage::String => Ok(self.string(process, now_ns)),
            Stage::Store => Ok(self.store(cluster, process, now_ns)),
            Stage::Parked => Ok(Step::Park),
        }
    }

    #[inline]
    fn ask(
        &mut self,
        cluster: &mut Option<Cluster<'_>>,
        process: &mut Process,
        now_ns: u64,
    ) -> Result<Step, Violation> {
        let (first, count) = self.blocks(&process.request);
        let is_write = process.request.is_write;
        if !is_write && self.local.has(first, count) {
            self.counts.local_requests_count += 1;
            return Ok(Step::Answered(now_ns));
        }
        process.storing = None;
        process.not_before_ns = 0;
        let Some(cluster) = cluster else {
            return Ok(self.disk(process, now_ns));
        };
        let region = self.geometry.region(first);
        process.region = region;
        match cluster.find(region, now_ns) {
            RegionPlace::Held => {
                cluster.serve(region, now_ns)?;
                let bytes = u64::from(process.request.bytes);
                if is_write {
                    // Sends the data to disk and host concurrently (section 3.1).
                    process.not_before_ns = self.machine.send(now_ns, bytes);
                    return Ok(self.disk(process, now_ns));
                }
                let asked_ns = now_ns + self.machine.latency_ns();
                let at_ns = self.machine.send(asked_ns, bytes);
                self.counts.remote_requests_count += 1;
                self.counts.remote_bytes += bytes;
                self.local.keep(first, count);
                Ok(Step::Answered(at_ns))
            }
            RegionPlace::Lost => {
                cluster.drop_lost(region, now_ns)?;
                let told_ns = now_ns + self.machine.round_trip_ns();
                Ok(Step::Next(Stage::Ask, told_ns))
            }
            RegionPlace::Coming(_) | RegionPlace::Nowhere if is_write => {
                Ok(self.disk(process, now_ns))
            }
            RegionPlace::Coming(NEVER) => Ok(Step::Park),
            RegionPlace::Coming(ready_ns) => Ok(Step::Next(Stage::Ask, ready_ns)),
            RegionPlace::Nowhere if cluster.may_ask(region, now_ns) => {
                process.storing = cluster.ask(region, now_ns)?;
                let told_ns = now_ns + self.machine.round_trip_ns();
                Ok(Step::Next(Stage::Disk, told_ns))
            }
            RegionPlace::Nowhere => Ok(self.disk(process, now_ns)),
        }
    }

    /// Extent that is read from or written to disk: first block, and bytes.
    fn extent(&self, process: &Process) -> (u32, u64) {
        match process.storing {
            Some(_) => self.geometry.extent(process.region),
            None => {
                let first = process.request.object as u32;
                (first, u64::from(process.request.bytes))
            }
        }
    }

    fn disk(&mut self, process: &Process, now_ns: u64) -> Step {
        let (block, bytes) = self.extent(process);
        let (file, from_byte) = (self.geometry.file(block), self.geometry.byte_of(block));
        let string_ns = self.machine.disk(now_ns, file, from_byte, bytes);
        Step::Next(Stage::String, string_ns)
    }

    fn string(&mut self, process: &Process, now_ns: u64) -> Step {
        let (_, bytes) = self.extent(process);
        self.counts.disk_bytes += bytes;
        let at_ns = self.machine.string(now_ns, bytes);
        let (first, count) = self.blocks(&process.request);
        self.local.keep(first, count);
        if process.storing.is_some() {
            return Step::Next(Stage::Store, at_ns);
        }
        self.counts.disk_requests_count += 1;
        Step::Answered(at_ns.max(process.not_before_ns))
    }

    fn store(&mut self, cluster: &mut Option<Cluster<'_>>, process: &Process, now_ns: u64) -> Step {
        self.counts.disk_requests_count += 1;
        let (Some(cluster), Some(storing)) = (cluster, process.storing) else {
            return Step::Answered(now_ns);
        };
        let region = process.region;
        // If the host has reclaimed its memory, the client loses only the round trip to the host here. The
        // next request for the region notices the lost region.
        let ready_ns = if cluster.is_void(region, storing) {
            now_ns + self.machine.round_trip_ns()
        } else {
            let (_, bytes) = self.geometry.extent(region);
            self.machine.send(now_ns, bytes)
        };
        cluster.stored(region, storing, ready_ns);
        Step::Answered(ready_ns)
    }

    fn blocks(&self, request: &Request) -> (u32, u32) {
        let block_bytes = self.geometry.layout.block_bytes;
        let count = if request.bytes <= block_bytes {
            1
        } else {
            request.bytes.div_ceil(block_bytes)
        };
        (request.object as u32, count)
    }

    /// Checks that all requests since `before` were answered, except `waiting` of them.
    pub(super) fn check(&self, run: u64, before: &Counts, waiting: u64) -> Result<(), Violation> {
        let now = &self.counts;
        let requests_count = now.requests_count - before.requests_count;
        let (local_requests_count, remote_requests_count, disk_requests_count) = (
            now.local_requests_count - before.local_requests_count,
            now.remote_requests_count - before.remote_requests_count,
            now.disk_requests_count - before.disk_requests_count,
        );
        if requests_count
            != local_requests_count + remote_requests_count + disk_requests_count + waiting
        {
            return Err(Violation::Requests {
                run,
                requests_count,
                local_requests_count,
                remote_requests_count,
                disk_requests_count,
            });
        }
        Ok(())
    }
}

-- Events, NUMA nodes and control groups; more of the kernel's figures.
ALTER TABLE samples ADD COLUMN zswapped_bytes INTEGER;
ALTER TABLE samples ADD COLUMN zram_bytes INTEGER;
ALTER TABLE samples ADD COLUMN zram_stored_bytes INTEGER;
ALTER TABLE samples ADD COLUMN arc_bytes INTEGER;
ALTER TABLE samples ADD COLUMN arc_min_bytes INTEGER;
ALTER TABLE samples ADD COLUMN psi_io_full_total_us INTEGER;
ALTER TABLE samples ADD COLUMN reclaimed_kswapd_total_count INTEGER;
ALTER TABLE samples ADD COLUMN reclaimed_direct_total_count INTEGER;
ALTER TABLE samples ADD COLUMN oom_kill_total_count INTEGER;
ALTER TABLE samples ADD COLUMN damon_idle_p10_ms INTEGER;
ALTER TABLE samples ADD COLUMN damon_idle_p25_ms INTEGER;
ALTER TABLE samples ADD COLUMN damon_idle_p50_ms INTEGER;
ALTER TABLE samples ADD COLUMN damon_idle_p75_ms INTEGER;
ALTER TABLE samples ADD COLUMN damon_idle_p90_ms INTEGER;
ALTER TABLE processes ADD COLUMN private_bytes INTEGER;
ALTER TABLE processes ADD COLUMN shared_bytes INTEGER;
ALTER TABLE processes ADD COLUMN cgroup_id INTEGER;
ALTER TABLE files ADD COLUMN opened_count INTEGER;
ALTER TABLE hosts ADD COLUMN os_name TEXT;
ALTER TABLE hosts ADD COLUMN cpu_model TEXT;
ALTER TABLE hosts ADD COLUMN cores_count INTEGER;
ALTER TABLE hosts ADD COLUMN machine_model TEXT;
ALTER TABLE hosts ADD COLUMN nodes_count INTEGER;

CREATE TABLE nodes (
  sequence INTEGER NOT NULL REFERENCES samples (sequence) ON DELETE CASCADE,
  node INTEGER NOT NULL,
  mem_total_bytes INTEGER NOT NULL,
  mem_free_bytes INTEGER NOT NULL,
  lotsfree_bytes INTEGER,
  active_file_bytes INTEGER,
  inactive_file_bytes INTEGER,
  anon_bytes INTEGER,
  shmem_bytes INTEGER,
  slab_bytes INTEGER,
  reclaimable_kernel_bytes INTEGER,
  hugetlb_bytes INTEGER,
  PRIMARY KEY (sequence, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE cgroups (
  sequence INTEGER NOT NULL REFERENCES samples (sequence) ON DELETE CASCADE,
  cgroup_id INTEGER NOT NULL,
  path TEXT,
  active_processes_count INTEGER NOT NULL,
  memory_bytes INTEGER,
  anon_bytes INTEGER,
  file_bytes INTEGER,
  shmem_bytes INTEGER,
  kernel_bytes INTEGER,
  swap_bytes INTEGER,
  PRIMARY KEY (sequence, cgroup_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  sequence INTEGER NOT NULL PRIMARY KEY,
  time_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  amount_ms INTEGER,
  detail TEXT
) STRICT;

-- Identity of this database and of the host: host_id, database_id, created_time_ms.
CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE samples (
  sequence INTEGER NOT NULL PRIMARY KEY,
  time_ms INTEGER NOT NULL,
  boot_id TEXT,
  boottime_ms INTEGER NOT NULL,
  interval_ms INTEGER,
  files_whole INTEGER NOT NULL CHECK (files_whole IN (0, 1)),
  physical_bytes INTEGER NOT NULL,
  static_kernel_bytes INTEGER,
  balloon_bytes INTEGER NOT NULL,
  dynamic_kernel_bytes INTEGER NOT NULL,
  lotsfree_bytes INTEGER,
  file_cache_bytes INTEGER NOT NULL,
  process_bytes INTEGER NOT NULL,
  guest_bytes INTEGER NOT NULL,
  available_bytes INTEGER NOT NULL,
  remainder_bytes INTEGER NOT NULL,
  harvestable_bytes INTEGER,
  available_free_bytes INTEGER NOT NULL,
  available_idle_process_bytes INTEGER NOT NULL,
  available_unused_cache_bytes INTEGER NOT NULL,
  available_reclaimable_kernel_bytes INTEGER NOT NULL,
  available_residual_bytes INTEGER NOT NULL,
  mem_total_bytes INTEGER NOT NULL,
  mem_free_bytes INTEGER NOT NULL,
  pcp_free_bytes INTEGER,
  mem_available_bytes INTEGER,
  mem_available_min_bytes INTEGER,
  buffers_bytes INTEGER,
  cached_bytes INTEGER,
  swap_cached_bytes INTEGER,
  anon_bytes INTEGER,
  shmem_bytes INTEGER,
  mapped_bytes INTEGER,
  active_file_bytes INTEGER,
  inactive_file_bytes INTEGER,
  unevictable_bytes INTEGER,
  dirty_bytes INTEGER,
  writeback_bytes INTEGER,
  slab_bytes INTEGER,
  reclaimable_kernel_bytes INTEGER,
  kernel_stack_bytes INTEGER,
  page_tables_bytes INTEGER,
  percpu_bytes INTEGER,
  vmalloc_bytes INTEGER,
  hugetlb_bytes INTEGER,
  swap_total_bytes INTEGER,
  swap_free_bytes INTEGER,
  zswap_bytes INTEGER,
  load1 REAL,
  load5 REAL,
  load15 REAL,
  running_count INTEGER,
  tasks_count INTEGER,
  psi_memory_some_total_us INTEGER,
  psi_memory_full_total_us INTEGER,
  psi_cpu_some_total_us INTEGER,
  psi_io_some_total_us INTEGER,
  refault_file_total_count INTEGER,
  refault_anon_total_count INTEGER,
  swap_in_total_count INTEGER,
  swap_out_total_count INTEGER,
  major_fault_total_count INTEGER,
  owner_idle_ms INTEGER,
  processes_count INTEGER NOT NULL,
  active_processes_count INTEGER NOT NULL,
  agent_cpu_us INTEGER NOT NULL,
  agent_wall_us INTEGER NOT NULL,
  agent_rss_bytes INTEGER NOT NULL
) STRICT;

CREATE TABLE processes (
  sequence INTEGER NOT NULL REFERENCES samples (sequence) ON DELETE CASCADE,
  pid INTEGER NOT NULL,
  started_ms INTEGER NOT NULL,
  name TEXT NOT NULL,
  always_active INTEGER NOT NULL CHECK (always_active IN (0, 1)),
  cpu_ms INTEGER,
  rss_bytes INTEGER NOT NULL,
  memory_source TEXT NOT NULL,
  anon_bytes INTEGER,
  file_bytes INTEGER,
  shmem_bytes INTEGER,
  swap_bytes INTEGER,
  PRIMARY KEY (sequence, pid)
) STRICT, WITHOUT ROWID;

CREATE TABLE files (
  sequence INTEGER NOT NULL REFERENCES samples (sequence) ON DELETE CASCADE,
  file_id INTEGER NOT NULL,
  path TEXT,
  open_count INTEGER NOT NULL,
  mapped_count INTEGER NOT NULL,
  size_bytes INTEGER,
  cached_bytes INTEGER,
  mapped_cached_bytes INTEGER,
  PRIMARY KEY (sequence, file_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE activity (
  sequence INTEGER NOT NULL REFERENCES samples (sequence) ON DELETE CASCADE,
  source TEXT NOT NULL,
  idle_ms INTEGER,
  state TEXT NOT NULL,
  devices_count INTEGER NOT NULL,
  PRIMARY KEY (sequence, source)
) STRICT, WITHOUT ROWID;

CREATE TABLE absences (
  sequence INTEGER NOT NULL REFERENCES samples (sequence) ON DELETE CASCADE,
  item TEXT NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT NOT NULL,
  absent_count INTEGER NOT NULL,
  PRIMARY KEY (sequence, item, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE gaps (
  sequence INTEGER NOT NULL PRIMARY KEY,
  time_ms INTEGER NOT NULL,
  from_time_ms INTEGER NOT NULL,
  to_time_ms INTEGER NOT NULL,
  cause TEXT NOT NULL
) STRICT;

CREATE TABLE hosts (
  sequence INTEGER NOT NULL PRIMARY KEY,
  time_ms INTEGER NOT NULL,
  host_name TEXT NOT NULL,
  kernel_release TEXT NOT NULL,
  architecture TEXT NOT NULL,
  cpus_count INTEGER NOT NULL,
  physical_bytes INTEGER NOT NULL,
  page_size_bytes INTEGER NOT NULL,
  sample_interval_ms INTEGER NOT NULL,
  headroom_share REAL NOT NULL,
  agent_version TEXT NOT NULL,
  privacy TEXT NOT NULL
) STRICT;

//! Kinds of host. Invented, after what has been sold for desks since about 2020.

/// What a host does when its owner leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    /// Runs on.
    On,
    /// Sleeps soon.
    Sleep,
    /// Is turned off for the night.
    Off,
}

/// One kind of host.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) model: &'static str,
    pub(super) memory_gib: i64,
    pub(super) swap_gib: i64,
    pub(super) cpus: i64,
    pub(super) cores: i64,
    pub(super) nodes: i64,
    pub(super) habit: Habit,
    /// Batch work begun in an hour, on average: while the owner is there, and while not.
    pub(super) batches_per_hour: (f64, f64),
    /// Files that may come into use.
    pub(super) files: usize,
}

const CLASSES: [Class; 6] = [
    Class {
        model: "synthetic workstation, two sockets",
        memory_gib: 128,
        swap_gib: 8,
        cpus: 64,
        cores: 32,
        nodes: 2,
        habit: Habit::On,
        batches_per_hour: (3.0, 1.0),
        files: 260,
    },
    Class {
        model: "synthetic workstation",
        memory_gib: 64,
        swap_gib: 8,
        cpus: 24,
        cores: 16,
        nodes: 1,
        habit: Habit::On,
        batches_per_hour: (2.0, 0.5),
        files: 220,
    },
    Class {
        model: "synthetic desktop",
        memory_gib: 32,
        swap_gib: 4,
        cpus: 16,
        cores: 8,
        nodes: 1,
        habit: Habit::Off,
        batches_per_hour: (1.0, 0.1),
        files: 180,
    },
    Class {
        model: "synthetic office desktop",
        memory_gib: 16,
        swap_gib: 4,
        cpus: 12,
        cores: 6,
        nodes: 1,
        habit: Habit::On,
        batches_per_hour: (0.2, 0.05),
        files: 150,
    },
    Class {
        model: "synthetic laptop",
        memory_gib: 16,
        swap_gib: 8,
        cpus: 12,
        cores: 10,
        nodes: 1,
        habit: Habit::Sleep,
        batches_per_hour: (0.6, 0.1),
        files: 160,
    },
    Class {
        model: "synthetic classroom desktop",
        memory_gib: 8,
        swap_gib: 2,
        cpus: 4,
        cores: 4,
        nodes: 1,
        habit: Habit::Off,
        batches_per_hour: (0.1, 0.02),
        files: 120,
    },
];

/// The kind of every twentieth host: the smallest cluster has a host with two nodes, so that every table is
/// filled, and any that is larger has the kinds in about these shares.
const PATTERN: [usize; 20] = [0, 4, 2, 3, 1, 4, 2, 5, 3, 4, 2, 0, 3, 4, 2, 1, 4, 3, 2, 1];

/// Kind of the host numbered `index`.
pub(super) fn of_host(index: usize) -> &'static Class {
    &CLASSES[PATTERN[index % PATTERN.len()]]
}

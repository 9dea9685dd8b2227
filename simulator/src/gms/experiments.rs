//! The paper's experiments (sections 5.3 to 5.7) as scenarios.

use super::programs::Program;
use super::scenario::{NEEDED_FRAMES, Scenario};
use gleaner_policy::global::settings::MemoryPolicy;

/// Frames of 8 KiB in a MB.
const FRAMES_PER_MB: u32 = 128;
/// Programs of Figure 7, which run on three of five nodes.
pub const FIGURE_7_PROGRAMS: [Program; 3] = [Program::Oo7, Program::CompileLink, Program::Render];

/// Distribution of the idle memory in Figures 9 to 11: nodes of eight, and their share of the idle memory in %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Skew {
    /// Nodes that are idle.
    pub rich_nodes: u32,
    /// Share of the idle memory on these nodes.
    pub rich_percent: f64,
}

/// The three distributions, by the share of idle nodes: 25, 37.5 and 50 %.
pub const SKEWS: [Skew; 3] = [
    Skew {
        rich_nodes: 2,
        rich_percent: 75.0,
    },
    Skew {
        rich_nodes: 3,
        rich_percent: 62.5,
    },
    Skew {
        rich_nodes: 4,
        rich_percent: 50.0,
    },
];

/// Figure 6: one client, and eight nodes that share `idle_mb` of idle memory equally.
#[must_use]
pub fn figure_6(program: Program, idle_mb: u32) -> Scenario {
    Scenario {
        programs: vec![program],
        idle_frames: idle_mb * FRAMES_PER_MB,
        ..Scenario::default()
    }
}

/// Figure 7: of each five nodes, two are idle and three run programs. **Assumed**: the idle nodes have just the
/// memory that the programs lack.
#[must_use]
pub fn figure_7(groups_of_five: u32) -> Scenario {
    let frames = Scenario::default().client_frames;
    let needed = FIGURE_7_PROGRAMS.map(|program| program.pages() - frames);
    Scenario {
        programs: FIGURE_7_PROGRAMS.to_vec(),
        clients: 3 * groups_of_five,
        idle_nodes: 2 * groups_of_five,
        idle_frames: groups_of_five * needed.iter().sum::<u32>(),
        ..Scenario::default()
    }
}

/// Figure 8: OO7 with 150 % of the idle memory that it needs, nine tenths of it on four of eight nodes. At each
/// interval an idle node and a busy one change places; 0: never.
#[must_use]
pub fn figure_8(exchange_s: u32) -> Scenario {
    let idle_frames = NEEDED_FRAMES * 3 / 2;
    let rich_nodes = 4;
    // All eight nodes have equally many frames: those of a busy node are its program's, but for its idle ones.
    let of_rich = idle_frames * 9 / 10 / rich_nodes;
    let of_poor = idle_frames / 10 / rich_nodes;
    Scenario {
        idle_frames,
        rich_nodes,
        rich_percent: 90.0,
        has_bystanders: true,
        bystander_pages: of_rich - of_poor,
        exchange_ms: exchange_s * 1_000,
        ..with_start(Scenario::default())
    }
}

/// Figure 9: OO7, with `idle_percent` of the idle memory that it needs.
#[must_use]
pub fn figure_9(policy: MemoryPolicy, skew: Skew, idle_percent: u32) -> Scenario {
    Scenario {
        policy,
        idle_frames: NEEDED_FRAMES / 100 * idle_percent + NEEDED_FRAMES % 100 * idle_percent / 100,
        rich_nodes: skew.rich_nodes,
        rich_percent: skew.rich_percent,
        ..Scenario::default()
    }
}

/// Figures 10 and 11: the same, with a bystander on each node that is not idle.
#[must_use]
pub fn figure_10(policy: MemoryPolicy, skew: Skew, idle_percent: u32) -> Scenario {
    Scenario {
        has_bystanders: true,
        ..with_start(figure_9(policy, skew, idle_percent))
    }
}

/// Figures 12 and 13: OO7 on several clients, and one idle node with room for all of them.
#[must_use]
pub fn figure_12(clients: u32) -> Scenario {
    Scenario {
        clients,
        idle_nodes: 1,
        idle_frames: clients * NEEDED_FRAMES,
        ..Scenario::default()
    }
}

/// The clients begin when the bystanders have read their pages, which takes 18 to 25 s.
fn with_start(scenario: Scenario) -> Scenario {
    Scenario {
        start_ms: 60_000,
        ..scenario
    }
}

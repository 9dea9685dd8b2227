//! Cluster findings that cannot be measured, and the reasons.

use crate::cluster::outlook::{SCOPES, ahead_cells};
use crate::cluster::pooling::Pools;
use gleaner_schemas::findings::{Findings, MissingMeasure, Parameters, Scope};
use gleaner_schemas::units::Seconds;

/// Records the cluster findings that are missing; called after all other findings were written.
pub(crate) fn of_cluster(
    cell_ms: i64,
    pools: &Pools,
    parameters: &Parameters,
    findings: &Findings,
) -> Vec<MissingMeasure> {
    let mut missing = Vec::new();
    let mut say = |measure: &str, reason: String| {
        missing.push(MissingMeasure {
            measure: measure.to_owned(),
            host_id: "all".to_owned(),
            reason,
        });
    };
    let cell = Seconds::from_ms(cell_ms);
    if findings.cluster_over_time.is_empty() {
        say(
            "cluster_over_time",
            format!(
                "no host's samples cover a whole cell of {cell} without a gap; nothing is said of the \
                 hosts together"
            ),
        );
        return missing;
    }
    let idle_is_told = findings
        .cluster_available
        .iter()
        .any(|c| c.scope == Scope::Idle);
    if !idle_is_told {
        say(
            "cluster_available",
            "in idle time: of no host can it be told when it was idle; the same holds for guarantees, \
             copies and returns"
                .to_owned(),
        );
    }
    for scope in SCOPES {
        if scope == Scope::Idle && !idle_is_told {
            continue;
        }
        let scope_name = match scope {
            Scope::All => "in all time",
            Scope::Idle => "in idle time",
        };
        let too_far: Vec<String> = ahead_cells(cell_ms)
            .into_iter()
            .map(|ahead| Seconds::from_ms(ahead * cell_ms))
            .filter(|s| !(findings.guarantees.iter()).any(|g| g.scope == scope && g.ahead_s == s.0))
            .map(|seconds| seconds.to_string())
            .collect();
        if !too_far.is_empty() {
            say(
                "guarantees",
                format!(
                    "{scope_name}, {} ahead: in too few cells the fate of nine hosts of ten is known",
                    too_far.join(", ")
                ),
            );
        }
        if !findings.copies.iter().any(|c| c.scope == scope) {
            say(
                "copies",
                format!(
                    "{scope_name}: no two hosts had {} bytes to lend in the same cell and a known fate",
                    parameters.region_bytes.first().copied().unwrap_or(0)
                ),
            );
        }
    }
    if findings.returns_by_hour.is_empty() && idle_is_told {
        say(
            "returns_by_hour",
            format!("a cell of {cell} is longer than an hour"),
        );
    }
    if findings.pooling.is_empty() {
        let seen = pools.hosts_count();
        say(
            "pooling",
            format!("it needs two hosts, and {seen} was seen"),
        );
    }
    missing
}

//! Costs against the paper's totals.

use super::*;

#[test]
fn scenario_k_the_parts_of_an_access_sum_to_the_papers_times() {
    let costs = Costs::default();
    assert_eq!(Costs::private_miss().iter().sum::<u64>(), 15_000);
    assert_eq!(costs.shared_miss().iter().sum::<u64>(), 340_000);
    assert_eq!(costs.put_latency_ns(true), 65_000);
    assert_eq!(costs.put_latency_ns(false), 102_000);
    // Tables 3 and 4: 2.1 ms, and 1.7 ms if a duplicate makes room.
    assert_eq!(costs.private_access_ns(), 2_100_500);
    assert_eq!(costs.shared_access_ns(false), 2_100_000);
    assert_eq!(costs.shared_access_ns(true), 1_698_000);
}

/// All reads of OO7 miss in one frame, and come from idle nodes, which have frames for all pages: the simulation
/// takes exactly the time of Table 3 per read. Nothing else occupies a CPU or link.
#[test]
fn a_client_alone_takes_the_time_of_table_3() {
    let scenario = Scenario {
        client_frames: 1,
        counted_faults: 1_000,
        compute_us: 100_000,
        idle_frames: 40_000,
        ..Scenario::default()
    };
    let outcome = simulate(&scenario, 1).unwrap();
    let client = &outcome.clients[0];
    assert_eq!(client.reads.sum(), 1_000);
    assert_eq!(client.reads.source + client.reads.cluster, 1_000);
    let reads = &client.reads;
    let computing_ns = 1_000 * 100_000_000;
    let accesses_ns = reads.cluster * 2_100_500;
    // A page that was dropped before the first epoch is read from disk; its eviction may be a put.
    let least_ns = computing_ns + accesses_ns + reads.source * 3_600_000;
    let most_ns = computing_ns + accesses_ns + reads.source * (14_300_000 + 15_000 + 365_000);
    // Work of epochs delays the client by less than a thousandth.
    let most_ns = most_ns + most_ns / 1_000;
    assert!(
        (least_ns..=most_ns).contains(&client.elapsed_ns),
        "{client:?}"
    );
    assert!(reads.cluster > 900, "{reads:?}");
}

#[test]
fn without_a_cluster_each_fault_takes_the_disks_time() {
    let scenario = Scenario {
        policy: MemoryPolicy::None,
        ..small()
    };
    let outcome = simulate(&scenario, 1).unwrap();
    let client = &outcome.clients[0];
    assert_eq!(
        client.reads.source, 400,
        "the faults that were counted beforehand"
    );
    assert_eq!(client.reads.cluster + client.reads.own_global, 0);
    let faults_ns = client.elapsed_ns - client.reads.sum() * (400 * 2_760_000 / client.reads.sum());
    let per_fault_ns = faults_ns / 400;
    assert!(
        (3_600_000..=14_300_000).contains(&per_fault_ns),
        "{per_fault_ns}"
    );
}

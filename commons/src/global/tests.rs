//! A host's node without a network: the test is the other hosts. Without leases, blocks of other hosts are in
//! unused own memory.

use super::*;
use crate::catalog::BLOCK_BYTES;
use crate::hold::LeasePool;
use gleaner_policy::global::age::CLASSES;
use gleaner_policy::global::directory::Stamp;
use gleaner_policy::global::members::Member;
use gleaner_schemas::commons::Weights;

const OWN: NodeId = 1;
const OTHER: NodeId = 2;

/// Node of this host with room for so many blocks, among the members.
fn memory(frames: u64, members: &[NodeId]) -> (GlobalMemory, PostQueues) {
    let (posts, queues) = Posts::new();
    let pool = LeasePool::start().unwrap();
    let bytes = frames * BLOCK_BYTES;
    let memory = GlobalMemory::new((OWN, 1), Settings::default(), bytes, pool, posts);
    memory.change_members(list(members));
    (memory, queues)
}

fn list(nodes: &[NodeId]) -> Members {
    let member = |node: &NodeId| Member {
        node: *node,
        generation: 1,
        frames: 0,
    };
    Members::new(nodes.iter().map(member).collect(), 0)
}

/// Blocks whose directory entries this host has, if there is another member.
fn blocks() -> impl Iterator<Item = (Hash, Block)> {
    let members = list(&[OWN, OTHER]);
    let all = (0_u64..).map(|number| {
        let bytes = number.to_le_bytes().to_vec();
        (Hash::from(blake3::hash(&bytes)), Arc::new(bytes))
    });
    all.filter(move |(hash, _)| members.owner(uid(hash)) == Some(OWN))
}

fn load(memory: &GlobalMemory, (hash, block): &(Hash, Block)) {
    assert!(matches!(memory.begin_read(hash), ReadStep::Load));
    memory.loaded(hash, block);
}

fn reader(stamps: u32) -> Holder {
    let next = |stamp: Stamp, _| stamp.next(false);
    Holder {
        node: OTHER,
        generation: 1,
        stamp: (0..stamps).fold(Stamp::default(), next),
    }
}

fn weights(epoch: u64, min_age_ms: Option<u64>) -> Weights {
    Weights {
        epoch,
        initiator: 99,
        length_ms: 10_000,
        min_age_ms,
        targets: vec![(OTHER, 10)],
        quota_bytes: Some(1 << 30),
        ..Weights::default()
    }
}

#[test]
fn blocks_are_used_until_the_oldest_leaves() {
    let (memory, _queues) = memory(2, &[OWN]);
    let blocks: Vec<_> = blocks().take(3).collect();
    for block in &blocks {
        assert!(memory.use_block(&block.0).is_none());
        load(&memory, block);
        assert_eq!(memory.use_block(&block.0).unwrap().0, block.1);
    }
    let has: Vec<_> = blocks.iter().map(|(hash, _)| memory.has(hash)).collect();
    assert_eq!(has, [false, true, true]);
    let counts = memory.counts();
    assert_eq!((counts.own_frames, counts.own_bytes), (2, 16));
    assert_eq!((counts.directory_entries, counts.lost_blocks), (2, 0));
}

#[test]
fn a_block_without_a_source_may_be_read_again() {
    let (memory, _queues) = memory(2, &[OWN]);
    let block = blocks().next().unwrap();
    for _ in 0..2 {
        assert!(matches!(memory.begin_read(&block.0), ReadStep::Load));
        memory.failed(&block.0);
    }
    load(&memory, &block);
    assert!(memory.has(&block.0));
}

#[test]
fn another_host_waits_for_this_hosts_fetch() {
    let (memory, _queues) = memory(2, &[OWN, OTHER]);
    let (hash, block) = blocks().next().unwrap();
    assert!(matches!(memory.begin_read(&hash), ReadStep::Load));
    let BlockReply::UnderWay(mut waiting) = memory.serve(&hash, reader(1), false) else {
        panic!("no wait");
    };
    assert!(waiting.try_recv().is_err());
    memory.loaded(&hash, &block);
    let (data, is_moved) = waiting.try_recv().unwrap().unwrap();
    assert_eq!((data.read(&hash), is_moved), (Some(block), false));
    // A host that is named as a holder, and that has nothing, says so; the source of this one failed.
    let (hash, _) = blocks().nth(1).unwrap();
    assert!(matches!(
        memory.serve(&hash, reader(2), true),
        BlockReply::Missing
    ));
    assert!(matches!(memory.begin_read(&hash), ReadStep::Load));
    let BlockReply::UnderWay(mut waiting) = memory.serve(&hash, reader(3), true) else {
        panic!("no wait");
    };
    memory.failed(&hash);
    assert!(waiting.try_recv().unwrap().is_none());
}

#[test]
fn the_directory_names_the_other_holder() {
    let (memory, queues) = memory(2, &[OWN, OTHER]);
    let (hash, block) = blocks().next().unwrap();
    assert!(matches!(
        memory.serve(&hash, reader(1), false),
        BlockReply::Missing
    ));
    let ReadStep::Ask {
        to,
        request,
        is_forwarded: true,
    } = memory.begin_read(&hash)
    else {
        panic!("the other host is entered as a holder");
    };
    assert_eq!(to, OTHER);
    memory.arrived(OTHER, (&hash, &block), true, request);
    assert_eq!(memory.use_block(&hash).unwrap().0, block);
    assert!(queues.puts.try_recv().is_err());
}

#[test]
fn blocks_of_other_hosts_are_stored_if_they_are_those_of_the_hash() {
    let (memory, _queues) = memory(1, &[OWN, OTHER]);
    let blocks: Vec<_> = blocks().take(2).collect();
    let put = |number: usize, bytes: &Block, age_ms| {
        let bytes = Vec::clone(bytes);
        memory.receive_put(OTHER, &blocks[number].0, bytes, (age_ms, 0))
    };
    assert_eq!(put(0, &blocks[1].1, 5), PutOutcome::Differs);
    assert_eq!(put(0, &blocks[0].1, 5), PutOutcome::Stored);
    assert_eq!(put(0, &blocks[0].1, 5), PutOutcome::Known);
    // The only frame has a younger block.
    assert_eq!(put(1, &blocks[1].1, 1 << 40), PutOutcome::NoRoom);
    assert_eq!(memory.counts().global_frames, 1);
    // The block moves to a reader that the directory sends here.
    let BlockReply::Found(data, true) = memory.serve(&blocks[0].0, reader(1), true) else {
        panic!("no block");
    };
    assert_eq!(data.read(&blocks[0].0).as_ref(), Some(&blocks[0].1));
    assert!(!memory.has(&blocks[0].0));
}

#[test]
fn evicted_blocks_go_where_the_weights_say() {
    let (memory, queues) = memory(1, &[OWN, OTHER]);
    let blocks: Vec<_> = blocks().take(5).collect();
    let put = || queues.puts.try_recv().ok().map(|put| (put.to, put.hash));
    load(&memory, &blocks[0]);
    load(&memory, &blocks[1]);
    assert_eq!(put(), None, "there are no weights");
    memory.accept(&weights(5, None), |_| true);
    load(&memory, &blocks[2]);
    assert_eq!(put(), Some((OTHER, blocks[1].0)));
    memory.accept(&weights(6, None), |node| node != OTHER);
    load(&memory, &blocks[3]);
    assert_eq!(put(), None, "the other host is no target");
    memory.accept(&weights(7, Some(0)), |_| true);
    load(&memory, &blocks[4]);
    assert_eq!(put(), None, "the block is older than the minimum age");
    assert_eq!(
        (memory.epoch().number, memory.quota_bytes()),
        (7, Some(1 << 30))
    );
}

#[test]
fn each_epoch_is_reported_once() {
    let (memory, _queues) = memory(4, &[OWN]);
    load(&memory, &blocks().next().unwrap());
    let summary = memory.report(3, 99).unwrap();
    assert_eq!((summary.epoch, summary.free_frames), (3, 3));
    assert_eq!(summary.classes.len(), CLASSES);
    assert_eq!(summary.classes.iter().sum::<u32>(), 1);
    assert_eq!(memory.report(3, 99), None);
    assert_eq!(memory.reported_epoch(), (3, 99));
    memory.accept(&weights(3, None), |_| true);
    let epoch = memory.epoch();
    assert_eq!((epoch.number, epoch.min_age_ms), (3, None));
    assert_eq!(epoch.targets, [(OTHER, 10)]);
}

#[test]
fn entries_of_one_host_are_bounded_and_leave_room_for_others() {
    const THIRD: NodeId = 3;
    const LIMIT: u64 = 1 << 14; // a 64th of 2^20
    let nodes: Vec<NodeId> = (1..=64).collect();
    let (memory, _queues) = memory(1, &nodes);
    let holder = |node, generation| Holder {
        node,
        generation,
        ..reader(1)
    };
    let moved = |numbers: std::ops::Range<u128>, holder: Holder| -> Vec<Message> {
        let uids = numbers.map(Uid::shared);
        uids.map(|uid| Message::Moved { uid, holder }).collect()
    };
    let figures = || {
        let counts = memory.counts();
        (counts.directory_entries, counts.refused_entries)
    };
    memory.receive_notices(OTHER, moved(0..20_000, holder(OTHER, 1)));
    assert_eq!(figures(), (LIMIT, 20_000 - LIMIT));
    // The entries that the host has may change.
    memory.receive_notices(OTHER, moved(0..100, holder(OTHER, 1)));
    assert_eq!(figures(), (LIMIT, 20_000 - LIMIT));

    let (hash, _) = blocks().next().unwrap();
    let uid = uid(&hash);
    let holder_of_block = holder(THIRD, 1);
    let moves = Message::Moved {
        uid,
        holder: holder_of_block,
    };
    memory.receive_notices(THIRD, vec![moves]);
    assert_eq!(figures(), (LIMIT + 1, 20_000 - LIMIT));
    // The first host is sent to the holder, and does not become one.
    let reply = memory.serve(&hash, holder(OTHER, 1), false);
    assert!(matches!(reply, BlockReply::Elsewhere(THIRD)));
    assert_eq!(figures(), (LIMIT + 1, 20_001 - LIMIT));
    let (unknown, _) = blocks().nth(1).unwrap();
    let reply = memory.serve(&unknown, holder(OTHER, 1), false);
    assert!(matches!(reply, BlockReply::Missing));
    assert_eq!(figures(), (LIMIT + 1, 20_002 - LIMIT));

    let gone = Message::Gone {
        uid: Uid::shared(7),
        holder: reader(2),
    };
    memory.receive_notices(OTHER, vec![gone]);
    assert_eq!(figures().0, LIMIT);
    memory.receive_notices(OTHER, moved(30_000..30_001, holder(OTHER, 1)));
    assert_eq!(figures(), (LIMIT + 1, 20_002 - LIMIT));

    // After a restart of the host, its memory is empty, and so is its part of the limit.
    let member = |node: &NodeId| Member {
        node: *node,
        generation: if *node == OTHER { 2 } else { 1 },
        frames: 0,
    };
    memory.change_members(Members::new(nodes.iter().map(member).collect(), 0));
    let (left, _) = figures();
    memory.receive_notices(OTHER, moved(0..100, holder(OTHER, 1)));
    assert_eq!(figures(), (left, 20_002 - LIMIT));
    memory.receive_notices(OTHER, moved(0..10_000, holder(OTHER, 2)));
    assert_eq!(figures(), (left + 10_000, 20_002 - LIMIT));
}

#[test]
fn a_host_drops_a_held_copy_by_word_of_the_directory_alone() {
    let (memory, _queues) = memory(2, &[OWN, OTHER]);
    let members = list(&[OWN, OTHER]);
    let all = (0_u64..).map(|number| {
        let bytes = number.to_le_bytes().to_vec();
        (Hash::from(blake3::hash(&bytes)), bytes)
    });
    let (of_own, of_other): (Vec<_>, Vec<_>) = all
        .take(64)
        .partition(|(hash, _)| members.owner(uid(hash)) == Some(OWN));
    for (blocks, is_kept) in [(of_own, true), (of_other, false)] {
        let (hash, bytes) = blocks[0].clone();
        let outcome = memory.receive_put(OTHER, &hash, bytes, (5, 0));
        assert_eq!(outcome, PutOutcome::Stored);
        let discard = Message::Discard { uid: uid(&hash) };
        memory.receive_notices(OTHER, vec![discard]);
        assert_eq!(memory.has(&hash), is_kept);
    }
}
